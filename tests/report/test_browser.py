"""The page in a real browser: Debian's Chromium, headless, without a network."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.browser import Browser
from tests.report import synthetic_results as synthetic

PLOTS = 10
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
AXIS_TEXT = "return getComputedStyle(document.querySelector('#plot-movi_vs_avi svg text')).fill;"
LIGHT, DARK = "rgb(246, 248, 250)", "rgb(16, 21, 27)"
LIGHT_INK, DARK_INK = "rgb(28, 39, 51)", "rgb(232, 237, 242)"


@pytest.fixture
def page(tables_page: Path) -> Path:
    return tables_page


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
    drawn = browser.run(
        "return [...document.querySelectorAll('.plot')].map("
        "p => p.querySelectorAll('.mark-line path[d]').length);"
    )
    assert all(count >= 2 for count in drawn), drawn


def test_hovering_shows_the_values(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.wait_until_drawn()
    for name in ("movi_vs_avi", "assumption_mean", "constant_beta"):
        browser.hover(f"#plot-{name} svg")
        rows = dict(browser.wait_for(TOOLTIP))
        if name == "movi_vs_avi":
            k = int(rows["iteration k"].replace(",", ""))
            data = synthetic.compare(1000)
            mean, std = data.mean["movi"][k - 1], data.std["movi"][k - 1]
            shown = [float(part) for part in rows["MoVI"].split(" ± ")]
            assert shown == pytest.approx([mean, std], rel=1e-3)
        else:
            assert all(float(value.replace(",", "")) > 0 for value in rows.values())
        browser.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)


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
    assert all(text.startswith("Line chart, ") and len(text) > 80 for text in texts)
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
