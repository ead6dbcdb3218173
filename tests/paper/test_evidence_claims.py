"""The plan's rules on made-up runs: what decides, what does not, and what is still missing."""

from pathlib import Path

import numpy as np
import pytest

from momentum_rl.report.page import Table
from momentum_rl.runs.finding import find_runs
from paper.evidence import blocks, claims, plates, publish
from paper.evidence.gathered import Evidence, gather
from paper.evidence.plan import read_plan
from paper.verdict import Verdict
from tests.paper.synthetic_plan import GAMES, GREEDY, write_matrix, write_plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_plan(tmp_path)


def evidence_in(folder: Path) -> Evidence:
    found = find_runs(folder)
    assert found.problems == ()
    evidence, odd = gather(read_plan(folder), found.runs)
    assert odd == ()
    return evidence


def words(*verdicts: Verdict) -> list[str]:
    return [verdict.word for verdict in verdicts]


@pytest.mark.parametrize(
    ("gain", "word"), [(4.0, "Confirmed"), (-4.0, "Contradicted"), (0.1, "Not decided")]
)
def test_c6_is_decided_by_the_interval_of_the_mean_greedy_improvement(
    folder: Path, gain: float, word: str
) -> None:
    write_matrix(folder, "1-momentum", {"dqn": 0.0, "momentum-dqn": gain})
    evidence = evidence_in(folder)
    found = evidence.contrast("momentum-dqn", "dqn").comparison
    assert found is not None
    # DQN's mean area is 4 on either game: the gain of g is g / 4.
    assert found.mean.value == pytest.approx(gain / 4)
    verdict = claims.momentum_helps(evidence)
    assert verdict.word == word
    assert verdict.seen.startswith("By the greedy score: mean improvement ")
    row = blocks.contrasts(evidence, "training")[0]
    assert row["improvement"] == "Momentum-DQN over DQN"
    assert row["Asterix"] == row["Breakout"] == row["mean"] == "0 % [0 %, 0 %]"


def test_while_runs_are_missing_nothing_is_decided_and_complete_games_are_told(
    folder: Path,
) -> None:
    missing = [("Breakout", "momentum-dqn", 2)]
    write_matrix(folder, "1-momentum", {"dqn": 0.0, "momentum-dqn": 4.0}, without=missing)
    evidence = evidence_in(folder)
    verdict = claims.momentum_helps(evidence)
    assert verdict.confirmed is None
    assert verdict.word == "Not decided yet, 5 of 6 runs"
    assert "so far (5 of 6 runs; complete: Asterix): mean improvement +100 % [" in verdict.seen
    row = blocks.contrasts(evidence, "greedy")[0]
    assert row["Asterix"].startswith("+100 % [")
    assert row["Breakout"] == row["mean"] == row["probability of improvement"] == ""
    figure = plates.does_it_help(evidence)
    assert figure is not None
    titles = [panel.title for panel in figure.panels]
    assert titles[0].startswith("Asterix: +100 % [")
    assert titles[1] == "Breakout: not complete"
    bars = plates.improvements(evidence)
    assert bars is not None
    assert bars.rows == ["Asterix"]
    assert "Not complete yet: Breakout." in bars.note


def test_without_any_run_everything_is_still_asked(folder: Path) -> None:
    evidence = evidence_in(folder)
    waiting = ("0 of 12", "0 of 12", "0 of 12", "0 of 12", "0 of 9", "0 of 12")
    assert words(*claims.verdicts(evidence)) == [
        f"Not decided yet, {runs} runs, one protocol, its baseline diverges" for runs in waiting
    ]
    assert plates.does_it_help(evidence) is None
    assert plates.improvements(evidence) is None


def test_c7_needs_an_interval_at_or_below_zero(folder: Path) -> None:
    write_matrix(folder, "1-momentum", {"dqn": 0.0})
    write_matrix(folder, "2-speedy", {"deep-sql": -3.9, "deep-dpp": 4.0})
    evidence = evidence_in(folder)
    sql = claims.does_not_improve(evidence, "deep-sql", "Deep SQL")
    dpp = claims.does_not_improve(evidence, "deep-dpp", "Deep DPP")
    assert words(sql, dpp, claims.fails(evidence)) == [
        "Confirmed",
        "Contradicted",
        "Not confirmed",
    ]


def test_deep_dpp_fails_if_a_run_diverges_or_half_the_area_is_lost(folder: Path) -> None:
    write_matrix(folder, "1-momentum", {"dqn": 0.0})
    one = [("Asterix", "deep-dpp", 1)]
    write_matrix(folder, "2-speedy", {"deep-dpp": 0.0}, games=["Asterix"], diverged=one)
    early = claims.fails(evidence_in(folder))
    assert early.word == "Confirmed"  # whatever the missing runs bring
    assert early.seen.startswith("1 of its runs diverged.")


def test_a_mean_improvement_below_minus_half_is_failing(folder: Path) -> None:
    write_matrix(folder, "1-momentum", {"dqn": 0.0})
    write_matrix(folder, "2-speedy", {"deep-dpp": -4.5})
    assert claims.fails(evidence_in(folder)).word == "Confirmed"


def betas(*gains: np.ndarray | float) -> dict[str, np.ndarray | float]:
    names = (*claims.BETAS, claims.HEURISTIC)
    return dict(zip(names, gains))


