"""Published curves against each other, as results of their own."""

import numpy as np

from movi.games import GAMES
from movi.reports.deep.references import Reference
from movi.reports.deep.results import BASELINE, MOMENTUM, GameScores, Results, Series
from movi.reports.drawing.numbers import span
from movi.reports.drawing.styles import DEEP, FURTHER, Style


def published_results(reference: Reference) -> Results | None:
    """The variants of published curves against each other; None if there is only one.

    The baseline is the variant called DQN, or else the first.
    """
    names = reference.variants
    if len(names) < 2:
        return None
    baseline = next((name for name in names if name.lower() == BASELINE), names[0])
    order = (baseline, *(name for name in names if name != baseline))
    known = {game.lower(): game for game in GAMES}
    cells: dict[tuple[str, str], GameScores] = {}
    for (game, variant), scores in reference.curves.items():
        complete = np.asarray(~np.isnan(scores).any(1))
        cells[known.get(game.lower(), game), variant] = GameScores(scores, complete)
    games = sorted(
        dict.fromkeys(game for game, _ in cells),
        key=lambda game: (GAMES.index(game) if game in GAMES else len(GAMES), game),
    )
    looks = (DEEP[BASELINE], DEEP[MOMENTUM], *(Style("", *look) for look in FURTHER))
    return Results(
        name="published",
        title="Published curves against each other",
        suite="Atari",
        games=tuple(games),
        series=tuple(
            Series(name, name, Style(name, look.colour, look.dash))
            for name, look in zip(order, looks)
        ),
        cells=cells,
        baselines={key: baseline for key in cells if key[1] != baseline},
        protocol=(
            f"Published training scores, from {reference.name}: "
            f"{span([cell.scores.shape[0] for cell in cells.values()])} runs of each variant on "
            f"each game, {span([cell.scores.shape[1] for cell in cells.values()])} iterations. "
            "Where lengths differ, the iterations that both have are compared."
        ),
    )
