"""The page in a real browser: Debian's Chromium, headless, without a network."""

from itertools import pairwise
from pathlib import Path

import pytest

from momentum_rl.report.chapters import write_report
from tests.browser import Browser
from tests.report import synthetic_runs as synthetic

PLOTS = 2
SIZES = (
    "return [...document.querySelectorAll('.plot svg')]"
    ".map(s => s.getBoundingClientRect()).map(b => [b.width, b.height]);"
)
STATES = "return [...document.querySelectorAll('.plot')].map(p => p.dataset.state);"
TOOLTIP = (
    "const t = document.querySelector('#vg-tooltip-element.visible');"
    "if (!t || t.getBoundingClientRect().width === 0) return null;"
    "return [...t.querySelectorAll('tr')].map(r => [...r.cells].map(c => c.textContent));"
)
GROUND = "return getComputedStyle(document.body).backgroundColor;"
AXIS_TEXT = "return getComputedStyle(document.querySelector('#plot-atari-curves svg text')).fill;"
LIGHT, DARK = "rgb(246, 248, 250)", "rgb(16, 21, 27)"
LIGHT_INK, DARK_INK = "rgb(28, 39, 51)", "rgb(232, 237, 242)"


@pytest.fixture(scope="module")
def page(twenty_games: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    return write_report(twenty_games, out, formats=[])


def _forget(browser: Browser) -> None:
    browser.run("try { localStorage.clear(); } catch {}")


def test_it_loads_without_an_error_and_without_the_network(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.wait_until_drawn()
    assert browser.console() == []
    assert browser.requests() == [page.as_uri()]


def test_every_figure_draws(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.wait_until_drawn()
    states = browser.run(STATES)
    assert states == ["interactive"] * PLOTS
    sizes = browser.run(SIZES)
    assert len(sizes) == PLOTS
    assert all(width > 600 and height > 300 for width, height in sizes)
    lines = "return document.querySelectorAll('#plot-atari-curves .mark-line path[d]').length;"
    assert browser.run(lines) == 20 * 4


def test_hovering_tells_scores_and_improvements(browser: Browser, page: Path) -> None:
    browser.size(1200, 900)
    browser.open(page)
    browser.wait_until_drawn()
    browser.hover("#plot-atari-curves .mark-symbol path")
    rows = dict(browser.wait_for(TOOLTIP))
    game, point = rows["panel"], int(rows["agent steps"]) // 250_000 - 1
    gains = {"Momentum-DQN": synthetic.MOMENTUM[game], "Deep SQL": synthetic.SQL[game]}
    expected = synthetic.curve(game)[point] + gains.get(rows["curve"], 0.0) * abs(
        synthetic.area(game)
    )
    mean, spread = (float(part.replace(",", "")) for part in rows["training score"].split(" ± "))
    assert mean == pytest.approx(expected, rel=1e-3)
    assert spread == pytest.approx(2**0.5 * synthetic.SPREADS[game], rel=1e-3)
    browser.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    browser.hover("#plot-atari-improvements .mark-symbol path")
    rows = dict(browser.wait_for(TOOLTIP))
    assert rows["row"] in synthetic.GAMES


def test_no_table_is_cut_at_1200_pixels(browser: Browser, page: Path) -> None:
    browser.size(1200, 900)
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach(own => own.open = true);")
    cut = (
        "return [...document.querySelectorAll('.wide')].map("
        "  own => [own.querySelectorAll('tr').length, own.scrollWidth - own.clientWidth]);"
    )
    # Three improvements, 20 games of four algorithms and all their runs, each with a heading.
    assert browser.run(cut)[:3] == [[1 + 3, 0], [1 + 80, 0], [1 + 400, 0]]


def test_the_button_switches_the_theme_of_page_and_figures(browser: Browser, page: Path) -> None:
    browser.open(page)
    _forget(browser)
    browser.open(page)
    browser.wait_until_drawn()
    assert (browser.run(GROUND), browser.run(AXIS_TEXT)) == (LIGHT, LIGHT_INK)
    browser.run("document.getElementById('theme').click();")
    assert (browser.run(GROUND), browser.run(AXIS_TEXT)) == (DARK, DARK_INK)
    assert "light" in browser.run("return document.getElementById('theme').ariaLabel;")
    browser.open(page)  # the choice is kept
    browser.wait_until_drawn()
    assert browser.run(GROUND) == DARK
    browser.run("document.getElementById('theme').click();")
    assert (browser.run(GROUND), browser.run(AXIS_TEXT)) == (LIGHT, LIGHT_INK)
    _forget(browser)


def test_the_system_decides_until_the_button_is_pressed(browser: Browser, page: Path) -> None:
    browser.open(page)
    _forget(browser)
    browser.open(page)
    browser.wait_until_drawn()
    browser.prefer("dark")
    assert (browser.run(GROUND), browser.run(AXIS_TEXT)) == (DARK, DARK_INK)
    browser.run("document.getElementById('theme').click();")
    assert browser.run(GROUND) == LIGHT
    _forget(browser)


def test_without_javascript_the_static_figures_are_there(browser: Browser, page: Path) -> None:
    for _ in range(10):  # a page that gets a new process may not hear of it
        browser.javascript(False)
        browser.open(page)
        browser.javascript(True)  # only to ask; the page's own scripts have had their chance
        if without := browser.run("return document.getElementById('theme').hidden;"):
            break
    assert without is True
    states = browser.run(STATES)
    assert states == [None] * PLOTS
    sizes = browser.run(SIZES)
    assert len(sizes) == PLOTS
    assert all(width > 600 and height > 300 for width, height in sizes)
    assert browser.run(AXIS_TEXT) == LIGHT_INK
    browser.prefer("dark")
    assert (browser.run(GROUND), browser.run(AXIS_TEXT)) == (DARK, DARK_INK)


@pytest.mark.parametrize("script", [True, False])
def test_on_a_phone_nothing_sticks_out(browser: Browser, page: Path, script: bool) -> None:
    browser.size(375, 700, mobile=True)
    browser.javascript(script)
    browser.open(page)
    browser.javascript(True)
    if script:
        browser.wait_until_drawn()
        assert all(250 < width <= 375 for width, _ in browser.run(SIZES))
    assert browser.run("return document.documentElement.scrollWidth;") == 375
    assert float(browser.run("return getComputedStyle(document.body).fontSize;")[:-2]) >= 16


def test_every_figure_has_a_text_for_those_who_cannot_see_it(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.wait_until_drawn()
    texts = browser.run(
        "return [...document.querySelectorAll('.plot')].map(p => p.getAttribute('aria-label'));"
    )
    assert all(len(text) > 80 for text in texts)
    levels = browser.run(
        "return [...document.querySelectorAll('h1,h2,h3')].map(h => Number(h.tagName[1]));"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_a_broken_figure_leaves_its_static_drawing(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    text = page.read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace('"layer":[', '"layer":[7,', 1), encoding="utf-8")
    browser.open(broken)
    browser.wait_until_drawn()
    states = browser.run(STATES)
    assert states == ["static"] + ["interactive"] * (PLOTS - 1)
    assert len(browser.run(SIZES)) == PLOTS


def test_no_chromium_skips_here_and_fails_where_everything_must_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium chromium-driver"):
        Browser(tmp_path)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install chromium chromium-driver"):
        Browser(tmp_path)
