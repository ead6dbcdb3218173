"""The targets of a recipe on a recorded minibatch: RECIPE.py BATCH.npz OUT.npz.

It is run by the recipe's own Python.
"""

import importlib.util
import sys

import numpy as np


def recipe(path):
    """The recipe, as a module."""
    spec = importlib.util.spec_from_file_location("recipe", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = ("h", "next_q", "next_h", "actions", "rewards", "discounts")


def main(path, batch, out):
    import torch

    recorded = np.load(batch)
    given = (torch.as_tensor(recorded[name]) for name in NAMES)
    q, h = recipe(path).targets(*given, float(recorded["beta"]))
    np.savez(out, q=q.numpy(), h=h.numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
