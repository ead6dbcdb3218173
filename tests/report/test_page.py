"""The page on runs: what is on it, and what becomes of folders that are not in order."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from momentum_rl.cli import main
from momentum_rl.errors import UserError
from momentum_rl.report.chapters import LEAD, chapters_of_runs, write_report
from momentum_rl.report.curves import Curve, CurvesFigure, Panel
from momentum_rl.report.intervals import Entry, IntervalsFigure
from momentum_rl.report.page import page_libraries, render
from momentum_rl.report.statistics import Estimate
from momentum_rl.report.style import BLUE, INK, Style, percent
from momentum_rl.runs.config import FORMAT, Config
from tests.report import synthetic_runs as synthetic
from tests.report.reading import read

TITLE = "The results of these runs"
THREE = ("Asterix", "Pong", "SpaceInvaders")
SMALL = Config("dqn", "CartPole-v1", steps=5_000, iteration_steps=1_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three games, a sweep of β, and a run of each kind that cannot be used."""
    folder = tmp_path_factory.mktemp("results")
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


def test_a_sweep_and_a_folder_have_figures_tables_and_links_that_lead_somewhere(page: Path) -> None:
    reader = read(page)
    assert len(reader.ids) == len(set(reader.ids))
    for name in ("atari-curves", "atari-improvements", "paper-beta-curves"):
        assert name in reader.ids
        assert (page.parent / "figures" / f"{name}.svg").is_file()
    for link in reader.links:
        target = page.parent / link
        assert link[1:] in reader.ids if link.startswith("#") else target.is_file(), link
    assert not list((page.parent / "figures").glob("*.pdf"))
    text = " ".join(reader.text)
    assert "movi sweep paper-beta --out results" in text
    assert "diverged at step 2,500,100" in text
    assert "learning_rate 0.00025" in text  # a setting that all runs share


def test_the_page_names_what_could_not_be_used_and_where(
    page: Path, folder: Path, told: list[str]
) -> None:
    text = page.read_text(encoding="utf-8")
    lines = [
        "foreign/config.json: [], expected an object",
        f"newer/config.json: format 99, this version of movi reads {FORMAT}",
    ]
    assert told == [f"{folder}/{line}" for line in lines]
    for line in lines:
        assert line.replace("'", "&#39;") in text
    assert str(folder) not in text


def test_the_same_runs_give_the_same_page(page: Path, folder: Path) -> None:
    assert render(TITLE, LEAD, chapters_of_runs(folder), folder, ["svg"]) == page.read_text(
        encoding="utf-8"
    )


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
def test_intervals_are_of_several_runs(seeds: int, tmp_path: Path) -> None:
    for algorithm, gain in (("dqn", 0.0), ("momentum-dqn", 1.0)):
        for seed in range(seeds):
            config = replace(SMALL, algorithm=algorithm, options=None, seed=seed)
            scores = [2.0 + gain + seed / 10] * 5
            synthetic.write_run(tmp_path / algorithm / str(seed), config, scores)
    page = write_report(tmp_path, formats=[])
    text = re.sub(r"\s+", " ", " ".join(read(page).text))
    assert "No sentence of a paper is judged by them." in text
    assert "verdict" not in text
    # 3/2 − 1 from single runs; (3.1 − 2.1) / 2.1 from three.
    table = page.read_text(encoding="utf-8").partition("Improvements over all games")[2]
    assert f"+{'48' if seeds > 1 else '50'} %" in table.partition("</table>")[0]
    assert ("<td>–</td>" in table.partition("</table>")[0]) is (seeds == 1)


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
    chapters = chapters_of_runs(tmp_path)
    assert [len(chapter.figures) for chapter in chapters[-2:]] == [2, 1]
    assert f"sweep {evil}" in chapters[-1].title
    text = render(evil, evil, chapters, tmp_path).replace(page_libraries(), "")
    assert "<img" not in text
    assert "&lt;/script&gt;&lt;img src=x onerror=" in text


# The command -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--format", "gif"], "'gif'"),
        (["--game", "Pong"], "--game"),
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


