"""The page's deep half: what is on it, and what becomes of folders that are not in order."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from momentum_rl.cli import main
from momentum_rl.errors import UserError
from momentum_rl.report import write_report
from momentum_rl.report.deep import figures as deep_figures
from momentum_rl.report.drawing.bars import Bars, BarsFigure, percent
from momentum_rl.report.drawing.figure import Picture, page_libraries
from momentum_rl.report.drawing.panels import Panel, PanelsFigure, Trace
from momentum_rl.report.drawing.styles import BLUE, INK, Style
from momentum_rl.report.page import read_chapters, render
from momentum_rl.report.statistics import Estimate
from momentum_rl.runs.config import FORMAT, Config
from tests.report import synthetic_results
from tests.report import synthetic_runs as synthetic
from tests.report.test_page import _read

THREE = ("Asterix", "Pong", "SpaceInvaders")
SMALL = Config("dqn", "CartPole-v1", steps=5_000, iteration_steps=1_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, three games, a sweep of β, and a run of each kind that cannot be used."""
    folder = tmp_path_factory.mktemp("results")
    synthetic_results.write_assumption(folder / "assumption.csv", synthetic_results.assumptions(20))
    synthetic.write_atari(folder / "atari", games=THREE, seeds=3)
    synthetic.write_betas(folder / "beta", games=("Asterix",), seeds=2)
    newer = synthetic.write_run(folder / "newer", SMALL, [1.0] * 5)
    data = json.loads((newer / "config.json").read_text())
    (newer / "config.json").write_text(json.dumps({**data, "format": 99}))
    (folder / "foreign").mkdir()
    (folder / "foreign" / "config.json").write_text("[]")
    (folder / "empty").mkdir()
    return folder


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def page(folder: Path, told: list[str]) -> Path:
    return write_report(folder, folder / "report.html", formats=["svg"], notify=told.append)


def test_both_halves_are_on_one_page(page: Path) -> None:
    reader = _read(page)
    assert len(reader.ids) == len(set(reader.ids))
    for name in ("assumption_mean", "atari-curves", "atari-one-game", "atari-improvements"):
        assert name in reader.ids
        assert (page.parent / "figures" / f"{name}.svg").is_file()
    for name in ("atari-improvement-deep-sql", "paper-beta-beta"):
        assert name in reader.ids
    for link in reader.links:
        target = page.parent / link
        assert link[1:] in reader.ids if link.startswith("#") else target.is_file(), link
    assert not list((page.parent / "figures").glob("*.pdf"))


def test_the_protocol_stands_beside_the_numbers(page: Path) -> None:
    text = " ".join(_read(page).text)
    protocol = "reset paper; 5,000,000 agent steps a run, in 20 iterations of 250,000; 3 seeds"
    assert text.count(protocol) >= 4  # the section's and that of each of three verdicts
    assert "sticky actions 0.25; training scores" in text
    assert "evaluation at the end" in text
    assert "movi sweep paper-beta --out results" in text
    assert "diverged at step 2,500,100" in text


def test_the_page_names_what_could_not_be_used_and_where(
    page: Path, folder: Path, told: list[str]
) -> None:
    text = page.read_text(encoding="utf-8")
    lines = [
        "foreign/config.json: [], expected an object",
        f"newer/config.json: format 99, this version of movi reads 2 and {FORMAT}",
    ]
    assert told == [f"{folder}/{line}" for line in lines]
    for line in lines:
        assert line.replace("'", "&#39;") in text
    assert str(folder) not in text


def test_the_same_runs_give_the_same_page(page: Path, folder: Path) -> None:
    assert render(read_chapters(folder), folder, ["svg"]) == page.read_text(encoding="utf-8")


