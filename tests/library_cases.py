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
    targets.speedy_q_learning("printed"),
    targets.smoothed_value_iteration(0.7),
    replace(targets.dynamic_policy_programming(2.0), name="dpp-soft"),
    replace(targets.dynamic_policy_programming(2.0, "boltzmann"), name="dpp-boltzmann"),
    targets.munchausen(0.9, 0.3),
    double(AVI),
    momentum(double(AVI)),
    momentum(targets.munchausen(0.9, 0.03)),
    momentum(AVI, "movi-network", h_target="network"),
    targets.distributional(ATOMS, "c51"),
    momentum(targets.distributional(ATOMS), "momentum-c51"),
    momentum(targets.distributional(ATOMS), "momentum-c51-number", h_value="number"),
    targets.distributional(Quantile(7), "qr"),
    momentum(targets.distributional(Quantile(7)), "momentum-qr"),
    family.mirror_descent(0.2, 0.1),
    family.mirror_descent(0.2, 0.1, regularised=False),
    family.dual_averaging(0.2, 0.1),
    family.dual_averaging(0.2, 0.1, regularised=False),
    family.munchausen_value_iteration(0.9, 0.3),
    family.conservative_value_iteration(0.8, 2.0),
    family.advantage_learning(0.8),
    family.anchored("optimal"),
    replace(family.anchored("harmonic"), name="anc-vi-harmonic"),
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
