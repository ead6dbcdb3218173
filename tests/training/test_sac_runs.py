"""Runs of SAC: both loops, resumed, loaded, evaluated, and what they refuse."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import momentum_rl
from momentum_rl.cli import main
from momentum_rl.envs.gym_vector import GymnasiumVector
from momentum_rl.envs.gymnax_env import make_gymnax
from momentum_rl.envs.make import make_environment
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields
from momentum_rl.spaces import Box
from momentum_rl.training.build import bytes_on_device, configured_learner
from momentum_rl.training.train import train

TINY = {
    **preset_fields("sac"),
    "steps": 120,
    "iteration_steps": 60,
    "checkpoint_every": 40,
    "learning_starts": 20,
    "epsilon_warmup": 20,
    "replay_capacity": 60,
    "batch_size": 4,
    "hidden": (8, 8),
    "final_episodes": 1,
}
AVERAGING = {"kappa": 6, "regularised": True}
HOST = Config("momentum-sac", "Pendulum-v1", num_envs=2, n_step=2, options=AVERAGING, **TINY)
FUSED = Config("sac", "gymnax/Pendulum-v1", **TINY)


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_a_run_in_halves_equals_the_whole_and_its_agent_acts(config, tmp_path):
    whole = train(config, tmp_path / "whole")
    train(config.replace(steps=60), tmp_path / "halves")
    train(config, tmp_path / "halves")
    for name in ("metrics.jsonl", "agent.safetensors", "evaluation.json"):
        one, other = ((tmp_path / run / name).read_bytes() for run in ("whole", "halves"))
        assert one == other, name
    row = whole.metrics[-1]
    named = {"alpha", "entropy", "loss_q", "loss_actor", "loss_temperature", "mean_q"}
    assert named <= set(row)
    assert ("mean_h" in row) == ("beta" in row) == (config.algorithm == "momentum-sac")

    agent = momentum_rl.load(tmp_path / "halves")
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    np.testing.assert_array_equal(agent.act(x), whole.agent.act(x))
    assert agent.act(x).shape == (7, 1)
    np.testing.assert_allclose(agent.act(x[0]), agent.act(x)[0], atol=1e-6)
    np.testing.assert_allclose(agent.act(x), 2 * agent.actions(x), atol=3e-7)  # torques in ±2
    drawn = [agent.act(x, key) for key in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).all()
    with pytest.raises(UserError, match="values: an agent with Box actions has none"):
        agent.values(x)


class Lever(gym.Env):
    """An action without an axis, in a dtype of its own."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Box(np.float64(-0.1), np.float64(0.1), (), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.t += 1
        return np.full(3, action, np.float32), float(action), False, self.t == 9, {}


def test_an_action_without_an_axis_is_learned_loaded_and_acted(tmp_path):
    config = Config("sac", "lever", **{**TINY, "checkpoint_every": 0, "final_episodes": 2})

    def make(n=1):
        return GymnasiumVector(SyncVectorEnv([Lever] * n, autoreset_mode=AutoresetMode.DISABLED))

    result = train(config, tmp_path / "run", environment=make(), make_environment=make)
    assert len(result.evaluation.returns) == 2
    agent, x = momentum_rl.load(tmp_path / "run"), np.ones(3, np.float32)
    for one in (agent.act(x), agent.act(x, key=1)):
        assert Lever.action_space.contains(one)
    assert agent.act(x, key=1) != agent.act(x, key=2)
    several = agent.act(np.stack([x, x]))
    assert (several.shape, several.dtype) == ((2,), np.float64)


def test_every_step_of_pendulum_bootstraps_and_the_stored_action_is_the_executed_one(monkeypatch):
    seen = []
    real = PendulumEnv.step

    def step(self, action):
        seen.append(np.array(action))
        return real(self, action)

    monkeypatch.setattr(PendulumEnv, "step", step)
    config = Config("sac", "Pendulum-v1", **{**TINY, "steps": 250, "replay_capacity": 300})
    config = config.replace(checkpoint_every=0, final_episodes=0)
    loop = train(config).loop
    ring = loop.replay._ring
    np.testing.assert_array_equal(abs(ring.discount[:250]), np.float32(0.99))
    assert np.flatnonzero(ring.discount[:250] < 0).tolist() == [199]  # a cut bootstraps too
    assert len(np.unique(ring.observation[198:202], axis=0)) == 4
    assert not np.array_equal(ring.next_observation[199], ring.observation[200])
    stored = ring.action[:250]
    np.testing.assert_allclose(2 * stored, np.array(seen), atol=3e-7)
    assert np.abs(stored[:20]).max() <= 1
    # Twenty random actions are spread over the box, ±1 in each entry.
    assert stored[:20].min() < -0.5
    assert stored[:20].max() > 0.5


