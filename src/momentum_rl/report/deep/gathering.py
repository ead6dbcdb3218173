"""Runs put side by side for the deep half of the report.

The rules that everything else relies on:

- An iteration in which no episode ended has no score; the last one stands (before the first one,
  the first).
- A diverged run counts. From the iteration that it did not complete on, it has the lowest score
  that any run of these results reached on that game.
- An unfinished run is shown up to where it is, and is not compared.
- An algorithm is compared with the DQN whose settings are otherwise the same. A second DQN (of
  another preset, say) is compared with the first if its runs are as long.

    #   iteration:   1     2     3     4     5
    #   finished:   10     -    30    40    50   →  10  10  30  40  50
    #   diverged:   10    20    25 (ended here)  →  10  20   0   0   0    (the game's lowest: 0)
    #   unfinished: 10    20    30  (so far)     →  10  20  30   .   .    (shown, not compared)
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from momentum_rl.agents.algorithms import DeepSQL
from momentum_rl.agents.options import Averaging
from momentum_rl.plumbing.games import GAMES
from momentum_rl.report.deep.naming import (
    alike,
    derived_labels,
    game_of,
    preset_rank,
    pretty,
    suite_of,
)
from momentum_rl.report.deep.protocol import notes_of, protocol_of
from momentum_rl.report.deep.references import PUBLISHED_STEPS, Reference
from momentum_rl.report.deep.results import BASELINE, MOMENTUM, GameScores, Results, Series
from momentum_rl.report.drawing.numbers import Array, span
from momentum_rl.report.drawing.styles import DEEP, FURTHER, Style
from momentum_rl.runs.config import Config
from momentum_rl.runs.finding import Curve, Run, Score
from momentum_rl.runs.sweep import Sweep, slug


def results_of(
    runs: Sequence[Run], reference: Reference | None = None
) -> tuple[tuple[Results, ...], tuple[str, ...]]:
    """The runs by sweep and suite; and what is odd about them."""
    groups: dict[tuple[Path | None, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.root, suite_of(run.config.env)), []).append(run)
    found, odd, names = [], [], dict[str, int]()
    for (_, suite), own in groups.items():
        labelled, problems = _labelled(own)
        odd += problems
        sweep = own[0].sweep
        if sweep is not None:
            name, title = slug(sweep.name)[:60], f"Deep agents on {suite}: sweep {sweep.name}"
            title += f", scale {sweep.scale}" if sweep.scale else ""
        else:
            name, title = suite.lower(), f"Deep agents on {suite}"
        number = names[name] = names.get(name, 0) + 1
        if number > 1:
            name = f"{name}-{number}"
        found.append(_results(name, title, suite, labelled, reference, sweep))
    return tuple(found), tuple(odd)


def pooled_results(
    runs: Sequence[Run], reference: Reference | None = None
) -> tuple[dict[tuple[str, str], Results], tuple[str, ...]]:
    """The runs of several sweeps together, by suite and preset; and what is odd about them."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((suite_of(run.config.env), run.config.preset), []).append(run)
    found, odd = {}, []
    for (suite, preset), own in groups.items():
        labelled, problems = _labelled(own)
        odd += problems
        name, title = slug(f"{suite} {preset}").lower(), f"{suite}, preset {preset}"
        found[suite, preset] = _results(name, title, suite, labelled, reference)
    return found, tuple(odd)


Labelled = dict[tuple[str, str], list[Run]]
"""By game and label."""


def _labelled(runs: Sequence[Run]) -> tuple[Labelled, list[str]]:
    """The runs under their labels; a seed that is there twice counts once."""
    configs = [run.config for run in runs]
    labels = dict(zip((run.path for run in runs), derived_labels(configs)))
    cells: Labelled = {}
    odd, seen = [], dict[tuple[str, str, int], Run]()
    for run in sorted(runs, key=_order):
        label = run.label or labels[run.path]
        game = game_of(run.config.env)
        first = seen.setdefault((game, label, run.config.seed), run)
        if first is not run:
            odd.append(f"{run.path}: the same run as {first.path}; counted once")
            continue
        cells.setdefault((game, label), []).append(run)
    return cells, odd


def _order(run: Run) -> tuple[Any, ...]:
    """Games in the paper's order, algorithms too; what a sweep declares goes before that."""
    game, algorithm = game_of(run.config.env), run.config.algorithm
    return (
        sys.maxsize if run.cell is None else run.cell,
        GAMES.index(game) if game in GAMES else len(GAMES),
        game,
        list(DEEP).index(algorithm) if algorithm in DEEP else len(DEEP),
        algorithm,
        preset_rank(run.config.preset),
        str(replace(run.config, seed=0)),
        run.config.seed,
        str(run.path),
    )


