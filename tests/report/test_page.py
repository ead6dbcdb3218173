import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from momentum_rl.errors import UserError
from momentum_rl.report import write_report
from momentum_rl.report.drawing.figure import page_libraries
from momentum_rl.report.page import read_chapters, render
from momentum_rl.runs.config import Config
from tests.report import synthetic_results as synthetic
from tests.report.synthetic_runs import write_run

VOID = {"meta", "link", "br", "img", "input", "hr"}


class _Reader(HTMLParser):
    """Ids, links, texts; and whether every element is closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert not any(name.startswith("on") for name in values), values
        if identifier := values.get("id"):
            self.ids.append(identifier)
        if link := values.get("href"):
            self.links.append(link)
        assert "src" not in values
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)


def _read(page: Path) -> _Reader:
    reader = _Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    assert reader.open == []
    return reader


@pytest.fixture
def page(tables_page: Path) -> Path:
    return tables_page


def test_every_link_leads_somewhere(page: Path) -> None:
    reader = _read(page)
    assert len(reader.ids) == len(set(reader.ids))
    assert sum(link.endswith(".csv") for link in reader.links) == 3
    assert sum(link.endswith(".pdf") for link in reader.links) == 10
    for link in reader.links:
        if link.startswith("#"):
            assert link[1:] in reader.ids
        else:
            assert not link.startswith(("/", "http", "file"))
            assert (page.parent / link).is_file(), link


def test_each_figure_has_claim_seen_and_verdict_and_its_origin(page: Path) -> None:
    text = " ".join(_read(page).text)
    assert text.count("Claim") == 9
    assert (
        "6 of 6 observations are reproduced at the paper's numbers, 3 of 3 theorems hold, 1 of "
        "them by bounds that say nothing here."
    ) in " ".join(text.split())
    assert text.count("About") == 4
    # As assumed a bias remains: a finding, without a badge.
    assert "seems to go to zero for every l at j = 1,000, and not at j = 10, 100." in text
    assert "✗" not in text
    for expected in ("python -m paper compare --out results", "branching", "jax", "12.3 s"):
        assert expected in text


def test_other_numbers_than_the_papers_are_not_said_to_be_its_own(tmp_path: Path) -> None:
    folder = synthetic.write_all(tmp_path, 1_000)
    record = folder / "compare.json"
    record.write_text(record.read_text().replace('"mdps": 100', '"mdps": 10'))
    text = " ".join(_read(write_report(folder, formats=[])).text)
    assert "6 of 6 observations are reproduced, 3 of 3 theorems" in " ".join(text.split())


def test_the_same_data_give_the_same_bytes(tables: Path, page: Path, tmp_path: Path) -> None:
    # At the same distance from the data, as the links are relative.
    chapters = read_chapters(tables)
    assert render(chapters, page.parent) == page.read_text(encoding="utf-8")
    # Not the PDF: the converter lists its fonts in any order.
    (part,) = (p for c in chapters for p in c.parts if p.figure.name == "bounds")
    for file in part.picture.save(tmp_path, ["svg", "png"]):
        assert file.read_bytes() == (page.parent / "figures" / file.name).read_bytes(), file


def test_the_page_is_a_few_megabytes_and_names_no_place_to_load_from(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text) < 3_000_000
    assert "default-src 'none'" in text
    assert "<link" not in text
    assert "@import" not in text
    assert not list(page.parent.glob(".*"))


def test_any_part_of_the_results_makes_a_page(tmp_path: Path) -> None:
    synthetic.write_assumption(tmp_path / "assumption.csv", synthetic.assumptions(20))
    (tmp_path / "assumption.json").unlink()
    reader = _read(write_report(tmp_path, tmp_path / "report.html", formats=[]))
    text = " ".join(reader.text)
    assert "How these data were made is not recorded" in text
    assert "python -m paper compare" in text
    assert "section-schemes" not in reader.ids
    assert "assumption.csv" in reader.links


def test_results_in_folders_below_are_found_each_with_its_place(tmp_path: Path) -> None:
    """Two experiments of one kind, and another; numbers of figures and foreign files are none."""
    for place in ("first try", "first-try", "later/deeper"):
        (tmp_path / place).mkdir(parents=True)
        synthetic.write_assumption(tmp_path / place / "assumption.csv", synthetic.assumptions(20))
    synthetic.write_bounds(tmp_path / "bounds.csv", synthetic.bounds(300))
    for foreign in ("figures/bounds.csv", "later/figures/compare.csv"):
        (tmp_path / foreign).parent.mkdir()
        (tmp_path / foreign).write_text("k,y\n1,2\n")
    told: list[str] = []
    page = write_report(tmp_path, formats=["svg"], notify=told.append)
    assert told == []
    reader = _read(page)
    text = " ".join(reader.text)
    assert len(reader.ids) == len(set(reader.ids))
    for place in ("first try", "first-try", "later/deeper"):
        assert f"The assumption behind Proposition 1, in {place}" in text
    for mark in ("first-try", "first-try-2", "later-deeper"):
        assert f"{mark}-assumption_mean" in reader.ids
        assert (tmp_path / "figures" / f"{mark}-assumption_mean.svg").is_file()
    assert "later/deeper/assumption.csv" in reader.links
    assert "bounds" in reader.ids
    # What is below is not said to be missing, what is nowhere is.
    assert "run python -m paper compare" in re.sub(r"\s+", " ", text)
    assert "run python -m paper assumption" not in re.sub(r"\s+", " ", text)


def test_a_file_below_that_cannot_be_read_is_named_by_its_place(tmp_path: Path) -> None:
    synthetic.write_bounds(tmp_path / "bounds.csv", synthetic.bounds(300))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "compare.csv").write_text("scheme,iteration,l1_mean,l1_std\navi,1,")
    told: list[str] = []
    write_report(tmp_path, formats=[], notify=told.append)
    assert told == [f"{tmp_path / 'sub' / 'compare.csv'}: line 2 has 3 values, expected 4"]


def test_a_half_written_file_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    synthetic.write_assumption(tmp_path / "assumption.csv", synthetic.assumptions(20))
    (tmp_path / "compare.csv").write_text("scheme,iteration,l1_mean,l1_std\navi,1,2,3\navi,2,")
    (tmp_path / "notes.txt").write_text("foreign")
    told: list[str] = []
    page = write_report(tmp_path, tmp_path / "report.html", formats=[], notify=told.append)
    assert told == [f"{tmp_path / 'compare.csv'}: line 3 has 3 values, expected 4"]
    text = page.read_text(encoding="utf-8")
    assert "compare.csv: line 3 has 3 values" in text
    assert str(tmp_path) not in text


def test_nothing_to_report_is_one_line_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out" / "report.html"
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no results to report, expected files written by `movi"):
        write_report(tmp_path / "empty", out)
    with pytest.raises(UserError, match="no such directory"):
        write_report(tmp_path / "absent", out)
    (tmp_path / "empty" / "bounds.csv").write_text("iteration,foreign\n1,2\n")
    with pytest.raises(UserError, match="nothing that the report knows how to draw"):
        write_report(tmp_path / "empty", out)
    (tmp_path / "empty" / "bounds.csv").write_text("")
    with pytest.raises(UserError, match=r"bounds\.csv: empty"):
        write_report(tmp_path / "empty", out)
    assert not out.parent.exists()


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    synthetic.write_assumption(tmp_path / "assumption.csv", synthetic.assumptions(20))
    with pytest.raises(UserError, match="is a directory, expected a file"):
        write_report(tmp_path, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file, expected a directory"):
        write_report(tmp_path, tmp_path / "file" / "report.html")


def test_everything_from_files_is_escaped(tmp_path: Path) -> None:
    evil = '</script><img src=x onerror="alert(1)">&amp;'
    data = synthetic.compare(200)
    data = type(data)(
        data.iteration, {**data.mean, evil: data.mean["sql"]}, {**data.std, evil: data.std["sql"]}
    )
    synthetic.write_compare(tmp_path / "compare.csv", data)
    (tmp_path / "compare.json").write_text(
        json.dumps({"command": evil, "config": {evil: [evil]}, "versions": {evil: evil}})
    )
    text = render(read_chapters(tmp_path), tmp_path).replace(page_libraries(), "")
    assert "<img" not in text
    assert "&lt;/script&gt;&lt;img src=x onerror=" in text


@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\x1b"])
def test_a_name_with_a_letter_that_vega_cannot_read_makes_a_page(
    letter: str, tmp_path: Path
) -> None:
    """A separator of lines in an environment's name ended the whole report."""
    for env in (f"Maze{letter}1", "Other"):
        for algorithm in ("dqn", "momentum-dqn"):
            for seed in range(2):
                config = Config(algorithm, env, seed=seed, steps=3000, iteration_steps=1000)
                place = tmp_path / "runs" / f"{env == 'Other'}-{algorithm}-{seed}"
                write_run(place, config, [1.0, 2.0, 3.0 + seed])
    page = write_report(tmp_path / "runs", tmp_path / "report.html", formats=[])
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", page.read_text(encoding="utf-8"))
    assert "Maze 1" in drawn
    assert not any(letter in text for text in drawn)


def test_a_path_with_odd_letters_is_linked(tmp_path: Path) -> None:
    odd = tmp_path / 'a "b" #c%20 é'
    odd.mkdir()
    synthetic.write_assumption(odd / "assumption.csv", synthetic.assumptions(20))
    page = write_report(odd, tmp_path / "report.html", formats=["svg"])
    from urllib.parse import unquote

    links = [link for link in _read(page).links if link.endswith(".csv")]
    assert [os.path.normpath(unquote(link)) for link in links] == [f"{odd.name}/assumption.csv"]
