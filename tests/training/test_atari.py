"""Whole Atari runs, short ones, and what the paper's preset means."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("ale_py")

from momentum_rl.agents.networks import MLP, ActionValues
from momentum_rl.agents.registry import options_of
from momentum_rl.cli import main, parse
from momentum_rl.envs.atari import make_atari
from momentum_rl.replay.frames import FrameReplay
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields
from momentum_rl.spaces import ObservationSpace
from momentum_rl.sweeps.drive import sweep_named
from momentum_rl.training import build
from momentum_rl.training.train import train

ATARI = ObservationSpace((4, 84, 84), "uint8")


def short(algorithm="momentum-dqn", **changes):
    fields = {
        **preset_fields("paper"),
        "steps": 240,
        "iteration_steps": 120,
        "replay_capacity": 200,
        "learning_starts": 60,
        "sync_period": 50,
        "batch_size": 4,
        "epsilon_warmup": 20,
        "epsilon_decay": 100,
        "final_episodes": 0,
        **changes,
    }
    return Config(algorithm, "ALE/Breakout-v5", **fields)


def small(actions=4):
    return ActionValues(ATARI, MLP((16,)), actions)


class Both(FrameReplay):
    """The replay of frames, and beside it one of whole transitions."""

    def __init__(self, capacity, space, horizon):
        super().__init__(capacity, space, horizon=horizon)
        self.whole, self.compared = UniformReplay(capacity, space, horizon=horizon), 0

    def add(self, env, transition, ended):
        super().add(env, transition, ended)
        self.whole.add(env, transition, ended)

    def sample(self, bits):
        batch = super().sample(bits)
        k = self._first + (bits % np.uint32(len(self))).astype(np.int64)
        for frames, expected in zip(batch, self.whole.sample(k % len(self.whole))):
            np.testing.assert_array_equal(frames, expected)
        self.compared += 1
        return batch


@pytest.mark.parametrize(
    ("num_envs", "n_step"), [pytest.param(1, 1, marks=pytest.mark.slow), (3, 1), (3, 3)]
)
def test_in_a_run_the_replay_gives_back_the_stacks_that_the_agent_saw(
    num_envs, n_step, monkeypatch
):
    """Across game ends, cuts after 70 steps, the ring's head, and several games side by side."""
    config = short(steps=900, num_envs=num_envs, n_step=n_step)
    replay = Both(200, ATARI, config.horizon)
    monkeypatch.setattr(build, "FrameReplay", lambda *given, **named: replay)
    environment = make_atari(config.env, num_envs, episode_steps=70)
    result = train(config, environment=environment, network=small())
    incomplete = (n_step - 1) * num_envs
    assert replay.compared == result.loop.updates == 900 // 4 - (60 + incomplete) // 4
    assert result.loop.scores.episodes >= 9
    assert len(replay) == 200 - incomplete


def test_the_same_seed_twice_gives_bit_identical_runs_and_another_seed_does_not(tmp_path):
    def files(name, seed):
        out = tmp_path / name
        train(short(seed=seed, steps=300), out, network=small())
        return (out / "metrics.jsonl").read_bytes(), (out / "agent.safetensors").read_bytes()

    a, b, c = files("a", 0), files("b", 0), files("c", 1)
    assert a == b
    assert a[1] != c[1]


@pytest.mark.slow
def test_the_replay_in_files_of_the_run_directory_changes_nothing(tmp_path):
    rows = []
    for every in (0, 10, 200):
        out = tmp_path / str(every)
        rows.append(train(short(checkpoint_every=every), out, network=small()).metrics)
        assert (out / "replay" / "frames.bin").exists() == (every > 0)
    assert rows[0] == rows[1] == rows[2]


def test_scores_are_of_whole_games_with_raw_rewards_that_ended_in_the_iteration():
    """Ms. Pac-Man's points are tens; the learner is given ones, the score keeps the tens."""
    config = replace(
        short(steps=600, iteration_steps=200, learning_starts=150, update_period=600),
        env="ALE/MsPacman-v5",
    )
    environment = make_atari(config.env, episode_steps=90)
    step, rewards = environment.step, []

    def recorded(actions):
        outcome = step(actions)
        rewards.append(float(outcome.reward[0]))
        return outcome

    environment.step = recorded
    result = train(config, environment=environment, network=small(9))
    games = np.reshape(rewards[: 6 * 90], (6, 90))  # no game ends by itself this early
    assert set(rewards) >= {0.0, 10.0}
    assert [row["step"] for row in result.metrics] == [200, 400, 600]
    assert [row["episodes"] for row in result.metrics] == [2, 2, 2]  # 90·k in (0, 600]
    assert all(row["length"] == 90 for row in result.metrics)
    by_hand = games.sum(axis=1).reshape(3, 2).mean(axis=1)
    assert [row["score"] for row in result.metrics] == by_hand.tolist()
    assert (by_hand >= 10 * np.clip(games, -1, 1).sum(axis=1).reshape(3, 2).mean(axis=1)).all()
    assert by_hand.min() > 0


