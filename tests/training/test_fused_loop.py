"""The fused loop against the host loop on the same environment, from the same seed."""

import jax
import numpy as np
import pytest

from momentum_rl.envs.gymnax_env import make_gymnax
from momentum_rl.replay import device
from momentum_rl.runs.config import Config
from momentum_rl.spaces import Box
from tests.training.jax_diagnostics import coin, episodic, one_state
from tests.training.loops import assert_close, pair

ALGORITHMS = ["dqn", "momentum-dqn", "deep-sql", "deep-dpp"]


def assert_equal_transitions(host, ring, stored):
    spaces = host.environment.spaces
    space = spaces.observation
    # Actions that are numbers are rounded differently by two programs, and so is what follows.
    apart = 1e-4 if isinstance(spaces.actions, Box) else 0.0
    ring = ring._replace(
        observation=device.unpacked(ring.observation, space),
        next_observation=device.unpacked(ring.next_observation, space),
    )
    for ours, theirs in zip(ring, host.replay._ring):
        np.testing.assert_allclose(np.asarray(ours)[:stored], theirs[:stored], apart, apart)


def assert_equal_rows(row, other):
    assert list(row) == list(other)
    for name, value in row.items():
        if value is None or other[name] is None:
            assert value is other[name], name
        else:
            assert value == pytest.approx(other[name], rel=1e-3, abs=1e-4), name


CARTPOLE = {
    "steps": 400,
    "iteration_steps": 200,
    "learning_starts": 50,
    "replay_capacity": 300,  # the ring goes round
    "batch_size": 16,
    "update_period": 1,
    "sync_period": 7,
    "epsilon_warmup": 20,
    "epsilon_decay": 100,
    "epsilon_final": 0.2,
    "hidden": (16,),
}


@pytest.mark.parametrize(
    ("algorithm", "env"),
    [
        *((algorithm, "gymnax/CartPole-v1") for algorithm in ALGORITHMS),
        ("sac", "gymnax/Pendulum-v1"),
        pytest.param("momentum-sac", "gymnax/MountainCarContinuous-v0", marks=pytest.mark.slow),
    ],
)
def test_fused_and_host_loop_agree_on_small_environments(algorithm, env):
    config = Config(algorithm, env, seed=3, **CARTPOLE)
    host, fused = pair(config, make_gymnax(config.env))
    for iteration, until in enumerate((200, 400)):
        host.advance(until)
        fused.advance(until)
        assert (fused.step, fused.updates) == (until, host.updates)
        assert_equal_transitions(host, fused.state.ring, min(until, 300))
        row = fused.row(until, iteration)
        assert_equal_rows(row, host.row(until, iteration))
    assert host.updates == 350
    assert host.syncs == 400 // 7 - 50 // 7
    assert_close(fused.parameters(), host.learner.parameters())
    assert_close(fused.state.learner, host.learner.state)


@pytest.mark.parametrize(
    "algorithm",
    ["dqn", *(pytest.param(a, marks=pytest.mark.slow) for a in ALGORITHMS[1:])],
)
def test_fused_and_host_loop_agree_on_minatar(algorithm):
    config = Config(
        algorithm,
        "MinAtar/Breakout",
        preset="minatar",
        steps=600,
        learning_starts=100,
        replay_capacity=5_000,
        batch_size=8,
        update_period=4,
        sync_period=50,
        epsilon_warmup=100,
        epsilon_decay=200,
        optimiser="rmsprop",
        learning_rate=2.5e-4,
        optimiser_epsilon=1e-5,
    )
    host, fused = pair(config, make_gymnax(config.env))
    host.advance(600)
    fused.advance(600)
    assert host.updates == fused.updates == 125
    assert_equal_transitions(host, fused.state.ring, 600)
    assert host.replay._ring.observation.dtype == bool
    assert_close(fused.state.learner, host.learner.state)


@pytest.mark.parametrize(
    ("n", "f", "c"), [(3, 4, 10), (5, 1, 3), pytest.param(4, 4, 8, marks=pytest.mark.slow)]
)
def test_any_number_of_environments_keeps_the_gates_also_where_the_last_tick_is_cut(n, f, c):
    fields = {**CARTPOLE, "num_envs": n, "update_period": f, "sync_period": c, "steps": 200}
    config = Config("momentum-dqn", "gymnax/CartPole-v1", **{**fields, "iteration_steps": 101})
    host, fused = pair(config, make_gymnax(config.env))
    for iteration, until in enumerate((101, 200)):
        host.advance(until)
        fused.advance(until)
        row = fused.row(until, iteration)
        assert_equal_rows(row, host.row(until, iteration))
    assert_equal_transitions(host, fused.state.ring, 200)
    assert_close(fused.state.learner, host.learner.state)


@pytest.mark.parametrize(("num_envs", "truncate"), [(1, False), (3, True)])
def test_fused_and_host_loop_agree_on_three_steps(num_envs, truncate):
    """Episodes of seven steps with rewards −1.5, …, 1.5 by the time, which are clipped to ± 1.2."""
    fields = {**CARTPOLE, "num_envs": num_envs, "steps": 402, "update_period": 2, "n_step": 3}
    config = Config("momentum-dqn", "episodes", reward_clip=1.2, **{**fields, "gamma": 0.9})
    environment = episodic(coin, lambda x, t, a: t / 2 - 1.5 + a / 8, 7, truncate)
    host, fused = pair(config, environment)
    for iteration, until in enumerate((201, 402)):
        host.advance(until)
        fused.advance(until)
        assert fused.updates == host.updates
        assert_equal_transitions(host, fused.state.ring, min(until, 300))
        row = fused.row(until, iteration)
        assert_equal_rows(row, host.row(until, iteration))
    # 50 can be sampled at step 50 + 2 num_envs; from the next step on every second one learns.
    assert host.updates == 201 - (50 + 2 * num_envs) // 2
    assert row["stored"] == 300 - 2 * num_envs
    signs = np.sign(np.asarray(fused.state.ring.discount))
    assert (signs < 0).any() == truncate
    assert_close(fused.state.learner, host.learner.state)


def test_the_result_does_not_depend_on_where_chunks_end():
    fields = {**CARTPOLE, "steps": 150, "num_envs": 3, "update_period": 4}
    config = Config("dqn", "gymnax/CartPole-v1", **fields)
    environment = make_gymnax(config.env)
    _, whole = pair(config, environment)
    _, parts = pair(config, environment)
    whole.advance(150)
    assert whole.updates == 150 // 4 - config.learning_starts // 4
    for until in (3, 51, 54, 78, 150):
        parts.advance(until)
    jax.tree.map(np.testing.assert_array_equal, whole.state, parts.state)
    assert whole.row(150, 0) == parts.row(150, 0)


@pytest.mark.parametrize("flag", [False, True])
def test_a_cut_keeps_its_discount_unless_timeouts_are_made_terminal(flag):
    config = Config("dqn", "x", steps=6, learning_starts=50, timeouts_are_terminal=flag, gamma=0.5)
    _, fused = pair(config, one_state(3, truncate=True))
    fused.advance(6)
    expected = [0.5, 0.5, 0.0 if flag else -0.5] * 2  # negative: the episode was cut
    assert np.asarray(fused.state.ring.discount[:6]).tolist() == expected
    row = fused.row(6, 0)
    assert (row["episodes"], row["score"], row["length"]) == (2, 3, 3)
