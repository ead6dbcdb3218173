"""Runs side by side: rules for scores, labels and baselines; comparisons with known answers."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from momentum_rl.report.chapters import all_curves, improvements, learning_curves
from momentum_rl.report.results import Results, counted, derived_labels, results_of
from momentum_rl.report.style import ALGORITHMS
from momentum_rl.runs.config import Config
from momentum_rl.runs.finding import Curve, find_runs
from momentum_rl.runs.presets import preset_fields
from tests.report import synthetic_runs as synthetic
from tests.report.synthetic_runs import GAMES

NAN = math.nan
SMALL = Config("dqn", "CartPole-v1", steps=5_000, iteration_steps=1_000)


def only(folder: Path) -> Results:
    results, odd = results_of(find_runs(folder).runs)
    assert odd == ()
    assert len(results) == 1
    return results[0]


@pytest.fixture(scope="module")
def atari(twenty_games: Path) -> Results:
    return only(twenty_games)


# The rules ---------------------------------------------------------------------------------------


def _curve(scores: list[float], diverged_in: int | None = None) -> Curve:
    return Curve(np.array(SMALL.iteration_ends, float), np.array(scores), diverged_in)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        (_curve([1, 2, 3, 4, 5]), [1, 2, 3, 4, 5]),
        (_curve([NAN, 2, NAN, NAN, 5]), [2, 2, 2, 2, 5]),
        (_curve([10, 20, 25], 2), [10, 20, -7, -7, -7]),
        (_curve([NAN, NAN], 1), [-7, -7, -7, -7, -7]),
        (_curve([10, NAN, 30]), [10, 10, 30, NAN, NAN]),
        (_curve([NAN] * 5), [NAN] * 5),
    ],
)
def test_what_an_iteration_counts(curve: Curve, expected: list[float]) -> None:
    np.testing.assert_array_equal(counted(curve, -7.0), expected)


def test_an_unfinished_run_is_shown_and_not_compared(tmp_path: Path) -> None:
    for seed, scores in enumerate([[1.0] * 5, [3.0] * 5]):
        synthetic.write_run(tmp_path / f"d{seed}", replace(SMALL, seed=seed), scores)
        momentum = SMALL.replace(algorithm="momentum-dqn", seed=seed)
        synthetic.write_run(tmp_path / f"m{seed}", momentum, [4.0] * 5)
    late = SMALL.replace(algorithm="momentum-dqn", seed=2)
    synthetic.write_run(tmp_path / "late", late, [100.0, 100.0], status="running")
    results = only(tmp_path)
    assert results.comparisons["momentum-dqn"].mean.value == 1.0  # 4 on 2, without the 100
    figure = all_curves(results)
    assert figure is not None
    drawn = {curve.style.label: curve.y.tolist() for curve in figure.panels[0].curves}
    assert drawn["Momentum-DQN"] == [36, 36, 4, 4, 4]
    assert figure.note == "Runs are not finished: Momentum-DQN on CartPole-v1."


def test_a_diverged_run_has_the_lowest_score_of_the_game_from_then_on(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path / "d", SMALL, [2.0, 2.0, 1.0, 4.0, 6.0])
    dpp = SMALL.replace(algorithm="deep-dpp")
    synthetic.write_run(tmp_path / "p", dpp, [5.0, 5.0, 9.0], status="diverged", step=2_500)
    results = only(tmp_path)
    # The third iteration was not completed, so its 9 does not count: (5 + 5 + 1 + 1 + 1) / 5.
    cell = results.cells["CartPole-v1", "deep-dpp"]
    assert cell.areas.tolist() == [2.6]
    assert cell.diverged == (2,)
    found = results.comparisons["deep-dpp"].mean
    assert (found.value, found.low) == (pytest.approx((2.6 - 3) / 3), None)


# Two kinds of scores ----------------------------------------------------------------------------

MINATAR = Config(
    "dqn",
    "MinAtar/Breakout",
    **{**preset_fields("minatar"), "steps": 200_000, "evaluate_every": 50_000},
)
"""Four iterations of 50,000 steps, each with an evaluation."""


def write_both(folder: Path) -> None:
    """Momentum-DQN trains no better than DQN and plays better when it is greedy."""
    for seed in range(2):
        for algorithm, gain in (("dqn", 0.0), ("momentum-dqn", 6.0)):
            config = MINATAR.replace(algorithm=algorithm, seed=seed)
            greedy = np.array([1.0, 2, 3, 6]) + gain + 2 * seed  # areas of DQN: 3 and 5
            place = folder / algorithm / str(seed)
            synthetic.write_run(place, config, [1.0, 1, 2, 4], evaluation=9.0, greedy=greedy)


def test_training_and_greedy_scores_have_areas_and_figures_apart(tmp_path: Path) -> None:
    write_both(tmp_path)
    results = only(tmp_path)
    greedy = results.greedy
    assert greedy is not None
    assert results.cells["Breakout", "dqn"].areas.tolist() == [2, 2]
    assert greedy.cells["Breakout", "dqn"].areas.tolist() == [3, 5]
    assert results.comparisons["momentum-dqn"].mean.value == 0
    assert greedy.comparisons["momentum-dqn"].mean.value == 1.5
    for own, values in ((results, [1, 1, 2, 4]), (greedy, [2, 3, 4, 7])):
        figure = all_curves(own)
        bars = improvements(own)
        assert figure is not None
        assert bars is not None
        assert own.score in figure.subtitle
        assert f"the area under the {own.score} curve" in bars.subtitle
        curve = figure.panels[0].curves[0]
        assert curve.y.tolist() == values
        assert curve.x.tolist() == [50_000, 100_000, 150_000, 200_000]
        assert figure.x_title == "agent steps"


def test_every_seed_is_a_line_of_its_own(tmp_path: Path) -> None:
    write_both(tmp_path)
    figure = all_curves(only(tmp_path).greedy)
    assert figure is not None
    rows = figure.spec["datasets"]["all"]
    lines: dict[str, list[float]] = {}
    for row in rows:
        if row["k"] == "run":
            lines.setdefault(row["r"], []).append(row["y"])
    assert lines == {
        "DQN 0": [1, 2, 3, 6],
        "DQN 1": [3, 4, 5, 8],
        "Momentum-DQN 0": [7, 8, 9, 12],
        "Momentum-DQN 1": [9, 10, 11, 14],
    }


def test_a_run_that_diverged_counts_by_the_lowest_greedy_score_too(tmp_path: Path) -> None:
    write_both(tmp_path)
    dpp = MINATAR.replace(algorithm="deep-dpp")
    synthetic.write_run(
        tmp_path / "dpp", dpp, [5.0, 5, 5], status="diverged", step=120_000, greedy=[7.0, 9, 50]
    )
    greedy = only(tmp_path).greedy
    assert greedy is not None
    # The evaluation after it diverged does not count: (7 + 9 + 1 + 1) / 4, as DQN's lowest is 1.
    assert greedy.cells["Breakout", "deep-dpp"].areas.tolist() == [4.5]
    assert greedy.cells["Breakout", "deep-dpp"].diverged == (2,)


def test_runs_evaluated_at_other_steps_have_no_place_in_a_cell(tmp_path: Path) -> None:
    for seed, every in enumerate((100_000, 50_000, 50_000)):
        config = replace(MINATAR, seed=seed, evaluate_every=every)
        synthetic.write_run(tmp_path / str(seed), config, [1.0] * 4, greedy=[2.0] * 4)
    results = only(tmp_path)
    assert results.greedy is not None
    assert results.greedy.cells["Breakout", "dqn"].scores.shape == (2, 4)
    assert results.cells["Breakout", "dqn"].scores.shape == (3, 4)


# Labels and baselines ----------------------------------------------------------------------------


def test_labels_say_what_differs_and_nothing_else() -> None:
    base = Config("deep-sql", "CartPole-v1")
    assert derived_labels([base, replace(base, seed=3, save_every=7)]) == ["deep-sql"] * 2
    assert derived_labels([base, base.replace(sign="printed")]) == [
        "deep-sql sign=sql",
        "deep-sql sign=printed",
    ]
    # What differs between games alone is no difference.
    dqn = Config("dqn", "CartPole-v1")
    assert derived_labels([dqn, replace(dqn, env="Acrobot-v1", steps=7)]) == ["dqn"] * 2
    munchausen = Config("munchausen-dqn", "CartPole-v1")
    assert derived_labels([munchausen, munchausen.replace(tau=0.1)]) == [
        "munchausen-dqn tau=0.03",
        "munchausen-dqn tau=0.1",
    ]


def test_an_algorithm_is_compared_with_the_dqn_of_its_own_settings(tmp_path: Path) -> None:
    levels = {("dqn", 0.1): 1.0, ("dqn", 0.2): 2.0}
    levels |= {("momentum-dqn", 0.1): 1.5, ("momentum-dqn", 0.2): 5.0}
    for (algorithm, rate), level in levels.items():
        config = SMALL.replace(algorithm=algorithm, learning_rate=rate)
        synthetic.write_run(tmp_path / f"{algorithm}-{rate}", config, [level] * 5)
    results = only(tmp_path)
    assert {label: c.mean.value for label, c in results.comparisons.items()} == {
        "momentum-dqn learning_rate=0.1": 0.5,
        "momentum-dqn learning_rate=0.2": 1.5,  # over the DQN of that rate
    }
    assert results.baseline_of("momentum-dqn learning_rate=0.2") == "DQN learning_rate=0.2"


def test_other_settings_are_no_baseline(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path / "d", SMALL, [1.0] * 5)
    other = SMALL.replace(algorithm="momentum-dqn", learning_rate=0.5)
    synthetic.write_run(tmp_path / "m", other, [4.0] * 5)
    assert only(tmp_path).comparisons == {}


def test_sweeps_and_suites_are_kept_apart_and_copies_count_once(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path / "a" / "x", SMALL, [1.0] * 5)
    synthetic.write_run(tmp_path / "a" / "y", SMALL, [1.0] * 5)
    synthetic.write_sweep(tmp_path / "b", [("mine", SMALL, 1)], "one")
    synthetic.write_run(tmp_path / "b" / "runs" / "z", SMALL, [1.0] * 5)
    atari = synthetic.atari_config("dqn", "Pong", 0)
    synthetic.write_run(tmp_path / "c", atari, [1.0] * synthetic.ITERATIONS)
    results, odd = results_of(find_runs(tmp_path).runs)
    assert [own.name for own in results] == ["gymnasium", "one", "atari"]
    assert results[1].series[0].label == "mine"
    assert len(odd) == 1
    assert "counted once" in odd[0]


# Twenty games ------------------------------------------------------------------------------------


def test_the_known_improvements_of_twenty_games_are_found(atari: Results) -> None:
    assert atari.games == GAMES
    assert [series.label for series in atari.series] == list(ALGORITHMS)
    momentum, sql = (atari.comparisons[name] for name in ("momentum-dqn", "deep-sql"))
    for comparison, known in ((momentum, synthetic.MOMENTUM), (sql, synthetic.SQL)):
        found = {game: estimate.value for game, estimate in comparison.games.items()}
        assert found == pytest.approx(known, abs=1e-12)
    assert momentum.mean.value == pytest.approx(0.45)
    assert momentum.median.value == pytest.approx(0.4)
    assert sql.mean.value == pytest.approx(-0.3125)
    assert sql.improved.value == 5
    # A game with improvement 0 up to rounding may count as improved or not: 16, or 17.
    assert momentum.improved.value in (16, 17)


def test_the_improvement_of_diverged_runs_is_that_of_the_stated_rule(atari: Results) -> None:
    found = atari.comparisons["deep-dpp"]
    for game in GAMES:
        expected = 0.0
        if game in synthetic.DIVERGING:
            half = synthetic.ITERATIONS // 2
            first = synthetic.curve(game)[:half].sum()  # the seeds' offsets cancel
            area = (first + half * synthetic.lowest(game)) / synthetic.ITERATIONS
            expected = (area - synthetic.area(game)) / abs(synthetic.area(game))
        assert found.games[game].value == pytest.approx(expected, abs=1e-12), game
    assert sum(len(cell.diverged) for cell in atari.cells.values()) == 60


def test_curves_are_mean_and_deviation_over_seeds(atari: Results) -> None:
    figure = all_curves(atari)
    assert figure is not None
    pong = next(panel for panel in figure.panels if panel.title == "Pong")
    dqn = pong.curves[0]
    np.testing.assert_allclose(dqn.y, synthetic.curve("Pong"))
    assert dqn.x.tolist() == [250_000 * i for i in range(1, synthetic.ITERATIONS + 1)]
    # Offsets −2..2 of the spread: variance (4 + 1 + 0 + 1 + 4) / 5 = 2.
    np.testing.assert_allclose(dqn.spread, math.sqrt(2) * synthetic.SPREADS["Pong"])


def test_the_largest_gain_is_first_and_divergence_is_marked(atari: Results) -> None:
    figure = improvements(atari)
    assert figure is not None
    assert [style.label for style in figure.styles] == ["Momentum-DQN", "Deep SQL", "Deep DPP"]
    gains = [e.estimate.value for e in figure.entries if e.style.label == "Momentum-DQN"]
    assert gains == sorted(gains, reverse=True)
    diverged = {entry.row for entry in figure.entries if entry.diverged}
    assert diverged == set(synthetic.DIVERGING)
    assert learning_curves(atari, "x", "X", ["Tetris"], atari.series) is None
