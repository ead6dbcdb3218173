"""Runs put side by side, game by game and algorithm by algorithm, and compared.

The rules that everything else relies on:

- An iteration in which no episode ended has no score; the last one is kept (before the first one,
  the first).
- A diverged run counts. From the iteration that it did not complete on, it has the lowest score
  that any run of these results reached on that game.
- An unfinished run is shown up to where it is, and is not compared.
- An algorithm is compared with the DQN whose settings are otherwise the same.

    #   iteration:   1     2     3     4     5
    #   finished:   10     -    30    40    50   →  10  10  30  40  50
    #   diverged:   10    20    25 (ended here)  →  10  20   0   0   0    (the game's lowest: 0)
    #   unfinished: 10    20    30  (so far)     →  10  20  30   .   .    (shown, not compared)
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentum_rl.agents.registry import title_of
from momentum_rl.report.statistics import Comparison, auc, compare
from momentum_rl.report.style import ALGORITHMS, FURTHER, Array, Style
from momentum_rl.runs.config import FIELDS, SHARED, Config, flat
from momentum_rl.runs.finding import Curve, Run, Score
from momentum_rl.runs.sweep import Sweep, slug

BASELINE = "dqn"
"""The algorithm that the others are compared with."""
SUITES = {"ALE/": "Atari", "MinAtar/": "MinAtar", "gymnax/": "gymnax"}
"""By how the environments' ids begin; others are Gymnasium's."""


@dataclass(frozen=True)
class GameScores:
    """The runs of a series on a game."""

    steps: Array
    """[points]: the agent steps of the scores, the ends of iterations or the evaluations."""
    scores: Array
    """[runs, points], by the rules above; NaN where an unfinished run has not been."""
    ended: NDArray[np.bool_]
    """By run: finished or diverged, so that it is compared."""
    diverged: tuple[int, ...] = ()
    """The points (from 0) that diverged runs did not reach."""
    evaluations: tuple[float, ...] = ()
    """Mean scores of the evaluations at the ends of runs."""

    @cached_property
    def areas(self) -> Array:
        """The area under the curve of each run that ended."""
        return auc(self.scores[self.ended])


@dataclass(frozen=True)
class Series:
    """An algorithm with its settings: one curve in every figure."""

    label: str
    config: Config
    """Of its first run."""
    style: Style


@dataclass(frozen=True)
class Results:
    """Runs that belong together: of one sweep or one folder, and one suite of environments."""

    name: str
    """Short, for the names of files."""
    title: str
    suite: str
    """Atari, MinAtar, gymnax, or Gymnasium."""
    games: tuple[str, ...]
    series: tuple[Series, ...]
    cells: Mapping[tuple[str, str], GameScores]
    """By game and label."""
    baselines: Mapping[tuple[str, str], str]
    """By game and label: the label that it is compared with."""
    runs: tuple[Run, ...] = ()
    score: Score = "training"
    """The kind of all scores here."""
    greedy: "Results | None" = None
    """Of results by the training score: the same runs by the greedy score, if they have one."""
    sweep: Sweep | None = None

    def labelled(self, label: str) -> Series:
        """The series with a label."""
        return next(series for series in self.series if series.label == label)

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """By label: against its baseline, over the games where both have runs that ended."""
        comparisons = {}
        for series in self.series:
            ours, theirs = {}, {}
            for game in self.games:
                baseline = self.baselines.get((game, series.label), "")
                one, other = (self.cells.get((game, name)) for name in (series.label, baseline))
                if one and other and one.ended.any() and other.ended.any():
                    ours[game], theirs[game] = areas_in_common(one, other)
            if any(areas.mean() != 0 for areas in theirs.values()):
                comparisons[series.label] = compare(ours, theirs)
        return comparisons

    def baseline_of(self, label: str) -> str:
        """What a series is compared with, in a word."""
        names = [self.baselines[key] for key in self.baselines if key[1] == label]
        return self.labelled(names[0]).style.label if names else "DQN"


def areas_in_common(ours: GameScores, theirs: GameScores) -> tuple[Array, Array]:
    """Areas of the runs that ended, over the points that both have."""
    common = min(ours.scores.shape[1], theirs.scores.shape[1])
    return auc(ours.scores[ours.ended, :common]), auc(theirs.scores[theirs.ended, :common])


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
    start = next((start for start in SUITES if env.startswith(start)), "")
    name = env.removeprefix(start)
    return name.removesuffix("-v5") if start == "ALE/" else name


def results_of(runs: Sequence[Run]) -> tuple[tuple[Results, ...], tuple[str, ...]]:
    """The runs by sweep and suite; and what is odd about them."""
    groups: dict[tuple[Path | None, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.root, suite_of(run.config.env)), []).append(run)
    results, odd, taken = [], [], Counter[str]()
    for (_, suite), together in groups.items():
        sweep = together[0].sweep
        name, title = suite.lower(), f"Deep agents on {suite}"
        if sweep is not None:
            name, title = slug(sweep.name)[:60], f"{title}: sweep {sweep.name}"
        taken[name] += 1
        name = name if taken[name] == 1 else f"{name}-{taken[name]}"
        one, problems = gathered(name, title, suite, together, sweep)
        results.append(one)
        odd += problems
    return tuple(results), tuple(odd)


def gathered(
    name: str, title: str, suite: str, runs: Sequence[Run], sweep: Sweep | None = None
) -> tuple[Results, list[str]]:
    """Some runs as results; and what is odd: a seed that is there twice counts once."""
    labels = dict(zip((run.path for run in runs), derived_labels([run.config for run in runs])))
    cells: dict[tuple[str, str], list[Run]] = {}
    odd, seen = [], dict[tuple[str, str, int], Run]()
    for run in sorted(runs, key=_order):
        label, game = run.label or labels[run.path], game_of(run.config.env)
        first = seen.setdefault((game, label, run.config.seed), run)
        if first is run:
            cells.setdefault((game, label), []).append(run)
        else:
            odd.append(f"{run.path}: the same run as {first.path}; counted once")
    configs = {key: cell[0].config for key, cell in cells.items()}
    by_training = Results(
        name,
        title,
        suite,
        tuple(dict.fromkeys(game for game, _ in cells)),
        _series(configs),
        _scores(cells, "training"),
        _baselines(configs),
        tuple(run for cell in cells.values() for run in cell),
        sweep=sweep,
    )
    greedy = _scores(cells, "greedy")
    if not greedy:
        return by_training, odd
    games = tuple(g for g in by_training.games if any(g == game for game, _ in greedy))
    changes = {"name": f"{name}-greedy", "score": "greedy", "games": games, "cells": greedy}
    return replace(by_training, greedy=replace(by_training, **changes)), odd  # type: ignore[arg-type]


def _order(run: Run) -> tuple[Any, ...]:
    """By game and algorithm; what a sweep declares goes before that."""
    config = run.config
    cell = sys.maxsize if run.cell is None else run.cell
    kind = (_rank(config.algorithm), config.algorithm, str(replace(config, seed=0)))
    return (cell, game_of(config.env), *kind, config.seed, str(run.path))


def _rank(algorithm: str) -> int:
    return list(ALGORITHMS).index(algorithm) if algorithm in ALGORITHMS else len(ALGORITHMS)


def derived_labels(configs: Sequence[Config]) -> list[str]:
    """A label for each config: its algorithm, and in what it differs from others on its game.

    >>> one = Config("momentum-dqn", "CartPole-v1")
    >>> derived_labels([one, one.replace(beta=0.9), Config("dqn", "CartPole-v1")])
    ['momentum-dqn beta=0.5', 'momentum-dqn beta=0.9', 'dqn']
    """
    described = [flat(config) for config in configs]
    values: dict[tuple[str, str, str], set[str]] = {}
    for config, fields in zip(configs, described):
        for name in {*SHARED, "preset"} | (fields.keys() - FIELDS):
            values.setdefault((config.env, config.algorithm, name), set()).add(str(fields[name]))
    varying = {
        (algorithm, name) for (_, algorithm, name), texts in values.items() if len(texts) > 1
    }
    return [
        " ".join(
            [config.algorithm]
            + [f"{name}={fields[name]}" for name in fields if (config.algorithm, name) in varying]
        )
        for config, fields in zip(configs, described)
    ]


def pretty(label: str, algorithm: str) -> str:
    """A label with its algorithm's proper name.

    >>> pretty("momentum-dqn β=0.5", "momentum-dqn"), pretty("mine", "dqn")
    ('Momentum-DQN β=0.5', 'mine')
    """
    if label.startswith(algorithm):
        return title_of(algorithm) + label.removeprefix(algorithm)
    return label


def _scores(cells: Mapping[tuple[str, str], Sequence[Run]], score: Score) -> dict[Any, GameScores]:
    """The scores of a kind; runs without any, or at other steps than most, have no place."""
    curves = {
        key: [(run, curve) for run in runs if (curve := run.curve(score)) is not None]
        for key, runs in cells.items()
    }
    lowest: dict[str, float] = {}
    for (game, _), pairs in curves.items():
        for _, curve in pairs:
            least = float(np.min(curve.scores[~np.isnan(curve.scores)], initial=np.inf))
            lowest[game] = min(least, lowest.get(game, np.inf))
    scores = {}
    for (game, label), pairs in curves.items():
        if not pairs:
            continue
        grids = Counter(tuple(curve.steps.tolist()) for _, curve in pairs)
        steps = np.array(grids.most_common(1)[0][0])
        same = [(run, curve) for run, curve in pairs if np.array_equal(curve.steps, steps)]
        points = np.stack([counted(curve, lowest[game]) for _, curve in same])
        ended = np.array([run.state != "unfinished" for run, _ in same])
        diverged = (curve.diverged_in for _, curve in same)
        evaluations = (run.evaluation for run, _ in pairs)
        scores[game, label] = GameScores(
            steps,
            points,
            ended & ~np.isnan(points).any(1),
            tuple(point for point in diverged if point is not None),
            tuple(mean for mean in evaluations if mean is not None),
        )
    return scores


def counted(curve: Curve, lowest: float) -> Array:
    """A run's scores by the rules above: one for every point that it has or should have had."""
    reached = curve.scores[: curve.diverged_in]
    scores = np.full(curve.steps.size, np.nan)
    known = np.flatnonzero(~np.isnan(reached))
    if known.size:
        last = np.searchsorted(known, np.arange(reached.size), side="right") - 1
        scores[: reached.size] = reached[known[np.maximum(last, 0)]]
    if curve.diverged_in is not None:
        scores[reached.size if known.size else 0 :] = lowest
    return scores


