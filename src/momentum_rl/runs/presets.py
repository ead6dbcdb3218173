"""Named sets of hyper-parameters. Every algorithm of a comparison shares them all.

``paper``: Dopamine's DQN of 2019, the paper's baseline (its table of hyper-parameters, and what the
table leaves out from Dopamine's TensorFlow code). ``control``: for small environments; see
docs/agents.md for its origin. ``minatar``: the DQN of MinAtar's authors (Young and Tian,
arXiv:1903.03176, and their examples/dqn.py: network, replay, batch, learning start, target period,
ε), with one update every 4 steps instead of every step and the ``paper`` preset's optimiser, loss
and share of κ. ``sac``: stable-baselines3's and SBX's for soft actor-critic; ε is 1 while they act
at random, then 0.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from momentum_rl.agents.registry import known
from momentum_rl.core.options import Options
from momentum_rl.errors import UserError

_PAPER = {
    "steps": 50_000_000,
    "num_envs": 1,
    "iteration_steps": 250_000,
    "save_every": 250_000,
    "checkpoint_every": 5_000,
    "gamma": 0.99,
    "replay_capacity": 1_000_000,
    "learning_starts": 20_000,
    "batch_size": 32,
    "update_period": 4,
    "sync_period": 8_000,
    "epsilon_warmup": 20_000,
    "epsilon_decay": 250_000,
    "epsilon_final": 0.01,
    "evaluation_epsilon": 0.001,
    "padding": "SAME",
    "loss": "huber",
    "optimiser": "rmsprop",
    "learning_rate": 2.5e-4,
    "optimiser_epsilon": 1e-5,
    "reward_clip": 1.0,
}
_MINATAR = {
    **_PAPER,
    "steps": 5_000_000,
    "iteration_steps": 50_000,
    "checkpoint_every": 50_000,
    "replay_capacity": 100_000,
    "learning_starts": 5_000,
    "sync_period": 1_000,
    "epsilon_warmup": 5_000,
    "epsilon_decay": 100_000,
    "epsilon_final": 0.1,
    "network": "minatar",
    "reward_clip": None,
}
_SAC = {
    "iteration_steps": 5_000,
    "replay_capacity": 1_000_000,
    "learning_starts": 100,
    "batch_size": 256,
    "update_period": 1,
    "epsilon_warmup": 100,
    "epsilon_decay": 1,
    "epsilon_final": 0.0,
    "evaluation_epsilon": 0.0,
    "hidden": (256, 256),
    "loss": "squared",
    "optimiser": "adam",
    "learning_rate": 3e-4,
    "optimiser_epsilon": 1e-8,
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "control": {"preset": "control"},
    "paper": {"preset": "paper", **_PAPER},
    "minatar": {"preset": "minatar", **_MINATAR},
    "sac": {"preset": "sac", **_SAC},
}

_SUPPORTS: Mapping[str, Mapping[str, Any]] = {
    "control": {"atoms": 201, "v_min": -100.0, "v_max": 100.0},
    "minatar": {"v_min": -100.0, "v_max": 100.0},
}


def usual_preset(env_id: str, algorithm: str | None = None) -> str:
    """The preset of a run that names none: its algorithm's, or else that of its environments.

    >>> usual_preset("ALE/Pong-v5"), usual_preset("CartPole-v1"), usual_preset("Pendulum-v1", "sac")
    ('paper', 'control', 'sac')
    """
    kind = None if algorithm is None else known(algorithm)
    if kind is not None and kind.preset is not None:
        return kind.preset
    return {"ALE": "paper", "MinAtar": "minatar"}.get(env_id.partition("/")[0], "control")


def preset_fields(name: str) -> dict[str, Any]:
    """The fields that a preset sets; the others keep the config's defaults.

    >>> preset_fields("paper")["learning_rate"]
    0.00025
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise UserError(f"preset: {name!r}, expected one of {', '.join(PRESETS)}")
    return dict(PRESETS[name])


def chosen_fields(name: str | None, env_id: str, algorithm: str | None) -> dict[str, Any]:
    """The fields that a run's preset sets: the one that is named, or its usual one.

    >>> chosen_fields(None, "MinAtar/Breakout", "dqn")["steps"]
    5000000
    >>> chosen_fields("paper", "Pendulum-v1", "sac")
    Traceback (most recent call last):
    momentum_rl.errors.UserError: preset: 'paper', expected sac for sac
    """
    chosen = preset_fields(usual_preset(env_id, algorithm) if name is None else name)
    kind = None if algorithm is None else known(algorithm)
    only = None if kind is None else kind.preset
    if only is not None and chosen["preset"] != only:
        raise UserError(f"preset: {name!r}, expected {only} for {algorithm}")
    return chosen


def preset_options(name: str, kind: type[Options]) -> dict[str, Any]:
    """The options of an algorithm that a preset sets, such as the atoms by the size of returns.

    >>> from momentum_rl.core.targets import C51, DoubleDQN
    >>> preset_options("minatar", C51), preset_options("minatar", DoubleDQN)
    ({'v_min': -100.0, 'v_max': 100.0}, {})
    """
    known = {field.name for field in fields(kind)}
    return {key: value for key, value in _SUPPORTS.get(name, {}).items() if key in known}
