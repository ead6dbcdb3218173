"""Runs side by side: rules for scores, labels and baselines; comparisons with known answers."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from momentum_rl.plumbing.games import GAMES
from momentum_rl.report.deep import figures as deep_figures
from momentum_rl.report.deep.gathering import counted, results_of
from momentum_rl.report.deep.naming import derived_labels
from momentum_rl.report.deep.references import Published, Reference
from momentum_rl.report.deep.results import Results
from momentum_rl.report.deep.verdicts import about_beta, beta_elsewhere, beta_on, improves
from momentum_rl.report.drawing.styles import DEEP, SCHEMES
from momentum_rl.report.verdict import Finding, Verdict
from momentum_rl.runs.config import Config
from momentum_rl.runs.finding import Curve, find_runs
from momentum_rl.runs.presets import preset_fields
from tests.report import synthetic_runs as synthetic

NAN = math.nan
SMALL = Config("dqn", "CartPole-v1", steps=5_000, iteration_steps=1_000)


def only(folder: Path, reference: Reference | None = None) -> Results:
    results, odd = results_of(find_runs(folder).runs, reference)
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
    assert results.count("momentum-dqn") == (3, 0, 1)
    assert results.comparisons["momentum-dqn"].mean.value == 1.0  # 4 on 2, without the 100
    figure = deep_figures.curves(results)
    assert figure is not None
    drawn = {trace.style.label: trace.mean.tolist() for trace in figure.panels[0].traces}
    assert drawn["Momentum-DQN"] == [36, 36, 4, 4, 4]
    assert "those that have got so far" in figure.caption
    assert any("1 run not finished" in note for note in results.notes)


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
    assert any("lowest score that any run of these results reached" in n for n in results.notes)


# Two kinds of scores ----------------------------------------------------------------------------

MINATAR = Config(
    "dqn", "MinAtar/Breakout", **{**preset_fields("minatar-published"), "steps": 200_000}
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
    assert "training scores (mean raw score of the episodes that" in results.protocol
    assert (
        "greedy scores (mean raw score of 20 episodes with ε = 0, every 50,000" in greedy.protocol
    )
    for own, values in ((results, [1, 1, 2, 4]), (greedy, [2, 3, 4, 7])):
        figure = deep_figures.curves(own)
        bars = deep_figures.joint(own)
        assert figure is not None
        assert bars is not None
        assert own.score in figure.subtitle
        assert f"the area under the {own.score} curve" in bars.subtitle
        trace = figure.panels[0].traces[0]
        assert trace.mean.tolist() == values
        assert trace.x.tolist() == [50_000, 100_000, 150_000, 200_000]
        assert figure.x_title == "agent steps"


def test_every_seed_is_a_line_of_its_own(tmp_path: Path) -> None:
    write_both(tmp_path)
    figure = deep_figures.curves(only(tmp_path).greedy)
    assert figure is not None
    rows = figure.spec(interactive=False)["datasets"]["all"]
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
    assert "thin lines the seeds" in figure.caption


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


def test_published_greedy_curves_are_laid_over_greedy_curves_alone(tmp_path: Path) -> None:
    write_both(tmp_path)
    steps = np.array([0.0, 100_000, 200_000, 300_000])
    published = Published(steps, np.array([[0.0, 3, 5, 7]]), "MinAtar", "greedy")
    results = only(tmp_path, Reference("minatar.csv", {("breakout", "M-DQN"): published}))
    assert results.reference is None
    training, greedy = deep_figures.curves(results), deep_figures.curves(results.greedy)
    assert training is not None
    assert greedy is not None
    last = greedy.panels[0].traces[-1]
    assert last.style.label == "M-DQN (published)"
    assert (last.x.tolist(), last.mean.tolist()) == ([100_000, 200_000], [3, 5])  # as far as ours
    assert [t.style.label for t in training.panels[0].traces] == ["DQN", "Momentum-DQN"]


# Labels and baselines ----------------------------------------------------------------------------


def test_labels_say_what_differs_and_nothing_else() -> None:
    base = Config("deep-sql", "CartPole-v1")
    assert derived_labels([base, replace(base, seed=3, save_every=7)]) == ["deep-sql"] * 2
    assert derived_labels([base.replace(sign="printed")]) == ["deep-sql (printed)"]
    # What differs between games alone is no difference.
    dqn = Config("dqn", "CartPole-v1")
    assert derived_labels([dqn, replace(dqn, env="Acrobot-v1", steps=7)]) == ["dqn"] * 2
    modern = Config("dqn", "ALE/Pong-v5", **preset_fields("modern"))
    paper = Config("dqn", "ALE/Pong-v5", **preset_fields("paper"))
    assert derived_labels([modern, paper]) == ["dqn (modern)", "dqn"]
    kappa = Config("momentum-dqn", "CartPole-v1", steps=100, options={"kappa": 5})
    assert derived_labels([kappa, kappa.replace(kappa=50)]) == [
        "momentum-dqn",
        "momentum-dqn κ=50",
    ]
    munchausen = Config("munchausen-dqn", "CartPole-v1")
    assert derived_labels([munchausen, munchausen.replace(tau=0.1)]) == [
        "munchausen-dqn tau=0.03",
        "munchausen-dqn tau=0.1",
    ]


def test_an_algorithm_is_compared_with_the_dqn_of_its_own_settings(tmp_path: Path) -> None:
    levels = {("dqn", "paper"): 1.0, ("dqn", "modern"): 2.0}
    levels |= {("momentum-dqn", "paper"): 1.5, ("momentum-dqn", "modern"): 5.0}
    for (algorithm, preset), level in levels.items():
        config = Config(algorithm, "ALE/Pong-v5", **{**preset_fields(preset), "steps": 500_000})
        synthetic.write_run(tmp_path / f"{algorithm}-{preset}", config, [level, level])
    results = only(tmp_path)
    assert {label: c.mean.value for label, c in results.comparisons.items()} == {
        "dqn (modern)": 1.0,  # over the first DQN, as its runs are as long
        "momentum-dqn": 0.5,
        "momentum-dqn (modern)": 1.5,  # over DQN (modern)
    }
    assert results.baseline_of("momentum-dqn (modern)") == "DQN (modern)"
    assert "Presets paper, modern" in results.protocol


def test_other_settings_are_no_baseline(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path / "d", SMALL, [1.0] * 5)
    other = SMALL.replace(algorithm="momentum-dqn", learning_rate=0.5)
    synthetic.write_run(tmp_path / "m", other, [4.0] * 5)
    results = only(tmp_path)
    assert results.comparisons == {}
    described = improves(results, results.series[1].label)
    assert isinstance(described, Finding)
    assert described.seen == "There is no DQN run with the same settings that has ended."


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
    assert [series.label for series in atari.series] == list(DEEP)
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
    assert atari.count("deep-dpp") == (100, 60, 0)


def test_curves_are_mean_and_deviation_over_seeds(atari: Results) -> None:
    figure = deep_figures.curves(atari)
    assert figure is not None
    pong = next(panel for panel in figure.panels if panel.title == "Pong")
    dqn = pong.traces[0]
    np.testing.assert_allclose(dqn.mean, synthetic.curve("Pong"))
    assert figure.x_title == "million frames"  # an iteration has 250,000 steps of four frames
    assert dqn.x.tolist() == list(range(1, synthetic.ITERATIONS + 1))
    # Offsets −2..2 of the spread: variance (4 + 1 + 0 + 1 + 4) / 5 = 2.
    np.testing.assert_allclose(dqn.spread, math.sqrt(2) * synthetic.SPREADS["Pong"])


def test_verdicts_follow_from_the_data(atari: Results) -> None:
    for label, words in (
        ("momentum-dqn", "mean improvement +45 % [+"),
        ("deep-dpp", "60 of its 100 runs diverged"),
    ):
        verdict = improves(atari, label)
        assert isinstance(verdict, Verdict)
        assert verdict.confirmed is True
        assert words in verdict.seen
        assert (
            "Preset paper; 5,000,000 agent steps a run, in 20 iterations of 250,000" in verdict.seen
        )
        assert (
            "5 seeds of each algorithm on each game; sticky actions 0.25; training" in verdict.seen
        )
        assert "20 Atari environments" in verdict.claim
        assert "(Section 7.2, fig:auc" in verdict.claim
    assert improves(atari, "dqn") is None


def test_deep_sql_is_judged_with_the_printed_sign_and_described_with_sqls(
    atari: Results, tmp_path: Path
) -> None:
    own = improves(atari, "deep-sql")
    assert isinstance(own, Finding)
    assert "Speedy Q-learning's own sign" in own.about
    assert "Deep SQL outperforms DQN on 5 of 20 games, mean improvement −31 % [−" in own.seen
    synthetic.write_atari(tmp_path, games=GAMES[:4], seeds=3)
    for game in GAMES[:4]:
        for seed in range(3):
            config = synthetic.atari_config("deep-sql", game, seed).replace(sign="printed")
            scores = synthetic.scores_of(game, seed, synthetic.SQL[game])
            synthetic.write_run(tmp_path / game / "printed" / str(seed), config, scores)
    results = only(tmp_path)
    verdict = improves(results, "deep-sql (printed)")
    assert isinstance(verdict, Verdict)
    assert verdict.confirmed is True
    assert "with the sign that the appendix prints (app:atari-dsql)" in verdict.claim
    assert isinstance(improves(results, "deep-sql"), Finding)


def test_the_opposite_data_give_the_opposite_verdict(tmp_path: Path) -> None:
    for game in GAMES[:3]:
        for seed in range(3):
            for algorithm, gain in (("dqn", 0.0), ("momentum-dqn", -0.5), ("deep-sql", 0.5)):
                config = synthetic.atari_config(algorithm, game, seed)
                if algorithm == "deep-sql":
                    config = config.replace(sign="printed")
                scores = synthetic.scores_of(game, seed, gain)
                synthetic.write_run(tmp_path / game / algorithm / str(seed), config, scores)
    results = only(tmp_path)
    words = [improves(results, label) for label in ("momentum-dqn", "deep-sql (printed)")]
    assert [said.word for said in words if isinstance(said, Verdict)] == ["Not confirmed"] * 2


def test_too_few_runs_or_games_decide_nothing(tmp_path: Path) -> None:
    synthetic.write_atari(tmp_path / "one", games=GAMES[:3], seeds=1)
    synthetic.write_atari(tmp_path / "game", games=GAMES[:1])
    for folder, words in (("one", "A single run of either"), ("game", "One game decides nothing")):
        verdict = improves(only(tmp_path / folder), "momentum-dqn")
        assert isinstance(verdict, Verdict)
        assert verdict.confirmed is None
        assert words in verdict.seen


# Figures -----------------------------------------------------------------------------------------


def test_the_papers_figures_are_there(atari: Results) -> None:
    assert deep_figures.one_game(atari).title == "DQN and Momentum-DQN on SpaceInvaders"
    assert deep_figures.one_game(atari, "Pong").panels[0].title == "Pong"
    for label, title in (("momentum-dqn", "Momentum-DQN"), ("deep-sql", "Deep SQL")):
        figure = deep_figures.improvement(atari, label)
        assert figure is not None
        assert figure.title == f"Normalised improvement of {title} over DQN"
        values = [figure.bars[0].games[game].value for game in figure.games]
        assert values == sorted(values, reverse=True)
    joint = deep_figures.joint(atari)
    assert joint is not None
    assert [bars.style.label for bars in joint.bars] == ["Momentum-DQN", "Deep SQL", "Deep DPP"]
    assert joint.bars[2].diverged == set(synthetic.DIVERGING)
    assert deep_figures.influence_of_beta(atari) is None


def test_an_algorithm_has_the_look_of_its_scheme() -> None:
    pairs = {"dqn": "avi", "momentum-dqn": "movi", "deep-sql": "sql", "deep-dpp": "dpp"}
    for algorithm, scheme in pairs.items():
        assert DEEP[algorithm].colour == SCHEMES[scheme].colour
        assert DEEP[algorithm].dash == SCHEMES[scheme].dash


def test_the_influence_of_beta(tmp_path: Path) -> None:
    results = only(synthetic.write_betas(tmp_path))
    main = [series.label for series in results.series if series.main]
    assert main == ["dqn", "momentum-dqn"]
    figure = deep_figures.influence_of_beta(results)
    assert figure is not None
    assert [panel.title for panel in figure.panels] == ["Asterix", "Zaxxon"]
    labels = [trace.style.label for trace in figure.panels[0].traces]
    assert labels == [
        "DQN",
        "Momentum-DQN",
        "Momentum-DQN (heuristic)",
        "Momentum-DQN β=0.1",
        "Momentum-DQN β=0.5",
        "Momentum-DQN β=0.9",
    ]
    dashes = [trace.style.dash for trace in figure.panels[0].traces]
    assert len(set(dashes)) == len(dashes)
    asterix, zaxxon = (beta_on(results, game) for game in ("Asterix", "Zaxxon"))
    assert asterix.confirmed is True
    # The last five of 20 points of 1000 · 1.9 · x^1.9 + 30, and of 1000 · 1.1 · x^1.1 + 30.
    x = np.arange(15, 20) / 19
    late = [1000 * h * (x**h).mean() + 30 for h in (1.1, 1.9)]
    assert f"last quarter {late[0]:,.0f}" in asterix.seen.replace(".5,", ",")
    assert f"{late[1]:,.0f}. Judged: the highest β against the lowest." in asterix.seen
    # The same curves do not show what the text says of Zaxxon.
    assert zaxxon.confirmed is False
    assert "can damage Zaxxon" in zaxxon.claim
    said = [judge(results) for judge in about_beta(results)]
    assert said == [asterix, zaxxon, None]


def test_a_high_beta_that_damages_zaxxon_is_what_the_paper_says(tmp_path: Path) -> None:
    for beta, level in ((0.1, 50.0), (0.5, 80.0), (0.9, 60.0)):
        for seed in range(2):
            config = synthetic.atari_config("momentum-dqn", "Zaxxon", seed)
            config = config.replace(beta_schedule="constant", beta=beta)
            scores = [level] * synthetic.ITERATIONS
            synthetic.write_run(tmp_path / str(beta) / str(seed), config, scores)
    verdict = beta_on(only(tmp_path), "Zaxxon")
    assert verdict.confirmed is True
    assert (
        "for β = 0.1, 0.5, 0.9: first quarter 50, 80, 60, last quarter 50, 80, 60" in verdict.seen
    )
    assert beta_on(only(tmp_path), "Asterix").confirmed is None


def test_beta_on_a_game_of_which_the_paper_says_nothing_is_described(tmp_path: Path) -> None:
    """MinAtar's Asterix is another game than Atari's."""
    for env in ("MinAtar/Asterix", "MinAtar/Breakout"):
        for beta, level in ((0.1, 5.0), (0.9, 8.0)):
            fields = {**preset_fields("minatar"), "steps": 200_000}
            options = {"beta_schedule": "constant", "beta": beta}
            config = Config("momentum-dqn", env, **fields, options=options)
            synthetic.write_run(tmp_path / env / str(beta), config, [level] * 4)
    results = only(tmp_path)
    assert about_beta(results) == (beta_elsewhere,)
    found = beta_elsewhere(results)
    assert isinstance(found, Finding)
    assert "last quarter: Asterix 0.9, Breakout 0.9." in found.seen


def test_published_curves_are_laid_over_games_of_the_same_name(tmp_path: Path) -> None:
    curves = {
        ("pong", "DQN"): Published(
            250_000.0 * np.arange(1, 31), np.array([[1.0] * 30, [3.0] * 30])
        ),
        ("tetris", "DQN"): Published(np.array([250_000.0]), np.ones((1, 1))),
    }
    synthetic.write_atari(tmp_path / "same", games=["Pong"], seeds=2)
    reference = Reference("pong.json", curves)
    figure = deep_figures.curves(only(tmp_path / "same", reference))
    assert figure is not None
    last = figure.panels[0].traces[-1]
    assert last.style.label == "DQN (published)"
    assert last.mean.tolist() == [2.0] * synthetic.ITERATIONS  # as far as ours go
    short = replace(synthetic.atari_config("dqn", "Pong", 0), steps=100, iteration_steps=50)
    synthetic.write_run(tmp_path / "short" / "run", short, [1.0, 2.0])
    results = only(tmp_path / "short", reference)
    assert results.reference is None
    assert "not laid over: their iterations have 250,000 steps, these 50" in results.notes[-1]


def test_settings_that_are_not_the_presets_are_named(tmp_path: Path) -> None:
    config = replace(synthetic.atari_config("dqn", "Pong", 0), sync_period=50, learning_starts=9)
    synthetic.write_run(tmp_path / "run", config, [1.0] * synthetic.ITERATIONS)
    protocol = only(tmp_path).protocol
    assert protocol.endswith("Changed from the preset: learning_starts 9, sync_period 50.")
