"""The site, built by `make docs` and walked in a browser that has no network to use."""

import json
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser import Browser

ROOT = Path(__file__).parents[1]
PHONE = 390
DRAWN = (
    "return [...document.querySelectorAll('math')].every(m => {"
    "  const b = m.getBoundingClientRect(); return b.width > 0 && b.height > 0; })"
)
FIGURES = (
    "return [...document.querySelectorAll('article img')].filter("
    "  i => !(i.complete && i.naturalWidth > 0)).map(i => i.src);"
)
ACROSS = "return document.documentElement.scrollWidth;"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, with its notebooks executed: an error in one of them fails the build."""
    done = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return ROOT / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> list[Path]:
    found = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    assert len(found) > 40
    return found


class Page(HTMLParser):
    """The links of a page, and the places in it that others can link to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.links.append(value)


def test_no_link_is_broken(pages: list[Path]) -> None:
    parsed = {path: Page(path) for path in pages}
    checked, broken = 0, []
    for path, page in parsed.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            missing = place and target in parsed and place not in parsed[target].places
            if not target.is_file() or (missing and place != "__top"):
                broken.append((path.name, link))
            checked += 1
    assert checked > 3000
    assert broken == []


def test_nothing_is_fetched_from_elsewhere(pages: list[Path]) -> None:
    for path in pages:
        for line in path.read_text().splitlines():
            for tag in ("<script src=", "<link ", "<img "):
                if tag in line and 'rel="canonical"' not in line:
                    assert "//" not in line.split(tag, 1)[1].split(">", 1)[0], (path.name, line)


class Walk(NamedTuple):
    """What was seen of all pages: messages of the console, requests, what is not drawn, widths."""

    console: list[tuple[str, str]]
    requests: set[str]
    formulas: int
    undrawn: list[str]
    wide: list[tuple[str, int]]


@pytest.fixture(scope="module")
def walk(chromium: Browser, pages: list[Path]) -> Walk:
    seen = Walk([], set(), 0, [], [])
    chromium.javascript(True)
    chromium.prefer("light")
    for path in pages:
        chromium.size(1200, 900)
        chromium.open(path)
        chromium.wait_for("return document.readyState === 'complete';")
        if not chromium.run(DRAWN):
            seen.undrawn.append(path.name)
        seen.undrawn.extend(chromium.run(FIGURES))
        seen = seen._replace(
            formulas=seen.formulas + chromium.run("return document.querySelectorAll('math').length")
        )
        chromium.size(PHONE, 844, mobile=True)
        across = chromium.run(ACROSS)
        if across > PHONE:
            seen.wide.append((path.name, across))
        seen.console.extend((path.name, message) for message in chromium.console())
        seen.requests.update(chromium.requests())
    return seen


def test_every_page_loads_without_a_message_on_the_console(walk: Walk) -> None:
    assert walk.console == []


def test_no_request_leaves_the_machine(walk: Walk) -> None:
    assert walk.requests
    outside = [url for url in walk.requests if urlsplit(url).scheme not in ("file", "data", "blob")]
    assert outside == []


def test_mathematics_and_figures_are_drawn(walk: Walk) -> None:
    assert walk.formulas > 100
    assert walk.undrawn == []


def test_no_page_is_wider_than_a_phone(walk: Walk) -> None:
    assert walk.wide == []


def test_search_finds_the_certificate(browser: Browser, site: Path) -> None:
    browser.open(site / "index.html")
    browser.run(
        "const q = document.querySelector('[data-md-component=search-query]');"
        "q.focus(); q.value = 'certificate'; q.dispatchEvent(new KeyboardEvent('keyup'));"
        "q.dispatchEvent(new Event('input', {bubbles: true}));"
    )
    links = browser.wait_for(
        "const found = [...document.querySelectorAll('.md-search-result__link')];"
        "return found.length ? found.map(a => a.href) : null;"
    )
    assert any("solving.html" in link for link in links), links


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("name", ["doctests", "mathematics"])
def test_the_examples_of_the_making_hold(name: str) -> None:
    """They need the site's own environment."""
    words = [ROOT / ".venv-docs/bin/python", "-m", "doctest", "-o", "ELLIPSIS", f"{name}.py"]
    done = subprocess.run(words, cwd=ROOT / "docs/making", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_it_is_dark_where_the_system_is(browser: Browser, site: Path) -> None:
    lightness = {}
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(site / "index.html")
        time.sleep(0.5)  # colours fade from one to the other
        colour = browser.run("return getComputedStyle(document.body).backgroundColor;")
        lightness[scheme] = sum(map(float, colour[colour.index("(") + 1 : -1].split(",")[:3])) / 3
    assert lightness["light"] > 200
    assert lightness["dark"] < 80


NOTEBOOK = """
import sys, nbformat
from nbclient import NotebookClient
from traitlets.config import Config

cells = [nbformat.v4.new_code_cell(text) for text in sys.argv[1:]]
notebook = nbformat.v4.new_notebook(cells=cells)
config = Config({"KernelManager": {"transport": "ipc"}})
NotebookClient(notebook, timeout=300, kernel_name="python3", config=config).execute()
print(nbformat.writes(notebook))
"""


@pytest.mark.usefixtures("site")
def test_progress_in_a_true_notebook_is_lines(tmp_path: Path) -> None:
    """Called from Python, and as a command, which a kernel gives a terminal that is none."""
    python = ROOT / ".venv-docs/bin/python"
    config = (
        "momentum_rl.Config('dqn', 'CartPole-v1', steps=300, learning_starts=100, final_episodes=0)"
    )
    few = "--steps 300 --learning-starts 100 --final-episodes 0"
    words = f"dqn --env CartPole-v1 {few} --out {tmp_path / 'run'}"
    cells = (
        f"import momentum_rl\nmomentum_rl.train({config}).status",
        f"!{python} -m momentum_rl train {words}",
    )
    done = subprocess.run(
        [python, "-c", NOTEBOOK, *cells], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "\\u001b" not in done.stdout  # as JSON writes a terminal's codes
    first, second = (cell["outputs"] for cell in json.loads(done.stdout)["cells"])
    for outputs in (first, second):
        said = "".join("".join(own.get("text", "")) for own in outputs)
        assert "dqn CartPole-v1: 300 of 300, score " in said
    assert "finished 300 steps" in said
