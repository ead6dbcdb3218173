"""The deep half of the page in a real browser: 20 games, four algorithms, five seeds."""

from pathlib import Path

import pytest

from momentum_rl.report import write_report
from tests.browser import Browser
from tests.report import synthetic_runs as synthetic
from tests.report.test_browser import SIZES, STATES, TOOLTIP

PLOTS = 6


@pytest.fixture(scope="module")
def page(twenty_games: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    return write_report(twenty_games, out, formats=[])


def test_every_figure_draws_without_an_error_or_the_network(browser: Browser, page: Path) -> None:
    browser.size(1200, 900)
    browser.open(page)
    browser.wait_until_drawn()
    assert browser.console() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.run(STATES) == ["interactive"] * PLOTS
    assert all(width > 600 and height > 300 for width, height in browser.run(SIZES))
    lines = "return document.querySelectorAll('#plot-atari-curves .mark-line path[d]').length;"
    assert browser.run(lines) == 20 * 4
    bars = "return document.querySelectorAll('#plot-{} .mark-rect path[d]').length;"
    assert browser.run(bars.format("atari-improvement-momentum-dqn")) == 20
    assert browser.run(bars.format("atari-improvements")) == 60


def test_no_table_is_cut_at_1200_pixels(browser: Browser, page: Path) -> None:
    browser.size(1200, 900)
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach(own => own.open = true);")
    cut = (
        "return [...document.querySelectorAll('.wide')].map("
        "  own => [own.querySelectorAll('tr').length, own.scrollWidth - own.clientWidth]);"
    )
    # Three improvements, 20 games of four algorithms and all their runs, each with a heading.
    assert browser.run(cut) == [[1 + 3, 0], [1 + 80, 0], [1 + 400, 0]]


def test_hovering_tells_scores_and_improvements(browser: Browser, page: Path) -> None:
    browser.size(1200, 900)
    browser.open(page)
    browser.wait_until_drawn()
    browser.hover("#plot-atari-one-game svg")
    rows = dict(browser.wait_for(TOOLTIP))
    assert rows["game"] == "SpaceInvaders"
    iteration = int(rows["million frames"])  # as iterations have 250,000 steps of four frames
    expected = synthetic.curve("SpaceInvaders")[iteration - 1]
    mean, spread = (float(part.replace(",", "")) for part in rows["DQN"].split(" ± "))
    assert mean == pytest.approx(expected, rel=1e-3)
    assert spread == pytest.approx(2**0.5 * synthetic.SPREADS["SpaceInvaders"], rel=1e-3)
    browser.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    browser.hover("#plot-atari-improvement-momentum-dqn .mark-rect path", across=0.5)
    rows = dict(browser.wait_for(TOOLTIP))
    assert rows["improvement"].startswith({"Seaquest": "+330 %"}.get(rows["game"], "+40 %"))


def test_a_phone_shows_it_without_scrolling_sideways(browser: Browser, page: Path) -> None:
    browser.size(375, 700, mobile=True)
    browser.open(page)
    browser.wait_until_drawn()
    assert all(250 < width <= 375 for width, _ in browser.run(SIZES))
    assert browser.run("return document.documentElement.scrollWidth;") == 375


def test_without_javascript_the_static_figures_are_there(browser: Browser, page: Path) -> None:
    browser.size(1200, 900)
    browser.javascript(False)
    browser.open(page)
    browser.javascript(True)
    assert browser.run(STATES) == [None] * PLOTS
    assert all(width > 600 and height > 300 for width, height in browser.run(SIZES))
    text = browser.run("return document.getElementById('section-atari').parentElement.innerText;")
    assert "60 runs diverged" in text
    assert "Normalised improvement of Momentum-DQN over DQN" in text