def test_nothing_but_runs_that_cannot_be_used_is_one_line(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder / "newer", tmp_path / "results" / "newer")
    shutil.copytree(folder / "foreign", tmp_path / "results" / "foreign")
    with pytest.raises(UserError) as caught:
        write_report(tmp_path / "results", tmp_path / "out" / "report.html")
    assert str(caught.value) == (
        f"{tmp_path}/results/foreign/config.json: [], expected an object (and 1 more)"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("seeds", [1, 3])
def test_ones_own_runs_are_described_and_the_page_does_not_speak_of_the_paper(
    seeds: int, tmp_path: Path
) -> None:
    """One environment cannot decide a claim about many; one run says nothing about others."""
    for algorithm, gain in (("dqn", 0.0), ("momentum-dqn", 1.0)):
        for seed in range(seeds):
            config = replace(SMALL, algorithm=algorithm, options=None, seed=seed)
            scores = [2.0 + gain + seed / 10] * 5
            synthetic.write_run(tmp_path / algorithm / str(seed), config, scores)
    page = write_report(tmp_path, formats=[])
    text = re.sub(r"\s+", " ", " ".join(_read(page).text))
    assert "<title>The results of these runs</title>" in page.read_text(encoding="utf-8")
    assert "What these runs show. None of the paper's claims is judged by them." in text
    assert "claims are confirmed" not in text
    assert "Claim" not in text
    assert "Momentum-DQN beside DQN on CartPole-v1 alone." in text
    repeated = seeds > 1
    assert ("outperforms" in text) is repeated
    assert ("probability of improvement 1.00 [1.00, 1.00]" in text) is repeated
    assert ("A single run of either says nothing about other seeds." in text) is not repeated
    # 3/2 − 1 from single runs; (3.1 − 2.1) / 2.1 from three.
    assert f"mean improvement +{'48' if repeated else '50'} %" in text
    table = page.read_text(encoding="utf-8").partition("Improvements over all games")[2]
    assert ("<td>–</td>" in table.partition("</table>")[0]) is not repeated


def test_atari_keeps_the_papers_words_but_not_its_title_until_something_is_decided(
    tmp_path: Path,
) -> None:
    synthetic.write_atari(tmp_path, games=("Pong",), seeds=1)
    page = write_report(tmp_path, formats=[])
    text = re.sub(r"\s+", " ", " ".join(_read(page).text))
    assert "The results of these runs" in text
    assert "They decide none of the paper's claims that are quoted here." in text
    assert "“Momentum-DQN outperforms DQN on 16 games out of 20" in text


def test_runs_that_have_only_begun_make_no_page(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path / "run", SMALL, [], status="running")
    with pytest.raises(UserError, match="run: no iteration completed yet"):
        write_report(tmp_path, tmp_path / "report.html")
    one = synthetic.write_run(tmp_path / "other", replace(SMALL, seed=1), [3.0], status="running")
    assert write_report(tmp_path, tmp_path / "report.html", formats=[]).is_file()
    (one / "metrics.jsonl").unlink()
    with pytest.raises(UserError, match=r"metrics\.jsonl: not there"):
        write_report(tmp_path, tmp_path / "report.html")


def test_everything_from_runs_is_escaped(tmp_path: Path) -> None:
    evil = '</script><img src=x onerror="alert(1)">'
    for algorithm in ("dqn", "momentum-dqn"):
        fields = {"preset": evil, "steps": 5_000, "iteration_steps": 1_000}  # as a file may say
        config = Config.from_dict({"algorithm": algorithm, "env": evil, **fields})
        synthetic.write_run(tmp_path / "loose" / algorithm, config, [1.0, 2.0, 3.0, 4.0, 5.0])
    labelled = replace(SMALL, preset=evil)
    synthetic.write_sweep(tmp_path / "sweep", [(evil, labelled, 1)], evil)
    synthetic.write_run(tmp_path / "sweep" / "runs" / "x", labelled, [1.0, 2.0, 3.0, 4.0, 5.0])
    chapters = read_chapters(tmp_path)
    assert [len(chapter.parts) for chapter in chapters[-2:]] == [2, 1]
    assert f"sweep {evil}" in chapters[-1].section.title
    assert chapters[-1].loaded.data.series[0].label == evil
    text = render(chapters, tmp_path).replace(page_libraries(), "")
    assert "<img" not in text
    assert "&lt;/script&gt;&lt;img src=x onerror=" in text


# The command -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--game", "Tetris"], "game: 'Tetris', expected one of Asterix, Pong, SpaceInvaders"),
        (["--format", "gif"], "'gif'"),
        (["--reference", "absent.json"], "absent.json: cannot be read"),
    ],
)
def test_a_wrong_option_is_one_line_and_writes_nothing(
    options: list[str],
    complaint: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out" / "page.html"
    assert main(["report", str(folder / "atari"), "--out", str(out), *options]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
    assert not out.parent.exists()


def test_the_command_lays_published_curves_over(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = tmp_path / "pong.json"
    points = [
        {"Agent": agent, "Iteration": i, "Value": level + i}
        for agent, level in (("Rainbow", 9.0), ("DQN", 3.0))
        for i in range(20)
    ]
    reference.write_text(json.dumps(points))
    for place in (f"{game}/{a}" for game in ("Asterix", "Pong") for a in ("dqn", "momentum-dqn")):
        shutil.copytree(folder / "atari" / place, tmp_path / "atari" / place)
    out = tmp_path / "page.html"
    words = ["report", str(tmp_path / "atari"), "--out", str(out), "--game", "Pong"]
    assert main([*words, "--reference", str(reference), "--format", "svg"]) == 0
    assert capsys.readouterr().out == f"report       {out}\n"
    reader = _read(out)
    text = " ".join(reader.text)
    assert "DQN and Momentum-DQN on Pong" in text
    assert "DQN (published)" in (tmp_path / "figures" / "atari-curves.svg").read_text()
    # The published variants against each other: (18.5 − 12.5) / 12.5, from one run each.
    assert "Published curves against each other" in text
    row = re.search(r"<td>Rainbow</td><td>DQN</td><td>1 of 1</td><td>\+48 %</td>", out.read_text())
    assert row is not None


# Figures -----------------------------------------------------------------------------------------


def _bars(*values: float, spread: float | None = None) -> BarsFigure:
    games = {
        f"g{i}": Estimate(v, None if spread is None else v - spread, spread and v + spread)
        for i, v in enumerate(values)
    }
    return BarsFigure("f", "F", "all", (Bars(Style("one", BLUE), games, 0.1),))


def test_bars_are_what_they_say() -> None:
    figure = _bars(0.5, -0.25, spread=0.1)
    rows = figure.spec(interactive=True)["datasets"]["bars"]
    assert [(row["y"], row["l"], row["h"]) for row in rows] == [
        (0.5, 0.4, 0.6),
        (-0.25, -0.35, -0.15),
    ]
    assert rows[1]["text"] == "−25 % [−35 %, −15 %]"
    assert "bootstrap intervals" in figure.caption
    assert figure.is_linear
    assert figure.alt.endswith("one: g0 +50 %, g1 −25 %.")


def test_bars_beyond_measure_get_another_axis_and_the_caption_says_so() -> None:
    figure = _bars(30.0, 0.1, -0.5)
    assert not figure.is_linear
    assert "logarithmic beyond" in figure.caption
    endless = BarsFigure(
        "f", "F", "all", (Bars(Style("one", INK), {"g": Estimate(0.1, -np.inf, np.inf)}),)
    )
    assert "cut off" in endless.caption
    for one in (figure, endless, _bars(0.0), _bars(float("inf"))):
        assert "<svg" in Picture(one).svg
        json.dumps(one.spec(interactive=True), allow_nan=False)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 %"), (0.0004, "0 %"), (-1.0, "−100 %"), (0.0994, "+9.9 %")]
)
def test_shares_in_words(value: float, text: str) -> None:
    assert percent(value) == text


def test_a_drawn_point_is_a_point_of_the_data() -> None:
    mean = np.sin(np.arange(500.0))
    figure = PanelsFigure(
        "f",
        "F",
        "all",
        (Panel("g", (Trace(Style("one", BLUE), np.arange(1.0, 501), mean, mean * 0 + 1),)),),
    )
    rows = [r for r in figure.spec(interactive=False)["datasets"]["all"] if r["k"] == "line"]
    assert len(rows) == 200
    assert (rows[0]["x"], rows[-1]["x"]) == (1, 500)
    for row in rows:
        assert row["y"] == pytest.approx(mean[row["x"] - 1], abs=1e-4)
        assert row["h"] - row["l"] == pytest.approx(2, abs=1e-3)
    assert "Drawn at 200 of 500 points" in figure.caption


def test_panels_without_a_value_or_with_one_still_draw(tmp_path: Path) -> None:
    style = Style("one", BLUE)
    panels = [
        Panel("empty", (Trace(style, np.array([1.0, 2.0]), np.array([np.nan, np.nan])),)),
        Panel("single", (Trace(style, np.array([1.0]), np.array([3.0]), np.array([0.0]), (0, 7)),)),
    ]
    figure = PanelsFigure("f", "F", "all", tuple(panels))
    for form in Picture(figure).save(tmp_path):
        assert form.stat().st_size > 500
    assert "× marks where a run diverged" in figure.caption
    assert "empty: one none; single: one 3" in figure.alt


def test_figures_use_only_letters_that_their_font_has(folder: Path) -> None:
    allowed = re.compile(r"[ -~ -ÿα-ω−∞]*")
    for chapter in read_chapters(folder):
        for part in chapter.parts:
            figure = part.figure
            words = [figure.title, figure.subtitle]
            words += [style.label for style in getattr(figure, "styles", [])]
            for text in words:
                assert allowed.fullmatch(text), text


def test_curves_differ_by_dashes_alone(folder: Path) -> None:
    figures = [part.figure for chapter in read_chapters(folder) for part in chapter.parts]
    panels = [figure for figure in figures if isinstance(figure, PanelsFigure)]
    assert len(panels) == 4
    for figure in panels:
        dashes = [style.dash for style in figure.styles]
        assert len(set(dashes)) == len(dashes), figure.name
    assert deep_figures.LARGE == "SpaceInvaders"