def _results(
    name: str,
    title: str,
    suite: str,
    cells: Labelled,
    reference: Reference | None,
    sweep: Sweep | None = None,
) -> Results:
    games = tuple(dict.fromkeys(game for game, _ in cells))
    runs = tuple(run for own in cells.values() for run in own)
    configs = {key: own[0].config for key, own in cells.items()}
    if len(games) == 1:
        title = title.replace(f"on {suite}", f"on {games[0]} ({suite})")
    notes = notes_of(runs, sweep)
    laid_over = None if reference is None else reference.of(suite, "training", games)
    lengths = [config.iteration_steps for config in configs.values()]
    if laid_over is not None and set(lengths) != {PUBLISHED_STEPS}:
        laid_over = None
        notes += (
            "The published curves are not laid over: their iterations have "
            f"{PUBLISHED_STEPS:,} steps, these {span(lengths)}.",
        )
    by_training = Results(
        name=name,
        title=title,
        suite=suite,
        games=games,
        series=_series(configs),
        cells=_cells(cells, "training"),
        baselines=_baselines(configs),
        protocol=protocol_of(suite, cells, "training"),
        runs=runs,
        reference=laid_over,
        sweep=sweep,
        notes=notes,
    )
    greedy = _cells(cells, "greedy")
    if not greedy:
        return by_training
    by_greedy = replace(
        by_training,
        name=f"{name}-greedy",
        score="greedy",
        games=tuple(game for game in games if any(own == game for own, _ in greedy)),
        cells=greedy,
        protocol=protocol_of(suite, cells, "greedy"),
        reference=None if reference is None else reference.of(suite, "greedy", games),
    )
    return replace(by_training, greedy=by_greedy)


def _cells(cells: Labelled, score: Score) -> dict[tuple[str, str], GameScores]:
    """The scores of a kind; runs without any, or at other steps than most, have no place."""
    found = {}
    for key, own in cells.items():
        with_any = [run for run in own if run.curve(score) is not None]
        if with_any:
            found[key] = _cell(with_any, score, _lowest(key[0], cells, score))
    return found


def _lowest(game: str, cells: Labelled, score: Score) -> float:
    """The lowest score that any run reached on a game; NaN if there is none."""
    runs = [run for (own, _), runs in cells.items() if own == game for run in runs]
    curves = [curve for run in runs if (curve := run.curve(score)) is not None]
    known = np.concatenate([curve.scores for curve in curves])
    known = known[~np.isnan(known)]
    return float(np.min(known)) if known.size else np.nan


def _cell(runs: Sequence[Run], score: Score, lowest: float) -> GameScores:
    curves = {run.path: curve for run in runs if (curve := run.curve(score)) is not None}
    grids = Counter(tuple(curve.steps.tolist()) for curve in curves.values())
    steps = np.array(grids.most_common(1)[0][0])
    curves = {path: own for path, own in curves.items() if np.array_equal(own.steps, steps)}
    there = [run for run in runs if run.path in curves]
    scores = np.stack([counted(curves[run.path], lowest) for run in there])
    ended = np.array([run.state != "unfinished" for run in there]) & ~np.isnan(scores).any(1)
    diverged = (curves[run.path].diverged_in for run in there)
    return GameScores(
        steps,
        scores,
        ended,
        tuple(point for point in diverged if point is not None),
        tuple(run.evaluation for run in there if run.evaluation is not None),
    )


def counted(curve: Curve, lowest: float) -> Array:
    """A run's scores by the rules above: one for every point that it has or should have had."""
    own = curve.scores if curve.diverged_in is None else curve.scores[: curve.diverged_in]
    scores = np.full(curve.steps.size, np.nan)
    known = np.flatnonzero(~np.isnan(own))
    if known.size:
        last = np.searchsorted(known, np.arange(own.size), side="right") - 1
        scores[: own.size] = own[known[np.maximum(last, 0)]]
    if curve.diverged_in is not None:
        scores[own.size if known.size else 0 :] = lowest
    return scores


def _series(configs: Mapping[tuple[str, str], Config]) -> tuple[Series, ...]:
    first: dict[str, Config] = {}
    for (_, label), config in configs.items():
        first.setdefault(label, config)
    order = sorted(first, key=lambda label: _place(first[label].algorithm))
    principal: dict[str, str] = {}
    for label in order:
        config = first[label]
        if config.algorithm not in principal or (
            _schedule(config) == "rate-updates"
            and _schedule(first[principal[config.algorithm]]) != "rate-updates"
        ):
            principal[config.algorithm] = label
    looks = iter(FURTHER * (1 + len(order) // len(FURTHER)))
    found = []
    for label in order:
        config = first[label]
        algorithm = config.algorithm
        style = DEEP.get(algorithm)
        plain = principal[algorithm] == label and style is not None
        text = pretty(label, algorithm)
        look = (style.colour, style.dash) if plain and style is not None else next(looks)
        own = label != principal[algorithm] and algorithm == MOMENTUM
        found.append(
            Series(
                label,
                algorithm,
                Style(text, *look),
                _constant(config),
                config.options.sign if isinstance(config.options, DeepSQL) else None,
                main=not (own and alike(config, first[principal[algorithm]])),
            )
        )
    return tuple(found)


def _schedule(config: Config) -> str | None:
    """What the schedule of β is called; None for an algorithm without."""
    options = config.options
    return options.beta_schedule if isinstance(options, Averaging) else None


def _constant(config: Config) -> float | None:
    """β, if it is constant."""
    options = config.options
    if isinstance(options, Averaging) and options.beta_schedule == "constant":
        return options.beta
    return None


def _place(algorithm: str) -> int:
    return list(DEEP).index(algorithm) if algorithm in DEEP else len(DEEP)


def _baselines(configs: Mapping[tuple[str, str], Config]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for (game, label), config in configs.items():
        others = {
            own: other
            for (place, own), other in configs.items()
            if place == game and other.algorithm == BASELINE
        }
        if config.algorithm == BASELINE:
            first = next(iter(others))
            as_long = (others[first].steps, others[first].iteration_steps)
            if first != label and as_long == (config.steps, config.iteration_steps):
                found[game, label] = first
            continue
        matching = [own for own, other in others.items() if alike(config, other)]
        if matching:
            found[game, label] = matching[0]
    return found