SLOPE = np.array([-1.0, 0, 0, 1])


@pytest.mark.parametrize(
    ("first", "last", "word"),
    [
        (-2.0, 2.0, "Confirmed"),
        (2.0, 2.0, "Contradicted"),
        (-2.0, -2.0, "Contradicted"),
        (-0.5, 2.0, "Not decided"),
    ],
)
def test_c8_compares_the_quarters_with_the_pooled_standard_error(
    folder: Path, first: float, last: float, word: str
) -> None:
    """Seeds add 0, 1 and 2: variance 1 in each group, so the error is √(1 · 2/3) = 0.816."""
    change = np.array([first, 0, 0, last])
    write_matrix(folder, "4-beta", betas(0.0, 0.0, change), games=["Asterix"])
    evidence = evidence_in(folder)
    verdict = claims.slower_and_higher(evidence)
    assert verdict.word == word
    rows = blocks.fixed_beta(evidence)
    assert [list(row.values())[:-1] for row in rows] == [
        ["Asterix", "first", "2", "2", f"{2 + first:g}", "0.8165"],
        ["Asterix", "last", "7", "7", f"{7 + last:g}", "0.8165"],
    ]
    words = {-2.0: "falls", -0.5: "stays within the error", 2.0: "rises"}
    assert [row["with β it"] for row in rows] == [words[first], words[last]]
    assert f"first quarter {words[first]} and the last quarter {words[last]}." in verdict.seen
    write_matrix(folder, "4-beta", betas(0.0, 0.0, change), games=["Breakout"])
    assert [row["game"] for row in blocks.fixed_beta(evidence_in(folder))] == [
        *("Asterix", "Asterix"),
        *("Breakout", "Breakout"),
    ]


@pytest.mark.parametrize(
    ("gain", "spread", "word"),
    [(0.0, 0.02, "Confirmed"), (3.0, 0.02, "Contradicted"), (0.0, 1.0, "Not decided")],
)
def test_c9_wants_an_interval_around_zero_and_within_a_quarter(
    folder: Path, gain: float, spread: float, word: str
) -> None:
    for seed in range(3):
        every = [
            (game, label, s)
            for game in GAMES
            for label in ("momentum-dqn", claims.HEURISTIC)
            for s in range(3)
            if s != seed
        ]
        # Each seed's own 0, 1 or 2 is taken back, but for a share of it.
        shift = (spread - 1) * seed
        write_matrix(folder, "1-momentum", {"momentum-dqn": shift}, without=every)
        write_matrix(folder, "4-beta", {claims.HEURISTIC: shift + gain}, without=every)
    assert claims.heuristic_does_as_well(evidence_in(folder)).word == word


def test_the_page_of_a_plan_has_its_verdicts_before_its_figures(folder: Path) -> None:
    write_matrix(folder, "1-momentum", {"dqn": 0.0, "momentum-dqn": 4.0})
    write_matrix(folder, "4-beta", betas(0.0, 0.1, 0.2, 0.3), games=["Asterix"])
    front, group = publish.chapters(evidence_in(folder))
    assert front.title == "Does it help?"
    assert [figure.name for figure in front.figures] == [
        "does-it-help-greedy",
        "improvements-greedy",
        "beta-greedy",
    ]
    judged, greedy, training, progress = (
        part.rows for part in front.parts if isinstance(part, Table)
    )
    assert front.parts[0].rows is judged
    assert greedy[0]["mean"].startswith("+100 % [")
    assert training[0]["mean"] == "0 % [0 %, 0 %]"
    assert judged[0]["verdict"] == "Confirmed, one protocol, its baseline diverges"
    # The general rules of the report judge nothing next to the plan's.
    assert not any("verdict" in part.rows[0] for part in group.parts if isinstance(part, Table))
    assert group.title == "MinAtar, protocol minatar-published"
    assert progress[0]["runs that have ended"] == "12 of 12"
    assert progress[2]["runs that have ended"] == "12 of 24"


def test_the_numbers_of_a_figure_are_all_there(folder: Path) -> None:
    write_matrix(folder, "1-momentum", {"dqn": 0.0, "momentum-dqn": 4.0})
    evidence = evidence_in(folder)
    curves, bars = plates.does_it_help(evidence), plates.improvements(evidence)
    assert curves is not None
    assert bars is not None
    rows = curves.numbers()
    assert len(rows) == 2 * 2 * 4 * 4  # games, algorithms, points; three runs and their mean
    own = [r["greedy score"] for r in rows if r["run"] == "2" and r["curve"] == "DQN"]
    assert own == [*(GREEDY + 2), *(GREEDY + 2)]
    gains = {row["game"]: row["normalised improvement"] for row in bars.numbers()}
    assert gains == {"Asterix": 1.0, "Breakout": 1.0, "mean": 1.0}
    assert all("<svg" in figure.svg for figure in (curves, bars))


def test_runs_of_no_matrix_are_named_and_left_out(folder: Path) -> None:
    write_matrix(folder, "1-momentum", {"dqn": 0.0})
    (folder / "evidence.toml").write_text(
        (folder / "evidence.toml").read_text().replace('"1-momentum.toml", ', "", 1)
    )
    evidence, odd = gather(read_plan(folder), find_runs(folder).runs)
    assert len(odd) == 6
    assert odd[0].endswith("seed-0: of no matrix of the plan; left out")
    assert evidence.groups == {}
