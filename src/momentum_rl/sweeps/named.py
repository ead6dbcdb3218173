"""The sweeps that have names, each at three scales.

``paper`` is the protocol in full. ``laptop`` keeps the matrix as far as a night on two cores
allows, with shorter runs of the same shape. ``quick`` only shows that everything works: its numbers
mean nothing. What each takes is in docs/sweeps.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from momentum_rl.errors import UserError
from momentum_rl.plumbing.games import BETA_GAMES, GAMES, MINATAR
from momentum_rl.runs.matrix import Variant, cross
from momentum_rl.runs.sweep import Sweep

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
        "final_episodes": 1,
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
        "final_episodes": 2,
    },
}


class _Named(NamedTuple):
    """A sweep that has a name: what it consists of at each scale."""

    variants: tuple[Variant, ...]
    games: Mapping[str, Sequence[str]]
    seeds: Mapping[str, int]
    env: str = "MinAtar/{}"
    preset: str = "minatar"
    short: Mapping[str, Mapping[str, Any]] = _SHORT_MINATAR


def _by_scale(quick: Any, laptop: Any, paper: Any) -> dict[str, Any]:
    return dict(zip(SCALES, (quick, laptop, paper)))


_ATARI: Any = {"env": "ALE/{}-v5", "preset": "paper", "short": _SHORT_ATARI}
_MINATAR = _by_scale(MINATAR[:2], MINATAR, MINATAR)
_THREE = ("Asterix", "Breakout", "Seaquest")

NAMED: Mapping[str, _Named] = {
    "paper-atari": _Named(
        (*ALGORITHMS, PRINTED), _by_scale(BETA_GAMES, _THREE, GAMES), _by_scale(1, 2, 5), **_ATARI
    ),
    "paper-beta": _Named(
        BETAS, _by_scale(BETA_GAMES, BETA_GAMES, BETA_GAMES), _by_scale(1, 1, 5), **_ATARI
    ),
    "minatar": _Named((*ALGORITHMS, PRINTED), _MINATAR, _by_scale(2, 5, 5)),
    "minatar-beta": _Named(BETAS, _MINATAR, _by_scale(2, 3, 5)),
    "minatar-published": _Named(
        PUBLISHED,
        _MINATAR,
        _by_scale(1, 3, 5),
        preset="minatar-published",
        short={"quick": _SHORT_MINATAR["quick"]},
    ),
    "optimisers": _Named(
        OPTIMISERS, _by_scale(BETA_GAMES[:1], BETA_GAMES, GAMES), _by_scale(1, 2, 5), **_ATARI
    ),
}
"""The sweeps by name."""


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
    own = NAMED[name]
    return cross(
        name,
        [own.env.format(game) for game in own.games[scale]],
        own.variants,
        range(own.seeds[scale]),
        scale=scale,
        preset=own.preset,
        options=own.short.get(scale),
    )
