"""Small runs for the tests of training, what stops them, and what makes two of them equal."""

import pytest

from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_metrics
from momentum_rl.training.run_directory import Checkpoints
from momentum_rl.training.train import Watcher, train

RESULTS = (
    "metrics.jsonl",
    "evaluations.jsonl",
    "agent.safetensors",
    "best.safetensors",
    "evaluation.json",
    "config.json",
)
TINY = {
    "steps": 900,
    "iteration_steps": 250,
    "learning_starts": 50,
    "replay_capacity": 200,
    "sync_period": 31,  # with 30 every checkpoint would meet a sync
    "epsilon_warmup": 50,
    "epsilon_decay": 300,
    "batch_size": 8,
    "update_period": 2,
    "hidden": (8,),
    "final_episodes": 2,
    "evaluate_every": 300,
    "periodic_episodes": 2,
    "checkpoint_every": 60,
    "save_every": 300,
}
ATARI = {
    **TINY,
    "steps": 160,
    "iteration_steps": 50,
    "checkpoint_every": 20,
    "replay_capacity": 100,
    "batch_size": 2,
    "update_period": 8,
    "network": "mlp",
    "final_episodes": 0,
    "evaluate_every": 0,
}
SHORT = {
    **TINY,
    "steps": 300,
    "iteration_steps": 100,
    "checkpoint_every": 45,
    "replay_capacity": 120,
}
HOST = Config("momentum-dqn", "CartPole-v1", **SHORT)
FUSED = Config("momentum-dqn", "gymnax/CartPole-v1", **SHORT)


class Stop(Exception):
    pass


class StopAt(Watcher):
    """Something that goes wrong at a step."""

    def __init__(self, step):
        self.step, self.lines = step, []

    def announce(self, line):
        self.lines.append(line)

    def progress(self, loop):
        if loop.step >= self.step:
            raise Stop


def broken(config, out, *steps, **more):
    """A run that is broken off at these steps and goes on after each."""
    for step in steps:
        with pytest.raises(Stop):
            train(config, out, watcher=StopAt(step), **more)
    return train(config, out, **more)


def results(run):
    return {name: (run / name).read_bytes() for name in RESULTS if (run / name).exists()}


def assert_equal_runs(ours, theirs):
    """Every row, every final parameter, every copy, optimiser state and counter."""
    for name in RESULTS:
        if (theirs / name).exists():
            assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    a, b = Checkpoints(ours), Checkpoints(theirs)
    step = b.steps()[-1]
    assert a.steps()[-1] == step == read_metrics(ours)[-1]["step"]
    ours, theirs = a.read(step), b.read(step)
    assert ours.state == theirs.state
    assert ours.arrays.keys() == theirs.arrays.keys()
    for name, array in theirs.arrays.items():
        assert ours.arrays[name].tobytes() == array.tobytes(), name
