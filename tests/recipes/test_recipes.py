"""The recipes: each learns CartPole, and its targets are ours on a recorded minibatch."""

import re
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
import rlax

from momentum_rl.core.targets import MOVI
from tests.recipe_python import run_with_torch
from tests.recipes import targets_of
from tests.recipes.targets_of import NAMES, recipe

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
BATCH = Path(__file__).with_name("batch.npz")  # written by record.py
WITH_TORCH = ("cleanrl_style", "sb3_momentum_dqn")
RECORDED = dict(np.load(BATCH))


def close(found, name):
    np.testing.assert_allclose(found, RECORDED[f"{name}_targets"], rtol=1e-6)


def test_the_recorded_targets_are_those_of_movi_one_transition_after_the_other():
    """The file has what our learner computes; this is the function that it calls, in NumPy."""
    for name in ("q", "h"):
        each = []
        for h, next_q, next_h, a, r, discount in zip(*(RECORDED[name] for name in NAMES)):
            here, there = {"q": 0 * h[None], "h": h[None]}, {"q": next_q[None], "h": next_h[None]}
            each.append(MOVI.target(name, here, a, r, discount, there, float(RECORDED["beta"])))
        close(each, name)


def test_the_policies_of_q_and_of_h_differ_on_the_recorded_minibatch():
    differ = RECORDED["next_q"].argmax(1) != RECORDED["next_h"].argmax(1)
    assert 4 <= differ.sum() <= len(differ) - 4
    assert 0 < RECORDED["beta"] < 1
    assert set(RECORDED["discounts"] == 0) == {True, False}


def test_momentums_target_of_q_is_rlaxs_double_q_learning_with_h_as_the_selector():
    _, next_q, next_h, actions, rewards, discounts = (RECORDED[name] for name in NAMES)
    q = RECORDED["q"]
    errors = jax.vmap(rlax.double_q_learning)(q, actions, rewards, discounts, next_q, next_h)
    taken = np.take_along_axis(q, actions[:, None], axis=1)[:, 0]
    close(errors + taken, "q")


def test_the_targets_of_the_recipe_for_rlax_are_ours():
    module = recipe(RECIPES / "rlax_momentum_dqn.py")
    found = module.targets(*(RECORDED[name] for name in NAMES), float(RECORDED["beta"]))
    for name, y in zip("qh", found):
        close(y, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_TORCH)
def test_the_targets_of_a_recipe_in_pytorch_are_ours(name, tmp_path):
    words = targets_of.__file__, RECIPES / f"{name}.py", BATCH, tmp_path / "found.npz"
    run_with_torch(*words, cwd=tmp_path)
    found = np.load(tmp_path / "found.npz")
    for own in ("q", "h"):
        close(found[own], own)


LEARNED = 300  # of 500; a random policy has 22


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_TORCH)
def test_a_recipe_in_pytorch_learns_cartpole(name, tmp_path):
    """Of two seeds the better one: DQN's last policy is now and then a poor one."""
    path = RECIPES / f"{name}.py"
    said = (run_with_torch(path, "--seed", seed, cwd=tmp_path) for seed in (1, 2))
    assert any(float(text.split()[-1]) >= LEARNED for text in said)


@pytest.mark.slow
def test_the_recipe_for_rlax_learns_cartpole():
    learned = partial(recipe(RECIPES / "rlax_momentum_dqn.py").main, 100_000)
    assert any(learned(seed) >= LEARNED for seed in (1, 2))


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.py")), ids=lambda path: path.stem)
def test_a_recipe_marks_what_differs_from_its_host(path):
    text = path.read_text()
    assert text.count("MOMENTUM") >= 5
    assert text.count("# END") in (0, len(re.findall(r"^ *# MOMENTUM", text, re.M)))
