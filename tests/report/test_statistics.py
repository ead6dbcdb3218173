"""Statistics against numbers worked out by hand, against rliable, and against published data."""

import csv
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import bootstrap, trim_mean

from momentum_rl.errors import UserError
from momentum_rl.report.statistics import (
    auc,
    compare,
    improvement,
    interquartile_mean,
    mean_and_deviation,
    probability_of_improvement,
)
from tests.report.synthetic_runs import GAMES, LEVELS, MOMENTUM, SEEDS, SPREADS, area, scores_of

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "dopamine_dqn_20games.csv"
NAN = math.nan
AREAS = st.floats(1, 100)


def test_mean_and_deviation_are_over_the_runs_that_have_the_iteration() -> None:
    scores = np.array([[1.0, 2.0, NAN, NAN], [3.0, 2.0, 5.0, NAN], [5.0, 8.0, 7.0, NAN]])
    mean, deviation = mean_and_deviation(scores)
    # By hand: (1+3+5)/3 = 3 and sqrt((4+0+4)/3); (2+2+8)/3 = 4 and sqrt((4+4+16)/3); 6 and 1.
    np.testing.assert_allclose(mean, [3, 4, 6, NAN])
    np.testing.assert_allclose(deviation, [math.sqrt(8 / 3), math.sqrt(8), 1, NAN])


def test_the_area_is_the_mean_over_iterations_and_linear_in_the_runs() -> None:
    scores = np.array([[1.0, 2.0, 6.0], [3.0, 4.0, 8.0]])
    assert auc(scores).tolist() == [3, 5]
    assert auc(scores.mean(0)) == auc(scores).mean() == 4


def test_the_improvement_is_normalised_by_the_size_of_the_baseline() -> None:
    # A baseline of −20 that becomes −10 improves by half, not by −1/2.
    found = improvement(np.array([15.0, 5.0, -10.0, -30.0]), np.array([10.0, 10.0, -20.0, -20.0]))
    assert found.tolist() == [0.5, -0.5, 0.5, -0.5]
    assert improvement(np.array([0.0, 1.0, -1.0]), np.zeros(3)).tolist() == [0, math.inf, -math.inf]


def test_the_interquartile_mean_leaves_a_quarter_out_at_either_end() -> None:
    assert interquartile_mean(np.array([100.0, 3.0, 1.0, -50.0])) == 2
    assert interquartile_mean(np.array([9.0, 1.0, 2.0])) == 4  # ⌊3/4⌋ = 0: all three
    assert interquartile_mean(np.arange(9.0) ** 2) == (4 + 9 + 16 + 25 + 36) / 5


def test_the_probability_of_improvement_counts_pairs_and_half_of_ties() -> None:
    # Pairs of {1, 2, 4} with {1, 3}: 1=1 ½, 1<3 0, 2>1 1, 2<3 0, 4>1 1, 4>3 1: 3½ of 6.
    found = probability_of_improvement(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0]))
    assert found == pytest.approx(3.5 / 6)


def test_a_comparison_by_hand() -> None:
    algorithm = {"a": [3.0, 5.0], "b": [8.0, 8.0], "c": [-1.0, -3.0], "z": [1.0, 1.0]}
    baseline = {"a": [1.0, 3.0], "b": [10.0, 10.0], "c": [-4.0, -4.0], "z": [1.0, -1.0]}
    found = compare(
        {game: np.array(runs) for game, runs in algorithm.items()},
        {game: np.array(runs) for game, runs in baseline.items()},
    )
    # Areas 4 on 2, 8 on 10, −2 on −4; z's baseline is 0.
    assert {game: e.value for game, e in found.games.items()} == pytest.approx(
        {"a": 1.0, "b": -0.2, "c": 0.5}
    )
    assert found.undefined == ("z",)
    assert found.mean.value == pytest.approx(1.3 / 3)
    assert found.median.value == pytest.approx(0.5)
    assert found.improved.value == 2
    # Runs' own improvements: ½, 3/2; −.2, −.2; ¾, ¼. Sorted, the middle four: −.2, ¼, ½, ¾.
    assert found.iqm.value == pytest.approx((-0.2 + 0.25 + 0.5 + 0.75) / 4)
    # a: 3 vs {1, 3} 1½, 5 vs both 2: 3½ of 4; b: 0; c: all.
    assert found.probability.value == pytest.approx((3.5 / 4 + 0 + 1) / 3)
    # b's runs are alike, so nothing is uncertain about it; a's improvement is between the extremes
    # (3 − 3)/3 and (5 − 1)/1, each with probability 1/16 > 2.5 %.
    assert (found.games["b"].low, found.games["b"].high) == pytest.approx((-0.2, -0.2))
    assert (found.games["a"].low, found.games["a"].high) == pytest.approx((0.0, 4.0))


