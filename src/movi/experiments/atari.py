"""The paper's Atari experiment, as data: 20 games, 4 algorithms, 5 seeds, 50,000,000 steps each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from movi.training.config import Config
from movi.training.presets import preset_fields

GAMES = (
    "Amidar",
    "Asterix",
    "Asteroids",
    "Atlantis",
    "Berzerk",
    "Breakout",
    "Centipede",
    "Enduro",
    "Frostbite",
    "Hero",
    "Jamesbond",
    "KungFuMaster",
    "MsPacman",
    "Pong",
    "RoadRunner",
    "Seaquest",
    "SpaceInvaders",
    "Tutankham",
    "UpNDown",
    "Zaxxon",
)
"""The games of the appendix's figures."""


@dataclass(frozen=True)
class AtariExperiment:
    """A comparison of algorithms on games, everything else equal."""

    name: str
    """What it is called."""
    algorithms: tuple[str, ...] = ("dqn", "momentum-dqn", "deep-sql", "deep-dpp")
    """Compared with each other."""
    games: tuple[str, ...] = GAMES
    """Each ALE/GAME-v5."""
    seeds: int = 5
    """Runs of each algorithm on each game, with seeds 0, 1, … (paper: 5)."""
    preset: str = "paper"
    """Of every run: algorithms are only comparable within one."""
    changes: tuple[tuple[str, Any], ...] = ()
    """Fields of the config that differ from the preset's, such as (("steps", 1_000_000),)."""

    def configs(
        self, games: Sequence[str] | None = None, seeds: Sequence[int] | None = None
    ) -> Iterator[Config]:
        """The config of every run; of some games or seeds only, if they are given.

        >>> configs = list(PAPER.configs())
        >>> len(configs), configs[0].env, configs[0].algorithm, configs[-1].seed
        (400, 'ALE/Amidar-v5', 'dqn', 4)
        """
        for game in self.games if games is None else games:
            for algorithm in self.algorithms:
                for seed in range(self.seeds) if seeds is None else seeds:
                    fields = {**preset_fields(self.preset), **dict(self.changes), "seed": seed}
                    yield Config(algorithm, f"ALE/{game}-v5", **fields)


PAPER = AtariExperiment("atari")
"""The paper's comparison: its figures of 20 games."""

MODERN = AtariExperiment("atari-modern", preset="modern")
"""The same with Adam and squared error."""

BETAS = tuple(
    AtariExperiment(
        f"atari-beta-{name}",
        algorithms=("momentum-dqn",),
        games=("Asterix", "Zaxxon"),
        changes=changes,
    )
    for name, changes in (
        ("0.1", (("beta_schedule", "constant"), ("beta", 0.1))),
        ("0.5", (("beta_schedule", "constant"), ("beta", 0.5))),
        ("0.9", (("beta_schedule", "constant"), ("beta", 0.9))),
        ("heuristic", (("beta_schedule", "heuristic"),)),
    )
)
"""The appendix's alternatives to the schedule of β, on its two games (fig:beta)."""

EXPERIMENTS = {experiment.name: experiment for experiment in (PAPER, MODERN, *BETAS)}
"""All of them, by name."""
