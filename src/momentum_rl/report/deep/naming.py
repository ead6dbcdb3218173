"""What environments, algorithms and settings are called in the report, and which are alike."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from momentum_rl.agents.algorithms import DeepSQL
from momentum_rl.agents.options import Averaging, default_kappa
from momentum_rl.agents.registry import title_of
from momentum_rl.runs.config import SHARED, Config, flat
from momentum_rl.runs.presets import PRESETS, preset_options

SUITES = {"ALE/": "Atari", "MinAtar/": "MinAtar", "gymnax/": "gymnax"}
"""By how the environments' ids begin."""


def suite_of(env: str) -> str:
    """What an environment belongs to.

    >>> suite_of("ALE/Pong-v5"), suite_of("MinAtar/Breakout"), suite_of("CartPole-v1")
    ('Atari', 'MinAtar', 'Gymnasium')
    """
    return next((name for start, name in SUITES.items() if env.startswith(start)), "Gymnasium")


def game_of(env: str) -> str:
    """An environment's name without what its suite says.

    >>> game_of("ALE/Pong-v5"), game_of("MinAtar/Breakout"), game_of("gymnax/CartPole-v1")
    ('Pong', 'Breakout', 'CartPole-v1')
    """
    for start in SUITES:
        if env.startswith(start):
            name = env.removeprefix(start)
            return name.removesuffix("-v5") if start == "ALE/" else name
    return env


def derived_labels(configs: Sequence[Config]) -> list[str]:
    """A label for each config: its algorithm, and in what it differs from others on its game.

    >>> one = Config("momentum-dqn", "CartPole-v1")
    >>> constant = Config("momentum-dqn", "CartPole-v1", options={"beta_schedule": "constant"})
    >>> derived_labels([one, constant])
    ['momentum-dqn', 'momentum-dqn β=0.5']
    >>> derived_labels([one, Config("momentum-dqn", "CartPole-v1", learning_rate=0.1)])
    ['momentum-dqn learning_rate=0.001', 'momentum-dqn learning_rate=0.1']
    """
    said = [_differences(config) for config in configs]
    values: dict[tuple[str, str, str], set[str]] = {}
    for config, own in zip(configs, said):
        for name, text in own.items():
            values.setdefault((config.env, config.algorithm, name), set()).add(text)
    varying = {(algorithm, name) for (_, algorithm, name), own in values.items() if len(own) > 1}
    presets = {config.preset for config in configs}
    plain = min(presets, key=preset_rank, default="")
    labels = []
    for config, own in zip(configs, said):
        parts = [config.algorithm]
        for name, text in own.items():
            if name in ("β", "sign"):
                parts += [text] if text else []
            elif name == "preset":
                parts += [f"({text})"] if text != plain else []
            elif (config.algorithm, name) in varying and (
                len(presets) == 1 or flat(config)[name] != usual(config, name)
            ):
                parts.append(f"{name}={text}")
        labels.append(" ".join(parts))
    return labels


def preset_rank(preset: str) -> int:
    """The paper's preset is what others differ from."""
    order = ("paper", "control", "minatar", "modern")
    return order.index(preset) if preset in order else len(order)


def usual(config: Config, name: str) -> Any:
    """A field's value in the config's preset; an option's default."""
    known = {field.name: field.default for field in (*fields(config.options), *fields(config))}
    known |= {
        **PRESETS.get(config.preset, {}),
        **preset_options(config.preset, type(config.options)),
    }
    return known.get(name)


def _differences(config: Config) -> dict[str, str]:
    """What can tell one config from another, as text: without what its algorithm does not use."""
    own = {"β": "", "sign": "", "preset": config.preset}
    options, said = config.options.to_json(), set()
    if isinstance(config.options, Averaging):
        said = {"beta_schedule", "kappa", "beta"}
        own["β"] = _beta(config.options, config.steps)
    if isinstance(config.options, DeepSQL):
        said.add("sign")
        own["sign"] = "" if config.options.sign == "sql" else f"({config.options.sign})"
    for name in options:
        if name not in said:
            own[name] = str(options[name])
    for name in SHARED:
        own[name] = str(getattr(config, name))
    return own


def _beta(options: Averaging, steps: int) -> str:
    """How β goes, if it is not the paper's schedule."""
    if options.beta_schedule == "constant":
        return f"β={options.beta:g}"
    parts = [] if options.beta_schedule == "rate-updates" else [f"({options.beta_schedule})"]
    if options.counts and options.kappa not in (None, default_kappa(steps)):
        parts.append(f"κ={options.kappa}")
    return " ".join(parts)


def alike(one: Config, other: Config) -> bool:
    """Whether two configs differ in nothing but what belongs to their algorithms."""
    return all(getattr(one, name) == getattr(other, name) for name in SHARED)


def pretty(label: str, algorithm: str) -> str:
    """A label with its algorithm's proper name.

    >>> pretty("momentum-dqn β=0.5", "momentum-dqn"), pretty("mine", "dqn")
    ('Momentum-DQN β=0.5', 'mine')
    """
    if label.startswith(algorithm):
        return title_of(algorithm) + label.removeprefix(algorithm)
    return label