def test_a_replay_that_cannot_fit_is_one_line_and_nothing_is_written(tmp_path, capsys):
    out = tmp_path / "run"
    words = ["train", "dqn", "--env", "ALE/Pong-v5", "--replay-capacity", "2000000000"]
    words += ["--steps", "2000000000"]  # a shorter run would need less
    for more, size in ((["--checkpoint-every", "0"], "14.3"), ([], "14.3")):
        assert main([*words, *more, "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert f"2,000,000,000 transitions: needs {size} TB" in error
        assert error.count("\n") == 1
        assert not out.exists()


def test_the_command_of_the_paper_is_the_papers_experiment():
    words, command = parse(
        ["train", "momentum-dqn", "--env", "ALE/Seaquest-v5", "--preset", "paper"]
    )
    assert words == "train"
    config = Config(**{name: getattr(command, name) for name in Config.__dataclass_fields__})
    cells = {(c.env, c.label): c for c in sweep_named("paper-atari", "paper").cells}
    assert config == cells["ALE/Seaquest-v5", "momentum-dqn"].config_of(0)
    expected = {
        "steps": 200 * 250_000,
        "iteration_steps": 250_000,
        "num_envs": 1,
        "gamma": 0.99,
        "replay_capacity": 10**6,
        "learning_starts": 20_000,
        "batch_size": 32,
        "update_period": 4,
        "sync_period": 8_000,
        "epsilon_final": 0.01,
        "evaluation_epsilon": 0.001,
        "padding": "SAME",
        "loss": "huber",
        "optimiser": "rmsprop",
        "learning_rate": 2.5e-4,
        "optimiser_epsilon": 1e-5,
        "reward_clip": 1.0,
        "timeouts_are_terminal": False,
    }
    assert {name: getattr(config, name) for name in expected} == expected
    assert config.options == options_of("momentum-dqn", {"shared_batch": False})
    # An Atari game without a preset is the paper's, too.
    _, unnamed = parse(["train", "momentum-dqn", "--env", "ALE/Seaquest-v5"])
    assert unnamed == command
    _, control = parse(["train", "dqn", "--env", "CartPole-v1"])
    assert control.preset == "control"


def test_epsilon_and_beta_of_the_papers_preset():
    config = Config("momentum-dqn", "ALE/Pong-v5", **preset_fields("paper"))
    epsilon = {0: 1.0, 20_000: 1.0, 145_000: 0.505, 270_000: 0.01, 50_000_000: 0.01}
    assert {k: pytest.approx(config.epsilon_schedule(k)) for k in epsilon} == epsilon
    beta = {0: 0, 2_499_999: 0, 2_500_000: 1 / 2, 5_000_000: 2 / 3, 47_500_000: 19 / 20}
    assert {k: pytest.approx(config.beta_of(k)) for k in beta} == beta


def test_train_evaluate_and_record_from_the_command_line(tmp_path, capsys, monkeypatch):
    import momentum_rl.envs.atari as atari

    monkeypatch.setattr(atari.make_atari, "__kwdefaults__", {"episode_steps": 40})
    monkeypatch.setattr(atari.AtariScreen.__init__, "__kwdefaults__", {"episode_steps": 40})
    out = tmp_path / "run"
    words = "train dqn --env ALE/Pong-v5 --steps 120 --iteration-steps 60 --replay-capacity 100"
    words += " --learning-starts 40 --batch-size 2 --epsilon-warmup 5 --epsilon-decay 10"
    assert main([*words.split(), "--final-episodes", "2", "--out", str(out)]) == 0
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [60, 120]
    assert [row["updates"] for row in rows] == [5, 20]
    assert json.loads((out / "evaluation.json").read_text())["episodes"] == 2
    capsys.readouterr()
    assert main(["evaluate", str(out), "--episodes", "2"]) == 0
    assert "episodes            2" in capsys.readouterr().out
    pytest.importorskip("imageio_ffmpeg")
    video = tmp_path / "game.mp4"
    assert main(["record", str(out), "--out", str(video)]) == 0
    import imageio_ffmpeg

    reader = imageio_ffmpeg.read_frames(str(video))
    about = next(reader)
    assert about["size"] == (160, 210)
    assert about["fps"] == 15
    assert sum(1 for _ in reader) == 41