# Figures -----------------------------------------------------------------------------------------


def _improvements(*values: float, spread: float | None = None) -> IntervalsFigure:
    entries = tuple(
        Entry(
            f"g{i}",
            Style("one", BLUE),
            Estimate(v, None if spread is None else v - spread, spread and v + spread),
        )
        for i, v in enumerate(values)
    )
    return IntervalsFigure("f", "F", "all", entries, "gain")


def test_intervals_are_what_they_say() -> None:
    figure = _improvements(0.5, -0.25, spread=0.1)
    rows = figure.spec["datasets"]["all"]
    assert [(row["v"], row["l"], row["h"]) for row in rows] == [
        (0.5, 0.4, 0.6),
        (-0.25, -0.35, -0.15),
    ]
    assert rows[1]["t"] == "−25 % [−35 %, −15 %]"


def test_gains_beyond_measure_get_another_axis() -> None:
    figure = _improvements(30.0, 0.1, -0.5)
    assert figure.spec["layer"][2]["encoding"]["x"]["scale"]["type"] == "symlog"
    endless = IntervalsFigure(
        "f",
        "F",
        "all",
        (Entry("g", Style("one", INK), Estimate(0.1, -np.inf, np.inf)),),
    )
    low, high = endless.domain
    (row,) = endless.spec["datasets"]["all"]
    assert (row["l"], row["h"]) == (round(low, 5), round(high, 5))
    for one in (figure, endless, _improvements(0.0), _improvements(float("inf"))):
        assert "<svg" in one.svg
        json.dumps(one.spec, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 %"), (0.0004, "0 %"), (-1.0, "−100 %"), (0.0994, "+9.9 %")]
)
def test_shares_in_words(value: float, text: str) -> None:
    assert percent(value) == text


def test_a_drawn_point_is_a_point_of_the_data() -> None:
    mean = np.sin(np.arange(900.0))
    curve = Curve(Style("one", BLUE), np.arange(1.0, 901), mean, mean * 0 + 1)
    figure = CurvesFigure("f", "F", "all", (Panel("g", (curve,)),))
    rows = [r for r in figure.spec["datasets"]["all"] if r["k"] == "line"]
    assert len(rows) == 400
    assert (rows[0]["x"], rows[-1]["x"]) == (1, 900)
    for row in rows:
        assert row["y"] == pytest.approx(mean[int(row["x"]) - 1], abs=1e-4)
        assert row["h"] - row["l"] == pytest.approx(2, abs=1e-3)


def test_panels_without_a_value_or_with_one_still_draw(tmp_path: Path) -> None:
    style = Style("one", BLUE)
    one, two = np.array([1.0]), np.array([1.0, 2.0])
    panels = (
        Panel("empty", (Curve(style, two, two * np.nan),)),
        Panel("single", (Curve(style, one, np.array([3.0]), np.array([0.0]), marks=(0, 7)),)),
    )
    figure = CurvesFigure("f", "F", "all", panels)
    for form in figure.save(tmp_path):
        assert form.stat().st_size > 500
    sizes = [row["s"] for row in figure.spec["datasets"]["all"] if row["k"] == "mark"]
    assert sizes == [90]


def test_figures_use_only_letters_that_their_font_has(folder: Path) -> None:
    allowed = re.compile(r"[ -~ -ÿα-ω−∞]*")
    for chapter in chapters_of_runs(folder):
        for figure in chapter.figures:
            words = [figure.title, figure.subtitle]
            words += [style.label for style in getattr(figure, "styles", [])]
            for text in words:
                assert allowed.fullmatch(text), text


def test_curves_differ_by_dashes_alone(folder: Path) -> None:
    figures = [figure for one in chapters_of_runs(folder) for figure in one.figures]
    panels = [figure for figure in figures if isinstance(figure, CurvesFigure)]
    assert len(panels) == 2
    for figure in panels:
        dashes = [style.dash for style in figure.styles]
        assert len(set(dashes)) == len(dashes), figure.name
