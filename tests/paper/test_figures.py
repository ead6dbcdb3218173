import json
import re
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.report.curves import POINTS, CurvesFigure, thinned
from momentum_rl.report.figure import asset
from momentum_rl.report.style import INK, MUTED, Style
from paper.claims import figures
from paper.claims.drawing import SCHEMES, Line, log_figure
from paper.claims.tables import ASSUMED, PRINTED, Assumptions
from tests.paper import synthetic_results as synthetic


@cache
def every_figure() -> list[CurvesFigure]:
    compare, check, bounds = synthetic.compare(), synthetic.assumptions(), synthetic.bounds()
    found = [
        figures.movi_vs_avi(compare),
        figures.schemes_mean(compare),
        figures.schemes_std(compare),
        figures.assumption_mean(check),
        figures.assumption_std(check),
        figures.assumption_assumed(check),
        figures.assumption_one_more(check),
        figures.bounds(bounds),
        figures.bounds_schemes(bounds),
        figures.constant_beta(bounds),
    ]
    return [figure for figure in found if figure is not None]


def _curves(values: np.ndarray, spread: np.ndarray | None = None) -> CurvesFigure:
    x = np.arange(1.0, values.size + 1)
    style = Style("one", INK)
    return log_figure("f", "F", "all of it", ("k", "y"), x, [Line(style, values, spread)])


def test_nothing_heavy_is_imported_before_a_figure_is_drawn() -> None:
    heavy = "{'vl_convert', 'jax'}"
    code = f"import sys, momentum_rl.report; print({heavy} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_there_are_ten_figures_with_names_of_their_own() -> None:
    names = [figure.name for figure in every_figure()]
    assert names == sorted(set(names), key=names.index)
    assert len(names) == 10


@given(st.integers(1, 30_000), st.integers(2, 500))
def test_thinning_keeps_the_ends_and_the_order_and_is_even_in_log(size: int, points: int) -> None:
    x = np.arange(1.0, size + 1)
    kept = thinned(x, points)
    assert kept.size <= max(points, 1)
    assert kept[0] == 0
    assert kept[-1] == size - 1
    assert (np.diff(kept) > 0).all()
    # No gap is more than a step of the grid, or of the data where those are coarser.
    gaps, step = np.log(x[kept][1:] / x[kept][:-1]), np.log(size) / (points - 1)
    assert (gaps <= 2 * step + np.log1p(2 / x[kept][:-1])).all()


def test_a_drawn_point_is_a_point_of_the_data() -> None:
    compare = synthetic.compare()
    rows = figures.schemes_mean(compare).spec["datasets"]["all"]
    movi = [row for row in rows if row["k"] == "line" and row["c"] == "MoVI"]
    assert 200 < len(movi) <= POINTS
    for row in movi:
        assert row["y"] == pytest.approx(compare.mean["movi"][int(row["x"]) - 1], rel=1e-5)


def test_a_band_below_zero_runs_to_the_edge() -> None:
    figure = _curves(np.array([1.0, 0.5, 0.2]), np.array([0.1, 0.6, 0.1]))
    band = [row for row in figure.spec["datasets"]["all"] if "l" in row]
    low, _ = figure.y_range
    assert [row["l"] for row in band] == [0.9, low, low]
    assert low == 0.2


def test_hovering_tells_the_true_value_even_where_the_drawing_cannot() -> None:
    figure = _curves(np.array([1.0, 0.0, np.inf]))
    rows = [r for r in figure.spec["datasets"]["all"] if r["k"] == "line"]
    assert [(row["t"], row["y"]) for row in rows] == [("1", 1.0), ("0", figure.y_range[0])]


def test_all_zero_and_single_points_still_draw() -> None:
    for values in (np.zeros(3), np.array([2.0]), np.full(4, 1.0)):
        assert "<svg" in _curves(values).svg


@pytest.mark.parametrize("character", ["\x1b", "\x00", "\ufffe", "\ud800"])
def test_a_character_that_xml_forbids_is_drawn_as_a_space(character: str) -> None:
    """The converter would not refuse it: it would abort the process."""
    line = Line(Style(f"a{character}b", INK), np.array([1.0, 2.0]))
    named = log_figure("f", f"F{character}", "all", ("k", "y"), np.arange(1.0, 3.0), [line])
    assert ">a b<" in named.svg


def test_curves_differ_by_dashes_alone() -> None:
    for figure in every_figure():
        dashes = [curve.style.dash for curve in figure.curves]
        assert len(set(dashes)) == len(dashes), figure.name


