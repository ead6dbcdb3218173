"""An environment whose rewards are not always finite: its files are read by everybody all the same.

JSON has no word for such numbers; every file of ours has null for them.
"""

import json
import math
from itertools import product
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import momentum_rl
from momentum_rl.agents.agent import BEST_FILE, load
from momentum_rl.plumbing.reading import as_json, parsed
from momentum_rl.report.chapters import write_report
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_evaluations, read_metrics
from momentum_rl.training.train import train
from tests.training.runs import SHORT, Stop, StopAt, assert_equal_runs

pytestmark = pytest.mark.filterwarnings(
    "ignore:invalid value:RuntimeWarning", "ignore:overflow:RuntimeWarning"
)
CONFIG = Config("dqn", "odd", **{**SHORT, "reward_clip": 1.0, "evaluate_every": 100})
NOW_AND_THEN = {"inf": math.inf, "minus inf": -math.inf, "large": 1e305}


class Odd(gym.Env):
    """Episodes of 9 steps with the reward 1, but for an odd one, by the seed, in some episodes."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, odd):
        self.odd = odd

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.at = 0, int(self.np_random.integers(30))
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), {}

    def step(self, action):
        self.t += 1
        reward = self.odd if self.t == self.at else 1.0
        seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return seen, reward, self.t == 9, False, {}


def strict(text):
    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def parts(odd):
    def make(n):
        mode = gym.vector.AutoresetMode.DISABLED
        return momentum_rl.envs.gym_vector.GymnasiumVector(
            gym.vector.SyncVectorEnv([lambda: Odd(odd)] * n, autoreset_mode=mode)
        )

    return {"environment": make(1), "make_environment": make}


@pytest.mark.parametrize("name", NOW_AND_THEN)
def test_a_run_with_odd_rewards_goes_on_exactly_and_its_files_are_read(name, tmp_path):
    odd, whole, run = NOW_AND_THEN[name], tmp_path / "whole", tmp_path / "broken"
    first = train(CONFIG, whole, **parts(odd))
    for step in (110, 250):
        with pytest.raises(Stop):
            train(CONFIG, run, watcher=StopAt(step), **parts(odd))
    last = StopAt(10**9)
    train(CONFIG, run, watcher=last, **parts(odd))
    assert "goes on from the checkpoint of step 225" in last.lines
    assert_equal_runs(run, whole)
    scores = [row["score"] for row in read_metrics(whole)]
    assert None in scores
    for file in [*whole.glob("*.json"), *whole.glob("*.jsonl")]:
        lines = file.read_text().splitlines()
        for text in lines if file.suffix == ".jsonl" else [file.read_text()]:
            strict(text)
    again = train(CONFIG, whole, **parts(odd))  # from its files
    assert again.loop is None
    np.testing.assert_array_equal(
        np.isfinite(again.evaluation.returns),
        np.abs(np.nan_to_num(first.evaluation.returns, nan=np.inf)) < 1e300,
    )
    finite = [r for r in read_evaluations(whole) if r["mean"] is not None]
    assert (whole / BEST_FILE).is_file() == bool(finite)
    if finite:
        assert load(whole, best=True).about["evaluation"]["mean"] == max(r["mean"] for r in finite)
    write_report(tmp_path, tmp_path / "report.html")


def test_an_evaluation_that_is_not_finite_is_not_the_best(tmp_path):
    config = CONFIG.replace(periodic_episodes=1)
    result = train(config, tmp_path, **parts(math.inf))
    rows = read_evaluations(tmp_path)
    known = [row["mean"] for row in rows if row["mean"] is not None]
    assert len(known) < len(rows)
    assert result.best.about["evaluation"]["mean"] == max(known) == 9.0


def test_what_is_written_is_what_is_read():
    odd = [math.inf, -math.inf, math.nan, 1e301, 1e300, 0.1, -0.0, 5e-324, 2**63 - 1, "NaN", None]
    for one, other in product(odd, odd):
        text = as_json({"a": [one, {"b": (other,)}]})
        read = parsed(text, "it")
        assert strict(text) == read
        for given, value in ((one, read["a"][0]), (other, read["a"][1]["b"][0])):
            kept = not isinstance(given, float) or abs(given) <= 1e300
            assert value == given if kept else value is None


def test_no_file_of_ours_is_written_by_another_rule():
    """``json.dumps`` writes Infinity unless it is told not to."""
    package, files = Path(momentum_rl.__file__).parent, []
    for file in sorted(package.rglob("*.py")):
        for line in file.read_text().splitlines():
            if "json.dumps(" in line and "allow_nan=False" not in line:
                files.append(file.relative_to(package).as_posix())
    # An option's text, which is read from a config; and a figure.
    assert files == ["core/options.py", "report/page.py"]
