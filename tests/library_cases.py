"""Transitions for every target, in NumPy; as a program, the targets of PyTorch: FILE.npz.

It is run by a Python that has PyTorch and of this project the core alone.
"""

import sys
from dataclasses import replace
from functools import partial

import numpy as np

from momentum_rl.core import family, targets
from momentum_rl.core.targets import AVI, DPP, MOVI, SQL, double, momentum
from momentum_rl.core.values import Categorical, Quantile

ATOMS = Categorical(-5.0, 5.0, 11)
ALGORITHMS = (
    AVI,
    MOVI,
    SQL,
    DPP,
    targets.SpeedyQLearning("printed").algorithm(),
    targets.smoothed_value_iteration(0.7),
    replace(targets.DynamicPolicyProgramming(2.0).algorithm(), name="dpp-soft"),
    replace(targets.DynamicPolicyProgramming(2.0, "boltzmann").algorithm(), name="dpp-boltzmann"),
    targets.Munchausen(0.9, 0.3).algorithm(),
    double(AVI),
    momentum(double(AVI)),
    momentum(targets.Munchausen(0.9, 0.03).algorithm()),
    momentum(AVI, "movi-network", h_target="network"),
    targets.distributional(ATOMS, "c51"),
    momentum(targets.distributional(ATOMS), "momentum-c51"),
    momentum(targets.distributional(ATOMS), "momentum-c51-number", h_value="number"),
    targets.distributional(Quantile(7), "qr"),
    momentum(targets.distributional(Quantile(7)), "momentum-qr"),
    family.MirrorDescent(0.2, 0.1).algorithm(),
    family.MirrorDescent(0.2, 0.1, "plain").algorithm(),
    family.DualAveraging(0.2, 0.1).algorithm(),
    family.DualAveraging(0.2, 0.1, "plain").algorithm(),
    replace(targets.Munchausen(0.9, 0.3, None).algorithm(), name="m-vi"),
    family.ConservativeValueIteration(0.8, 2.0).algorithm(),
    family.AdvantageLearning(0.8).algorithm(),
    family.AnchoredValueIteration("optimal").algorithm(),
    replace(family.AnchoredValueIteration("harmonic").algorithm(), name="anc-vi-harmonic"),
)
EVERY = [(algorithm, name) for algorithm in ALGORITHMS for name in algorithm.targets]
N, ACTIONS = 5, 3
ARGUMENTS = np.arange(N) % ACTIONS, np.linspace(-1, 1, N), np.array([0.9, 0.9, 0.0, 0.9, 0.5])


def rows_of(algorithm, seed):
    """Rows at s and the networks' values as they are now, for a minibatch of N."""
    random, found = np.random.default_rng(seed), {}
    for name in algorithm.targets:
        kind = algorithm.kind(name)
        draw = random.normal(size=(N, algorithm.lags, ACTIONS, *kind.shape))
        if isinstance(kind, Categorical):
            draw = np.exp(draw) / np.exp(draw).sum(-1, keepdims=True)
        found[name] = draw
    return found, {name: rows[:, 0] + 0.25 * rows[:, -1][:, ::-1] for name, rows in found.items()}


def target(algorithm, name, here, a, r, discount, there):
    """A target with the networks as they are now, at β = 0.75."""
    values, next_values = algorithm.at(*here), algorithm.at(*there)
    return algorithm.target(name, values, a, r, discount, next_values, 0.75)


def by_torch(algorithm, name):
    """The whole minibatch at once, by torch.func.vmap."""
    import torch

    def tensors(tree):
        if isinstance(tree, dict):
            return {key: tensors(one) for key, one in tree.items()}
        return torch.as_tensor(tree)

    here, there = (tuple(map(tensors, rows_of(algorithm, seed))) for seed in (1, 2))
    mapped = torch.func.vmap(partial(target, algorithm, name))
    y = mapped(here, *map(tensors, ARGUMENTS), there)
    assert y.dtype == torch.float64
    return y.numpy()


if __name__ == "__main__":
    np.savez(sys.argv[1], **{f"{a.name}-{name}": by_torch(a, name) for a, name in EVERY})