def test_a_scheme_has_one_colour_in_all_figures() -> None:
    seen: dict[str, set[str]] = {}
    for figure in every_figure():
        for curve in figure.curves:
            seen.setdefault(curve.style.label, set()).add(curve.style.colour)
    for style in SCHEMES.values():
        assert seen[style.label] == {style.colour}


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_enough_in_both_themes() -> None:
    colour = r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)"
    pairs = {name: both for name, *both in re.findall(colour, asset("page.css"))}
    for name in [name for name in pairs if re.fullmatch("f[0-9a-f]{6}", name)]:
        least = {"fdfe4e8": 1.1, f"f{INK[1:]}": 7, f"f{MUTED[1:]}": 4.5}.get(name, 3)
        assert pairs[name][0] == f"#{name[1:]}"
        for theme in (0, 1):
            assert _contrast(pairs[name][theme], pairs["card"][theme]) >= least, name
    for name in ("ink", "muted", "link", "no"):
        for theme in (0, 1):
            for ground in ("page", "card"):
                assert _contrast(pairs[name][theme], pairs[ground][theme]) >= 4.5, (name, theme)


def test_figures_use_only_letters_that_their_font_has() -> None:
    allowed = re.compile(r"[ -~ -ÿα-ω−∞]*")
    for figure in every_figure():
        words = [figure.title, figure.subtitle, figure.x_title, figure.y_title]
        words += [curve.style.label for curve in figure.curves]
        for text in words:
            assert allowed.fullmatch(text), text


def test_every_format_is_written_and_is_what_it_says(tmp_path: Path) -> None:
    figure = every_figure()[0]
    paths = figure.save(tmp_path / "new")
    assert [path.name for path in paths] == [f"movi_vs_avi.{f}" for f in ("pdf", "png", "svg")]
    pdf, png, svg = (path.read_bytes() for path in paths)
    assert pdf.startswith(b"%PDF-")
    width, height = struct.unpack(">II", png[16:24])
    assert width > 1500
    assert height > 900
    text = svg.decode()
    assert text.startswith("<svg")
    assert "MoVI against AVI" in text
    assert figure.save(tmp_path, ["svg"]) == [tmp_path / f"{figure.name}.svg"]
    with pytest.raises(UserError, match="'gif', expected one of pdf, png, svg"):
        figure.save(tmp_path, ["gif"])


def test_figures_without_their_data_are_left_out() -> None:
    compare = synthetic.compare(10)
    bounds = synthetic.bounds(10)
    alone = type(compare)(compare.iteration, {"movi": compare.mean["movi"]}, {})
    assert figures.movi_vs_avi(alone) is None
    bare = type(bounds)(bounds.iteration, {"loss_sup": bounds.columns["loss_sup"]})
    assert figures.bounds(bare) is None
    assert figures.bounds_schemes(bare) is None
    assert figures.constant_beta(bare) is None


def test_the_papers_figure_is_drawn_as_printed_and_ours_by_j() -> None:
    check = synthetic.assumptions()
    paper, ours = figures.assumption_mean(check), figures.assumption_assumed(check)
    assert paper is not None
    assert ours is not None
    np.testing.assert_array_equal(paper.curves[1].y, check.of(PRINTED)[10].mean[1])
    assert "j = 10" in paper.subtitle
    labels = [curve.style.label for curve in ours.curves]
    assert labels[:-1] == ["l = 0, j = 10", "l = 1, j = 10", "l = 1, j = 100", "l = 1, j = 1,000"]
    assert labels[-1] == "slope −1/2"
    np.testing.assert_array_equal(ours.curves[3].y, check.of(ASSUMED)[1000].mean[1])
    only = Assumptions({PRINTED: check.parts[PRINTED]})
    assert figures.assumption_assumed(only) is None
    assert figures.assumption_mean(Assumptions({})) is None


def test_the_papers_figure_ends_at_its_200_restarts_and_one_beside_it_has_the_others() -> None:
    more = synthetic.assumptions(300)
    paper, further = figures.assumption_mean(more), figures.assumption_further(more)
    assert paper is not None
    assert further is not None
    assert (paper.curves[0].x[-1], further.curves[0].x[-1]) == (200, 300)
    for one, other in zip(paper.curves, further.curves, strict=True):
        np.testing.assert_array_equal(one.y, other.y[:200])
    assert figures.assumption_further(synthetic.assumptions(200)) is None


def test_an_unknown_scheme_is_drawn_under_its_own_name() -> None:
    compare = synthetic.compare(10)
    extra = type(compare)(compare.iteration, {**compare.mean, "mine": compare.mean["sql"]}, {})
    labels = [curve.style.label for curve in figures.schemes_mean(extra).curves]
    assert labels == ["AVI", "MoVI", "SQL", "DPP", "mine"]


def test_specifications_are_small_and_plain_json() -> None:
    for figure in every_figure():
        text = json.dumps(figure.spec, allow_nan=False)
        assert len(text) < 400_000
        assert "http" not in text
