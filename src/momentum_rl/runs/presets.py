"""Named sets of hyper-parameters. Every algorithm of a comparison shares them all.

``paper``: Dopamine's DQN of 2019, the paper's baseline (its table of hyper-parameters, and what the
table leaves out from Dopamine's TensorFlow code). ``modern``: the same with Dopamine's later
optimiser and loss. ``control``: for small environments; see docs/agents.md for its origin.
``c51`` and ``munchausen``: the same with the optimisers of Dopamine's C51 and of Munchausen-DQN.
``minatar``: the DQN of MinAtar's authors (Young and Tian, arXiv:1903.03176, and their
examples/dqn.py: network, replay, batch, learning start, target period, ε), with one update every 4
steps instead of every step and the ``paper`` preset's optimiser, loss and share of κ.
``minatar-published``: the protocol of a published study of DQN and Munchausen-DQN on MinAtar
(Kitamura et al., arXiv:2305.13185): Adam, squared error, ε down to 0.1 over 1,000,000 steps, greedy
evaluations during the run.
``sac``: stable-baselines3's and SBX's for soft actor-critic; ε is 1 while they act at random, then
0. ``sac-cleanrl``: CleanRL's, but for the actor, which it moves twice every second update.
``sac-dopamine``: Dopamine's (its sac.gin), but for ln σ, which it leaves unbounded, and for y,
which it takes at the mean action of a lagged actor.
``c51-cleanrl``: CleanRL's C51 on CartPole, of which it publishes scores.
"""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from momentum_rl.agents.options import Options
from momentum_rl.agents.registry import known
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
_MINATAR_PUBLISHED = {
    **_MINATAR,
    "steps": 1_000_000,
    "learning_starts": 10_000,
    "epsilon_warmup": 0,
    "epsilon_decay": 1_000_000,
    "evaluation_epsilon": 0.0,
    "final_episodes": 100,
    "evaluate_every": 50_000,
    "periodic_episodes": 20,
    "loss": "squared",
    "optimiser": "adam",
    "optimiser_epsilon": 1e-8,
}
_C51_CLEANRL = {
    "steps": 500_000,
    "iteration_steps": 25_000,
    "save_every": 50_000,
    "checkpoint_every": 50_000,
    "replay_capacity": 10_000,
    "learning_starts": 9_999,  # from the 10,000th on: the replay holds no more
    "batch_size": 128,
    "update_period": 10,
    "sync_period": 500,
    "epsilon_warmup": 0,
    "epsilon_decay": 250_000,
    "epsilon_final": 0.05,
    "hidden": (120, 84),
    "learning_rate": 2.5e-4,
    "optimiser_epsilon": 0.01 / 128,
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
_SAC_CLEANRL = {**_SAC, "learning_starts": 5_000, "epsilon_warmup": 5_000, "learning_rate": 1e-3}
_SAC_DOPAMINE = {**_SAC, "learning_starts": 10_000, "epsilon_warmup": 10_000}


def _adam(learning_rate: float, optimiser_epsilon: float, loss: str = "huber") -> dict[str, Any]:
    """The paper's preset with Adam."""
    own = {"learning_rate": learning_rate, "optimiser_epsilon": optimiser_epsilon, "loss": loss}
    return {**_PAPER, "optimiser": "adam", **own}


_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "control": {},
    "paper": _PAPER,
    "modern": _adam(6.25e-5, 1.5e-4, "squared"),
    "c51": _adam(2.5e-4, 3.125e-4),
    "munchausen": _adam(5e-5, 3.125e-4),
    "minatar": _MINATAR,
    "minatar-published": _MINATAR_PUBLISHED,
    "sac": _SAC,
    "sac-cleanrl": _SAC_CLEANRL,
    "sac-dopamine": _SAC_DOPAMINE,
    "c51-cleanrl": _C51_CLEANRL,
}
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: MappingProxyType({"preset": name, **own}) for name, own in _FIELDS.items()}
)

_SUPPORTS: Mapping[str, Mapping[str, Any]] = {
    "control": {"atoms": 201, "v_min": -100.0, "v_max": 100.0},
    "c51-cleanrl": {"atoms": 101, "v_min": -100.0, "v_max": 100.0},
    "minatar": {"v_min": -100.0, "v_max": 100.0},
    "minatar-published": {"v_min": -100.0, "v_max": 100.0},
    "sac-cleanrl": {
        "actor_rate": 3e-4,
        "temperature_rate": 1e-3,
        "log_std": "tanh",
        "log_std_min": -5.0,
    },
    "sac-dopamine": {"entropy_each": -0.5, "reward_scale": 0.1},
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

    >>> preset_fields("modern")["learning_rate"]
    6.25e-05
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise UserError(f"preset: {name!r}, expected one of {', '.join(PRESETS)}")
    return dict(PRESETS[name])


def chosen_fields(name: str | None, env_id: str, algorithm: str | None) -> dict[str, Any]:
    """The fields that a run's preset sets: the one that is named, or its usual one.

    >>> chosen_fields(None, "MinAtar/Breakout", "dqn")["steps"]
    5000000
    >>> chosen_fields("modern", "Pendulum-v1", "sac")
    Traceback (most recent call last):
    momentum_rl.errors.UserError: preset: 'modern', expected one of sac, sac-cleanrl, ... for sac
    """
    chosen = preset_fields(usual_preset(env_id, algorithm) if name is None else name)
    kind = None if algorithm is None else known(algorithm)
    if kind is not None and kind.preset is not None:  # it has presets of its own
        own = [one for one in PRESETS if one == kind.preset or one.startswith(f"{kind.preset}-")]
        if chosen["preset"] not in own:
            raise UserError(f"preset: {name!r}, expected one of {', '.join(own)} for {algorithm}")
    return chosen


def preset_options(name: str, kind: type[Options]) -> dict[str, Any]:
    """The options of an algorithm that a preset sets, such as the atoms by the size of returns.

    >>> from momentum_rl.agents.algorithms import C51, DQN
    >>> preset_options("minatar", C51), preset_options("minatar", DQN)
    ({'v_min': -100.0, 'v_max': 100.0}, {})
    """
    known = {field.name for field in fields(kind)}
    return {key: value for key, value in _SUPPORTS.get(name, {}).items() if key in known}