def test_one_run_gives_no_interval() -> None:
    two, one = np.array([1.0, 2.0]), np.array([2.0])
    found = compare({"a": two, "b": one}, {"a": two, "b": two})
    assert found.games["a"].low is not None
    assert found.games["b"].low is None
    assert found.mean.low is None
    assert found.iqm.low is None


def test_nothing_in_common_is_a_mistake() -> None:
    with pytest.raises(UserError, match="no game in common"):
        compare({"a": np.ones(2)}, {"b": np.ones(2)})


@given(arrays(float, (4, 3), elements=AREAS), arrays(float, (5, 3), elements=AREAS))
def test_laws_of_a_comparison(ours: np.ndarray, theirs: np.ndarray) -> None:
    def runs(of: np.ndarray, scale: float = 1.0) -> dict[str, np.ndarray]:
        return {str(game): scale * of[:, game] for game in range(3)}

    found = compare(runs(ours), runs(theirs), resamples=200)
    assert found == compare(runs(ours), runs(theirs), resamples=200)  # seeded
    # The unit of the scores does not matter (a power of two, so that rounding does not either).
    assert compare(runs(ours, 4.0), runs(theirs, 4.0), resamples=200) == found
    # Exchanging the two turns the probability around.
    exchanged = compare(runs(theirs), runs(ours), resamples=200)
    assert exchanged.probability.value == pytest.approx(1 - found.probability.value)
    for estimate in (found.mean, found.median, found.improved, found.iqm, found.probability):
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low <= estimate.high


# Peers -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def normalised() -> tuple[np.ndarray, np.ndarray]:
    """Runs × games around 1, with games of different spread; the baseline's mean is 1 on each."""
    generator = np.random.default_rng(7)
    spread = np.linspace(0.05, 0.4, 6)
    baseline = 1 + spread * generator.standard_normal((5, 6))
    baseline /= baseline.mean(0)
    return 1.15 + spread * generator.standard_normal((5, 6)), baseline


def test_point_estimates_equal_those_of_rliable(normalised: tuple[np.ndarray, np.ndarray]) -> None:
    metrics = pytest.importorskip("rliable.metrics", reason="rliable is in the extra `dev`")
    x, y = normalised
    found = compare(dict(enumerate(x.T)), dict(enumerate(y.T)), resamples=10)
    # rliable takes scores divided by the baseline's, which exceed the improvements by 1.
    assert found.mean.value == pytest.approx(metrics.aggregate_mean(x) - 1)
    assert found.median.value == pytest.approx(metrics.aggregate_median(x) - 1)
    assert found.iqm.value == pytest.approx(metrics.aggregate_iqm(x) - 1)
    assert found.probability.value == pytest.approx(metrics.probability_of_improvement(x, y))


