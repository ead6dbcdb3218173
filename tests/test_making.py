"""What the site is made of: tables from the code, links that hold, pages in one order."""

import doctest
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import momentum_rl
from momentum_rl.agents.registry import _REGISTERED

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "algorithms"
ORDER = [
    "The equation",
    "What the paper says",
    "What we do",
    "Options",
    "Metrics",
    "Results",
    "The command",
]


@pytest.fixture(scope="module")
def making():
    """Imports a module of docs/making."""
    sys.path.insert(0, str(ROOT / "docs" / "making"))
    yield importlib.import_module
    sys.path.remove(str(ROOT / "docs" / "making"))


@pytest.mark.parametrize("name", _REGISTERED)
def test_every_algorithm_has_a_page_in_the_one_order(name):
    page = (PAGES / f"{name}.md").read_text()
    assert re.findall(r"^## (.*)$", page, re.M) == ORDER
    assert f"<!-- options: {name} -->" in page
    assert f"<!-- metrics: {name} -->" in page
    assert f"<!-- results: {name} -->" in page
    assert f"movi train {name} --env " in page.split("## The command")[1]
    assert re.findall(r"^1\. ", page.split("## What we do")[1], re.M)


def test_the_command_line_s_page_has_every_option_with_its_meaning(making):
    page = making("commands").command_line()
    assert "| `--seed` | integer | `0` | Seed of the samples. |" in page
    assert "| `ALGORITHM` | text | *required* |" in page
    assert page.count("\n## movi ") == len(importlib.import_module("momentum_rl.cli").COMMANDS)


def test_the_metrics_of_the_pages_are_those_that_a_run_logs(making, tmp_path, monkeypatch):
    monkeypatch.setattr("momentum_rl.training.loop.EVERY", 1)
    config = momentum_rl.Config(
        "momentum-dqn",
        "CartPole-v1",
        steps=60,
        iteration_steps=60,
        learning_starts=20,
        batch_size=4,
        hidden=(4,),
        final_episodes=0,
        evaluate_every=60,
        periodic_episodes=1,
        checkpoint_every=0,
    )
    momentum_rl.train(config, tmp_path / "run")
    (row,) = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert list(json.loads(row)) == making("algorithms").logged("momentum-dqn")


def test_every_algorithm_s_metrics_are_explained_and_its_options_too(making):
    for name in _REGISTERED:
        page = making("algorithms").filled((PAGES / f"{name}.md").read_text())
        assert "<!--" not in page
        assert "| `loss_q` |" in page
    assert "| `--floor` | number | `-1.0` |" in making("algorithms").options("munchausen-dqn")


def test_the_examples_of_the_links_hold(making):
    found = doctest.testmod(making("links"))
    assert found.attempted >= 2
    assert found.failed == 0


def test_pictures_from_beside_the_pages_come_along(making):
    links, page = making("links"), "![map](../docs/figures/family.svg) ![r](../README.md)"
    assert list(links.pictures(page, "docs/x.md")) == ["README.md"]
    made = links.for_site(page, "docs/x.md", "reference/deep/x.md")
    assert made == "![map](../docs/figures/family.svg) ![r](../../README.md)"


def test_links_lead_to_pages_or_keep_their_words_alone(making):
    text = "[a](docs/report.md#rules) [b](src/momentum_rl/cli.py) "
    text += "[c](docs/tutorials/own_mdp.py) [d](gone.md)"
    made = making("links").for_site(text, "README.md", "reference/x.md")
    assert made == "[a](../report.md#rules) b [c](../tutorials/own_mdp.md) [d](gone.md)"


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/howto/*.md")), ids=lambda path: path.stem)
@pytest.mark.slow
def test_the_python_of_the_how_to_pages_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(), re.S)
    assert blocks
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(path), "exec"), names)


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("docs/tutorials/*.py")), ids=lambda path: path.stem
)
@pytest.mark.slow
def test_a_tutorial_runs_from_top_to_bottom(path, tmp_path):
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]