@pytest.mark.parametrize("env", ["Pendulum-v1", "gymnax/Pendulum-v1"])
def test_discrete_algorithms_are_refused_where_actions_are_numbers(env, tmp_path, capsys):
    assert main(["train", "dqn", "--env", env, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert f"env: {env} has Box actions, but dqn acts by Discrete ones" in error
    assert "sac and momentum-sac" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("env", ["CartPole-v1", "gymnax/CartPole-v1"])
def test_sac_is_refused_where_actions_are_counted(env, tmp_path, capsys):
    assert main(["train", "sac", "--env", env, "--out", str(tmp_path / "run")]) == 2
    assert f"env: {env} has Discrete actions, but sac acts by Box ones" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_commands_train_evaluate_and_export(tmp_path, capsys):
    run, file = tmp_path / "run", tmp_path / "pendulum.safetensors"
    small = "--steps 60 --learning-starts 20 --epsilon-warmup 20 --batch-size 4 --hidden 8"
    words = f"train sac --env gymnax/Pendulum-v1 {small} --replay-capacity 60 --polyak 0.01"
    assert main([*words.split(), "--out", str(run)]) == 0
    config = json.loads((run / "config.json").read_text())
    assert (config["preset"], config["learning_rate"]) == ("sac", 3e-4)  # named by the algorithm
    assert config["options"]["polyak"] == 0.01
    assert main(["export", str(run), str(file)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(file), "--episodes", "2", "--num-envs", "2"]) == 0
    assert "mean" in capsys.readouterr().out
    assert main(["resume", str(run), "--steps", "90"]) == 0
    assert momentum_rl.load(run).about["step"] == 90


def test_record_writes_a_video_of_actions_that_are_numbers(tmp_path, capsys):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    pytest.importorskip("pygame")
    config = Config("sac", "Pendulum-v1", **{**TINY, "steps": 40, "iteration_steps": 40})
    train(config, tmp_path / "run")
    file = tmp_path / "play.mp4"
    assert main(["record", str(tmp_path / "run"), "--out", str(file)]) == 0
    frames, _ = imageio_ffmpeg.count_frames_and_secs(str(file))
    assert frames == 201  # Pendulum is cut after 200 steps; one frame is before any
    assert float(capsys.readouterr().out.split()[-1]) < 0  # it costs all the time


def test_mujoco_without_its_extra_is_one_line(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mujoco", None)
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UserError, match=r"momentum-rl\[mujoco\]"):
        make_environment("HalfCheetah-v5")


def test_mujoco_is_trained_on_and_goes_on_exactly(tmp_path):
    pytest.importorskip("mujoco")
    config = Config("sac", "Hopper-v5", **{**TINY, "final_episodes": 0})
    train(config, tmp_path / "whole")
    train(config.replace(steps=60), tmp_path / "halves")
    train(config, tmp_path / "halves")
    one, other = (
        (tmp_path / run / "agent.safetensors").read_bytes() for run in ("whole", "halves")
    )
    assert one == other


def test_a_replays_size_counts_its_actions():
    config = Config("sac", "gymnax/Pendulum-v1", **{**TINY, "checkpoint_every": 0})
    spaces = make_gymnax(config.env).spaces
    assert spaces.actions == Box((-2.0,), (2.0,), (1,))
    assert bytes_on_device(config, spaces) == 60 * (2 * 3 * 4 + 4 + 2 * 4)  # s, s', a, r and γ


@pytest.mark.parametrize("option", ["target-entropy", "entropy-each", "log-std-max"])
@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
def test_an_option_that_no_file_can_hold_is_one_line_and_nothing_is_written(
    option, value, tmp_path, capsys
):
    words = ["train", "sac", "--env", "Pendulum-v1", f"--{option}={value}"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"movi: {option.replace('-', '_')}: {value}, expected a finite number")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_networks_have_step_sizes_of_their_own():
    options = {"actor_rate": 3e-4, "temperature_rate": 1e-3, "log_std": "tanh", "log_std_min": -5.0}
    given = {**preset_fields("sac"), "learning_rate": 1e-3}
    config = Config("sac", "Pendulum-v1", **given, options=options)
    assert config.options.to_json() == {
        "actor_rate": 3e-4,
        "temperature_rate": 1e-3,
        "temperature": None,
        "target_entropy": None,
        "entropy_each": -1.0,
        "reward_scale": 1.0,
        "polyak": 0.005,
        "log_std": "tanh",
        "log_std_min": -5.0,
        "log_std_max": 2.0,
    }
    what = configured_learner(config, make_gymnax("gymnax/Pendulum-v1").spaces)
    assert what.method.rates == {"actor": 3e-4, "temperature": 1e-3}
    assert config.learning_rate == 1e-3