def test_intervals_are_those_of_scipys_stratified_bootstrap(
    normalised: tuple[np.ndarray, np.ndarray],
) -> None:
    """SciPy draws each sample again on its own: with a sample per game and algorithm, the same law.

    (rliable's own bootstrap needs arch < 8, which cannot be imported beside pandas 3.)
    """
    x, y = normalised
    found = compare(dict(enumerate(x.T)), dict(enumerate(y.T)))

    def areas(samples: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
        both = np.stack([sample.mean(-1) for sample in samples])
        return both[:6], both[6:]

    def mean(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
        ours, theirs = areas(samples)
        return (ours / theirs).mean(0) - 1

    def iqm(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
        _, theirs = areas(samples)
        runs = [sample / theirs[i][..., None] - 1 for i, sample in enumerate(samples[:6])]
        return trim_mean(np.concatenate(runs, -1), 0.25, axis=-1)

    def probability(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
        above = [
            (x[..., None] > y[..., None, :]).mean((-2, -1)) for x, y in zip(samples, samples[6:])
        ]
        return np.mean(above, 0)

    statistics = {"mean": mean, "iqm": iqm, "probability": probability}
    for name, statistic in statistics.items():
        peer = bootstrap(
            (*x.T, *y.T), statistic, method="percentile", n_resamples=4000, rng=0, axis=-1
        ).confidence_interval
        estimate = getattr(found, name)
        assert [estimate.low, estimate.high] == pytest.approx([peer.low, peer.high], abs=0.01), name


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """20 games, 5 runs each, improvement 20 %: percentile intervals of 5 runs are a bit narrow."""
    generator = np.random.default_rng(3)
    held = 0
    for _ in range(100):
        x, y = (m + 0.2 * generator.standard_normal((5, 20)) for m in (1.2, 1.0))
        found = compare(dict(enumerate(x.T)), dict(enumerate(y.T)), resamples=300)
        assert found.mean.low is not None
        assert found.mean.high is not None
        held += found.mean.low <= 0.2 <= found.mean.high
    assert 80 <= held <= 99


# Whole curves ------------------------------------------------------------------------------------


def test_curves_of_twenty_games_have_the_improvements_they_were_made_with() -> None:
    """Areas and gains in closed form, see `synthetic_runs`; what is published goes the same way."""

    def areas(gains: dict[str, float]) -> dict[str, np.ndarray]:
        runs = {g: [scores_of(g, seed, gains[g]) for seed in range(SEEDS)] for g in GAMES}
        return {game: auc(np.array(scores)) for game, scores in runs.items()}

    baseline = areas(dict.fromkeys(GAMES, 0.0))
    for game, runs in baseline.items():
        low, high = LEVELS[game]
        np.testing.assert_allclose(runs, (low + high) / 2 + SPREADS[game] * np.arange(-2, 3))
    found = compare(areas(MOMENTUM), baseline)
    assert {game: e.value for game, e in found.games.items()} == pytest.approx(MOMENTUM, abs=1e-9)
    assert found.improved.value == 16
    assert found.mean.value == pytest.approx((15 * 0.4 + 3.3 - 3 * 0.1) / 20)
    assert found.median.value == pytest.approx(0.4)
    # On a game with gain x, an extreme draw of five runs moves either area by 2 spreads of 5 % of
    # its height: the interval of the mean is narrow around 0.45, and far from 0.
    assert found.mean.low is not None
    assert found.mean.high is not None
    assert 0.35 < found.mean.low < 0.45 < found.mean.high < 0.55
    # A run's own improvement on a game: the gain, and its spread in units of the area.
    of_runs = [
        MOMENTUM[game] + (seed - 2) * SPREADS[game] / abs(area(game))
        for game in GAMES
        for seed in range(SEEDS)
    ]
    assert found.iqm.value == pytest.approx(trim_mean(of_runs, 0.25))


# Published curves --------------------------------------------------------------------------------


def test_published_dqn_variants_differ_by_80_percent_on_18_of_20_games() -> None:
    """Adam and squared error against RMSProp and Huber (and a later code base): known figures.

    An additional check where the published curves are; the synthetic ones above are everywhere.
    """
    if not REFERENCE.exists():
        pytest.skip(f"the published curves are not here: {REFERENCE.name}")
    curves: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with REFERENCE.open(newline="") as file:
        for row in csv.DictReader(file):
            curves[row["variant"], row["game"]][row["run"]].append(float(row["train_return"]))
    areas: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
    for (variant, game), runs in curves.items():
        areas[variant][game] = auc(np.array(list(runs.values())))
    found = compare(areas["jax_adam_mse_legacy"], areas["tf_rmsprop_huber"])
    assert len(found.games) == 20
    assert found.improved.value == 18
    assert found.mean.value == pytest.approx(0.80, abs=0.005)
    assert (found.mean.low or 0) > 0.5  # well above the paper's headline of 45 %