def _series(configs: Mapping[tuple[str, str], Config]) -> tuple[Series, ...]:
    """In order; the first of an algorithm, or what is called like it, has the algorithm's look."""
    first: dict[str, Config] = {}
    for (_, label), config in configs.items():
        first.setdefault(label, config)
    order = sorted(first, key=lambda label: _rank(first[label].algorithm))
    plain = {first[label].algorithm: label for label in reversed(order)}
    plain |= {label: label for label in order if label in ALGORITHMS}
    looks = iter(FURTHER * (1 + len(order) // len(FURTHER)))
    series = []
    for label in order:
        algorithm = first[label].algorithm
        look = ALGORITHMS.get(algorithm) if plain[algorithm] == label else None
        style = Style(pretty(label, algorithm), *(look or next(looks)))
        series.append(Series(label, first[label], style))
    return tuple(series)


def alike(one: Config, other: Config) -> bool:
    """Whether two configs differ in nothing but what belongs to their algorithms."""
    return all(getattr(one, name) == getattr(other, name) for name in SHARED)


def _baselines(configs: Mapping[tuple[str, str], Config]) -> dict[tuple[str, str], str]:
    baselines: dict[tuple[str, str], str] = {}
    for (game, label), config in configs.items():
        matching = [
            name
            for (place, name), other in configs.items()
            if place == game and other.algorithm == BASELINE and alike(config, other)
        ]
        if matching and config.algorithm != BASELINE:
            baselines[game, label] = matching[0]
    return baselines
