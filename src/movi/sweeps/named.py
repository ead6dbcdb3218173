"""The sweeps that have names, each at three scales.

``paper`` is the protocol in full. ``laptop`` keeps the matrix as far as a night on two cores
allows, with shorter runs of the same shape. ``quick`` only shows that everything works: its numbers
mean nothing. What each takes is in docs/sweeps.md.
"""

from collections.abc import Callable
from typing import Any

from movi.envs.gymnax_env import MINATAR
from movi.errors import UserError
from movi.experiments.atari import BETA_GAMES, GAMES
from movi.runs.sweep import Sweep
from movi.sweeps.matrix import Variant, cross

SCALES = ("quick", "laptop", "paper")

ALGORITHMS = tuple(map(Variant, ("dqn", "momentum-dqn", "deep-sql", "deep-dpp")))
"""The paper's four."""

PRINTED = Variant("deep-sql", "deep-sql (printed)", options=(("sign", "printed"),))
"""Deep SQL with the sign that the appendix prints, which the paper's statements are about."""

BETAS = (
    Variant("dqn"),
    Variant("momentum-dqn"),
    *(
        Variant(
            "momentum-dqn",
            f"momentum-dqn β={beta}",
            options=(("beta_schedule", "constant"), ("beta", beta)),
        )
        for beta in (0.1, 0.5, 0.9)
    ),
    Variant("momentum-dqn", "momentum-dqn (heuristic)", options=(("beta_schedule", "heuristic"),)),
)
"""The schedule of β, the appendix's alternatives to it (fig:beta), and DQN."""

OPTIMISERS = tuple(
    Variant(algorithm, f"{algorithm} (modern)" if preset == "modern" else "", preset)
    for preset in ("paper", "modern")
    for algorithm in ("dqn", "momentum-dqn")
)
"""What the optimiser and the loss change, and what momentum changes."""

PUBLISHED = (
    *ALGORITHMS,
    PRINTED,
    Variant("deep-dpp", "deep-dpp η=10", options=(("eta", 10.0),)),
    Variant("munchausen-dqn"),
    Variant("momentum-munchausen-dqn"),
)
"""The paper's algorithms and the forms of Deep DPP and of DQN that others published."""

_SHORT_ATARI: dict[str, dict[str, Any]] = {
    # 20 iterations, as many as β has values. The replay holds the whole run (0.72 GB).
    "laptop": {
        "steps": 100_000,
        "iteration_steps": 5_000,
        "save_every": 50_000,
        "replay_capacity": 100_000,
        "learning_starts": 1_000,
        "sync_period": 1_000,
        "epsilon_warmup": 1_000,
        "epsilon_decay": 10_000,
    },
    "quick": {
        "steps": 400,
        "iteration_steps": 200,
        "save_every": 200,
        "replay_capacity": 400,
        "learning_starts": 200,
        "sync_period": 100,
        "epsilon_warmup": 100,
        "epsilon_decay": 300,
        "evaluation_episodes": 1,
    },
}

_SHORT_MINATAR: dict[str, dict[str, Any]] = {
    # A fifth of everything but the replay and the target period.
    "laptop": {
        "steps": 1_000_000,
        "iteration_steps": 10_000,
        "save_every": 50_000,
        "learning_starts": 1_000,
        "epsilon_warmup": 1_000,
        "epsilon_decay": 20_000,
    },
    "quick": {
        "steps": 2_000,
        "iteration_steps": 500,
        "save_every": 1_000,
        "replay_capacity": 2_000,
        "learning_starts": 200,
        "sync_period": 100,
        "epsilon_warmup": 200,
        "epsilon_decay": 1_000,
        "evaluation_episodes": 2,
    },
}


def _atari(
    name: str,
    scale: str,
    variants: tuple[Variant, ...],
    games: dict[str, tuple[str, ...]],
    seeds: dict[str, int],
) -> Sweep:
    return cross(
        name,
        [f"ALE/{game}-v5" for game in games[scale]],
        variants,
        range(seeds[scale]),
        scale=scale,
        preset="paper",
        options=_SHORT_ATARI.get(scale),
    )


def _minatar(
    name: str,
    scale: str,
    variants: tuple[Variant, ...],
    seeds: dict[str, int],
    preset: str = "minatar",
) -> Sweep:
    short = {} if preset == "minatar-published" and scale == "laptop" else _SHORT_MINATAR
    return cross(
        name,
        [f"MinAtar/{game}" for game in (MINATAR[:2] if scale == "quick" else MINATAR)],
        variants,
        range(seeds[scale]),
        scale=scale,
        preset=preset,
        options=short.get(scale),
    )


def _paper_atari(scale: str) -> Sweep:
    games = {"quick": BETA_GAMES, "laptop": ("Asterix", "Breakout", "Seaquest"), "paper": GAMES}
    variants = (*ALGORITHMS, PRINTED)
    return _atari("paper-atari", scale, variants, games, {"quick": 1, "laptop": 2, "paper": 5})


def _paper_beta(scale: str) -> Sweep:
    games: dict[str, tuple[str, ...]] = dict.fromkeys(SCALES, BETA_GAMES)
    return _atari("paper-beta", scale, BETAS, games, {"quick": 1, "laptop": 1, "paper": 5})


def _optimisers(scale: str) -> Sweep:
    games = {"quick": BETA_GAMES[:1], "laptop": BETA_GAMES, "paper": GAMES}
    return _atari("optimisers", scale, OPTIMISERS, games, {"quick": 1, "laptop": 2, "paper": 5})


def _minatar_algorithms(scale: str) -> Sweep:
    seeds = {"quick": 2, "laptop": 5, "paper": 5}
    return _minatar("minatar", scale, (*ALGORITHMS, PRINTED), seeds)


def _minatar_beta(scale: str) -> Sweep:
    return _minatar("minatar-beta", scale, BETAS, {"quick": 2, "laptop": 3, "paper": 5})


def _minatar_published(scale: str) -> Sweep:
    seeds = {"quick": 1, "laptop": 3, "paper": 5}
    return _minatar("minatar-published", scale, PUBLISHED, seeds, "minatar-published")


NAMED: dict[str, Callable[[str], Sweep]] = {
    "paper-atari": _paper_atari,
    "paper-beta": _paper_beta,
    "minatar": _minatar_algorithms,
    "minatar-beta": _minatar_beta,
    "minatar-published": _minatar_published,
    "optimisers": _optimisers,
}
"""By name, each a function of the scale."""


def named_sweep(name: str, scale: str) -> Sweep:
    """A sweep by its name, at a scale.

    >>> sweep = named_sweep("paper-atari", "paper")
    >>> sweep.runs, sweep.steps, sweep.cells[0].env, sweep.cells[0].label
    (500, 25000000000, 'ALE/Amidar-v5', 'dqn')
    """
    if name not in NAMED:
        raise UserError(
            f"sweep: {name!r}, expected one of {', '.join(NAMED)} or a file (.toml or .json)"
        )
    if scale not in SCALES:
        raise UserError(f"scale: {scale!r}, expected one of {', '.join(SCALES)}")
    return NAMED[name](scale)
