"""Published curves against each other, as results of their own."""

import numpy as np

from momentum_rl.plumbing.games import GAMES, MINATAR
from momentum_rl.report.deep.references import Reference, plain
from momentum_rl.report.deep.results import BASELINE, MOMENTUM, GameScores, Results, Series
from momentum_rl.report.drawing.numbers import span
from momentum_rl.report.drawing.styles import DEEP, FURTHER, Style
from momentum_rl.runs.finding import Score

KINDS: tuple[tuple[str, Score], ...] = (("Atari", "training"), ("MinAtar", "greedy"))
"""Of the curves that can be read: the suite and the score."""


def published_results(reference: Reference) -> tuple[Results, ...]:
    """The variants of published curves against each other, where there are several.

    The baseline is the variant called DQN, or else the first.
    """
    kinds = ((suite, score, reference.of(suite, score)) for suite, score in KINDS)
    return tuple(
        _results(suite, score, own)
        for suite, score, own in kinds
        if own is not None and len(own.variants) > 1
    )


def _results(suite: str, score: Score, reference: Reference) -> Results:
    names = reference.variants
    baseline = next((name for name in names if name.lower() == BASELINE), names[0])
    order = (baseline, *(name for name in names if name != baseline))
    known = {plain(game): game for game in (*GAMES, *MINATAR)}
    cells: dict[tuple[str, str], GameScores] = {}
    for (game, variant), own in reference.curves.items():
        complete = np.asarray(~np.isnan(own.scores).any(1))
        name = known.get(plain(game), game)
        cells[name, variant] = GameScores(own.steps, own.scores, complete)
    usual = GAMES if suite == "Atari" else MINATAR
    games = sorted(
        dict.fromkeys(game for game, _ in cells),
        key=lambda game: (usual.index(game) if game in usual else len(usual), game),
    )
    looks = (DEEP[BASELINE], DEEP[MOMENTUM], *(Style("", *look) for look in FURTHER))
    runs = span([cell.scores.shape[0] for cell in cells.values()])
    return Results(
        name="published" if suite == "Atari" else f"published-{suite.lower()}",
        title=f"Published curves against each other: {suite}",
        suite=suite,
        games=tuple(games),
        series=tuple(
            Series(name, name, Style(name, look.colour, look.dash))
            for name, look in zip(order, looks)
        ),
        cells=cells,
        baselines={key: baseline for key in cells if key[1] != baseline},
        score=score,
        protocol=(
            f"Published {score} scores, from {reference.name}: "
            f"{runs} {'run (or mean over runs)' if runs == '1' else 'runs'} of each variant on "
            f"each game, {span([cell.scores.shape[1] for cell in cells.values()])} points. "
            "Where lengths differ, the points that both have are compared."
        ),
    )
