"""Statistics over runs and games: pure functions of arrays, NumPy alone.

The paper reports, per game, the mean and standard deviation of the score over seeds, and the
improvement of an algorithm over DQN by the area under that mean (``auc``). Around it stand the
interquartile mean and the probability of improvement of Agarwal et al. (arXiv:2108.13264), with
their stratified bootstrap: runs are drawn again within each game, games are kept.

The area under the mean of some runs is the mean of the areas of the runs, so one number per run is
all that comparisons take: "runs" below is a vector of areas, one per run, of one game.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from momentum_rl.errors import UserError
from momentum_rl.report.style import Array

RESAMPLES = 10_000
"""Bootstrap samples behind an interval."""
LEVEL = 0.95
"""Share of the bootstrap's values that an interval holds."""
TRIMMED = 0.25
"""Share that the interquartile mean leaves out at either end."""


@dataclass(frozen=True)
class Estimate:
    """A statistic and its interval; None where runs are too few for one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Comparison:
    """An algorithm against its baseline, over games."""

    games: Mapping[str, Estimate]
    """By game: the normalised improvement."""
    mean: Estimate
    """Of the improvement over games."""
    median: Estimate
    """Of the improvement over games."""
    improved: Estimate
    """Number of games with an improvement above 0."""
    iqm: Estimate
    """Interquartile mean over all runs of all games of the runs' own improvements."""
    probability: Estimate
    """That a run of the algorithm has a larger area than one of the baseline, mean over games."""
    undefined: tuple[str, ...] = ()
    """Games whose baseline has area 0, which nothing can be divided by; not in the rest."""

    @property
    def repeated(self) -> bool:
        """Whether every game has several runs of both, so that there are intervals."""
        return self.mean.low is not None


def mean_and_deviation(scores: Array) -> tuple[Array, Array]:
    """Mean and standard deviation over the runs [runs, iterations] that have a value (not NaN).

    The deviation is that of these runs (divided by their number, not by one less). An iteration
    that no run has is NaN in both.
    """
    present = ~np.isnan(scores)
    count = present.sum(0)
    known = np.where(present, scores, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = known.sum(0) / count
        deviation = np.sqrt((np.where(present, scores - mean, 0.0) ** 2).sum(0) / count)
    return mean, deviation


def auc(scores: Array) -> Array:
    """The area under each curve [..., iterations]: its mean over iterations."""
    return np.asarray(scores.mean(-1))


def improvement(algorithm: Array, baseline: Array) -> Array:
    """(AUC − AUC_baseline) / abs(AUC_baseline), element-wise; 0/0 is 0, anything else / 0 is ±∞."""
    difference = algorithm - baseline
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / np.abs(baseline))


def interquartile_mean(values: Array) -> Array:
    """The mean of the middle half of the values [..., n]: ⌊n/4⌋ are left out at either end."""
    cut = int(TRIMMED * values.shape[-1])
    return np.asarray(np.sort(values, -1)[..., cut : values.shape[-1] - cut].mean(-1))


def probability_of_improvement(algorithm: Array, baseline: Array) -> Array:
    """P(X > Y) + P(X = Y)/2 for runs X [..., n] and Y [..., m]: the Mann-Whitney statistic."""
    x, y = algorithm[..., :, None], baseline[..., None, :]
    return np.asarray(((x > y) + 0.5 * (x == y)).mean((-2, -1)))


def resampled(runs: Array, count: int, generator: np.random.Generator) -> Array:
    """``count`` draws with replacement of as many runs as there are: [count, runs]."""
    return runs[generator.integers(runs.size, size=(count, runs.size))]


def mean_of_runs(values: Array) -> Estimate:
    """The mean over runs with its bootstrap interval, which a single run does not have.

    >>> mean_of_runs(np.array([2.0, 4.0])), mean_of_runs(np.array([5.0]))
    (Estimate(value=3.0, low=2.0, high=4.0), Estimate(value=5.0, low=None, high=None))
    """
    drawn = resampled(values, RESAMPLES, np.random.default_rng(0)).mean(-1)
    return _estimate(values.mean(keepdims=True), drawn if values.size >= 2 else None)


def compare(
    algorithm: Mapping[str, Array],
    baseline: Mapping[str, Array],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compares the runs' areas under the curve, game by game and over games.

    The algorithm's and the baseline's runs are both drawn again for the intervals. If a game has a
    single run of either, there is no interval for it, nor for anything over games: the bootstrap of
    one run would claim certainty.

    >>> two = np.array([2.0, 2.0])
    >>> found = compare({"a": 3 * two, "b": two}, {"a": two, "b": 2 * two})
    >>> [estimate.value for estimate in found.games.values()], found.mean.value
    ([2.0, -0.5], 0.75)
    """
    games = [game for game in algorithm if game in baseline]
    undefined = tuple(game for game in games if baseline[game].mean() == 0)
    games = [game for game in games if game not in undefined]
    if not games:
        raise UserError("comparison: no game in common, expected at least one")
    generator = np.random.default_rng(seed)

    def drawn(of: Mapping[str, Array]) -> list[Array]:
        return [resampled(of[game], resamples, generator) for game in games]

    values, by_game = _statistics(
        [algorithm[game][None] for game in games], [baseline[game][None] for game in games]
    )
    draws, by_game_drawn = _statistics(drawn(algorithm), drawn(baseline))
    enough = [min(algorithm[game].size, baseline[game].size) >= 2 for game in games]
    return Comparison(
        {
            game: _estimate(by_game[:, i], by_game_drawn[:, i] if enough[i] else None)
            for i, game in enumerate(games)
        },
        **{
            name: _estimate(value, draws[name] if all(enough) else None)
            for name, value in values.items()
        },
        undefined=undefined,
    )


def _statistics(
    algorithm: Sequence[Array], baseline: Sequence[Array]
) -> tuple[dict[str, Array], Array]:
    """Of some draws of the runs of every game, [draws, runs] each: ``Comparison``'s, [draws] each,
    and the improvements, [draws, games].
    """
    pairs = list(zip(algorithm, baseline))
    games = np.stack([improvement(a.mean(-1), b.mean(-1)) for a, b in pairs], -1)
    of_runs = [improvement(a, b.mean(-1, keepdims=True)) for a, b in pairs]
    statistics = {
        "mean": games.mean(-1),
        "median": np.median(games, -1),
        "improved": (games > 0).sum(-1, dtype=np.float64),
        "iqm": interquartile_mean(np.concatenate(of_runs, -1)),
        "probability": np.mean([probability_of_improvement(a, b) for a, b in pairs], 0),
    }
    return statistics, games


def _estimate(computed: Array, drawn: Array | None) -> Estimate:
    """Of the data themselves, [1], and of what was drawn from them."""
    value = float(computed[0])
    if drawn is None:
        return Estimate(value)
    # "lower" and "higher" take values that were drawn: none is between two infinite ones.
    low = np.quantile(drawn, (1 - LEVEL) / 2, method="lower")
    high = np.quantile(drawn, (1 + LEVEL) / 2, method="higher")
    return Estimate(value, float(low), float(high))
