"""The trained agents in the repository play as well as their cards say."""

import json
import math
import re
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from momentum_rl import load
from momentum_rl.cli import main
from momentum_rl.envs.make import make_environment
from paper.evidence import zoo as filling

REPOSITORY = Path(__file__).parents[1]
ZOO = REPOSITORY / "paper" / "zoo"
CARDS = sorted(ZOO.glob("*/*/card.json"))
FIRST = ZOO / "MinAtar-Breakout" / "dqn"


def name_of(file):
    return file.parent.relative_to(ZOO).as_posix()


def returns_of(place, episodes, capsys, seed=11):
    """What `movi evaluate` prints, with a seed that is not the card's."""
    words = ["evaluate", str(place), "--episodes", str(episodes), "--seed", str(seed)]
    words += ["--num-envs", str(max(1, episodes // 10))]
    assert main(words) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    returns = [float(word) for word in lines["returns"].split()]
    assert len(returns) == episodes
    return returns


def check_within(card, returns):
    """The mean of new episodes differs from the card's by less than 3.3 standard errors of both."""
    error = card["deviation"] * math.sqrt(1 / card["episodes"] + 1 / len(returns))
    assert abs(np.mean(returns) - card["score"]) < 3.3 * error


@pytest.mark.parametrize("file", CARDS, ids=name_of)
def test_a_card_says_what_its_run_says(file):
    card = json.loads(file.read_text(encoding="utf-8"))
    env, label = name_of(file).split("/")
    run = REPOSITORY / "paper" / "evidence" / "runs"
    found = run.glob(f"*/runs/{env}/{label}/seed-0")
    (run,) = (one for one in found if one.parents[3].name in ("1-momentum", "3-munchausen"))
    played = json.loads((run / "evaluation.json").read_text())["returns"]
    assert card["at_the_end"] == pytest.approx(sum(played) / len(played))
    assert f"at its end: {card['at_the_end']:.2f}" in file.with_name("README.md").read_text("utf-8")
    assert card["episodes"] == 500
    spread = 1.96 * card["deviation"] / math.sqrt(499)  # of a deviation with 500 below the root
    low, high = card["interval"]
    assert (low, high) == pytest.approx((card["score"] - spread, card["score"] + spread))
    config = json.loads((run / "config.json").read_text())
    assert (card["steps"], card["seed"]) == (config["steps"], 0)
    origins = json.loads((run.parents[3] / "origins.json").read_text())
    assert card["commit"] == origins[f"{env}/{label}/seed-0"]["commit"]
    assert card["licence"] == "Apache-2.0"
    text = file.with_name("README.md").read_text(encoding="utf-8")
    assert f"{card['score']:.2f} [{low:.2f}, {high:.2f}]" in text
    assert card["command"] in text


@pytest.mark.parametrize("file", CARDS, ids=name_of)
def test_an_agent_is_what_acts_and_nothing_else(file):
    card = json.loads(file.read_text(encoding="utf-8"))
    agent = load(file.parent)
    assert list(agent.params) == card["networks"] == [agent.acts_on]
    assert agent.acts_on == ("h" if card["algorithm"] == "momentum-dqn" else "q")
    assert file.with_name("agent.safetensors").stat().st_size < 600_000


def test_the_zoo_has_agents_and_lists_them():
    assert CARDS
    text = (ZOO / "README.md").read_text(encoding="utf-8")
    assert filling.index(ZOO) == text, "out of date: run `python -m paper.evidence.zoo`"
    assert all(f"paper/zoo/{name_of(file)} " in text for file in CARDS)


def test_an_agent_that_was_collected_gets_its_card(tmp_path, monkeypatch):
    """The first agent once more, from its committed run, in a few episodes."""
    monkeypatch.setattr(filling, "EPISODES", 4)
    monkeypatch.setattr(filling, "TOGETHER", 4)
    matrix, run = "1-momentum", "runs/MinAtar-Breakout/dqn/seed-0"
    committed, copy = REPOSITORY / "paper" / "evidence" / "runs" / matrix, tmp_path / matrix
    shutil.copytree(committed / run, copy / run)
    for name in ("origins.json", "sweep.json"):
        shutil.copy(committed / name, copy)
    shutil.copy(FIRST / "agent.safetensors", copy / run)
    (place,) = filling.fill(tmp_path, tmp_path / "zoo")
    made, known = (json.loads((one / "card.json").read_text()) for one in (place, FIRST))
    assert made.keys() == known.keys()
    played = {"score", "deviation", "interval", "episodes", "evaluation"}
    assert {name for name in known if made[name] != known[name]} <= played
    assert made["episodes"] == 4
    assert not (copy / run / "agent.safetensors").exists()


def test_an_agent_plays_as_its_card_says_in_a_few_episodes(capsys):
    card = json.loads((FIRST / "card.json").read_text())
    check_within(card, returns_of(FIRST, 10, capsys))


@pytest.mark.slow
@pytest.mark.parametrize("file", CARDS, ids=name_of)
def test_every_agent_plays_as_its_card_says(file, capsys):
    check_within(json.loads(file.read_text()), returns_of(file.parent, 500, capsys))


@pytest.mark.slow
def test_an_agent_of_the_zoo_is_recorded(tmp_path, capsys):
    pytest.importorskip("imageio_ffmpeg")
    out = tmp_path / "game.mp4"
    assert main(["record", str(FIRST), "--out", str(out), "--seed", "1"]) == 0
    assert out.stat().st_size > 5_000
    assert capsys.readouterr().out.startswith(f"{out}: returns ")


def ever_active(place):
    """How many units of the dense layer are above 0 on any observation of four games' 300 steps."""
    agent = load(place)
    network, params = agent.networks[agent.acts_on], agent.params[agent.acts_on]
    with closing(make_environment("MinAtar/Freeway", 4)) as environment:
        seen, active = environment.reset([0, 1, 2, 3]), np.zeros(128, bool)
        for _ in range(300):
            _, found = network.apply({"params": params}, seen, capture_intermediates=True)
            (hidden,) = found["intermediates"]["torso"]["Dense_0"]["__call__"]
            active |= (np.asarray(hidden) > 0).any(0)
            seen = environment.step(agent.act(seen)).observation
    return int(active.sum())


def test_the_network_that_fails_on_freeway_is_as_dead_as_the_page_says():
    text = (REPOSITORY / "docs" / "evidence.md").read_text(encoding="utf-8")
    dead, alive = re.search(r"(\d+) of the 128 hidden units .* in DQN's (\d+)\.", text).groups()
    assert ever_active(ZOO / "MinAtar-Freeway" / "momentum-dqn") == int(dead) < 10
    assert ever_active(ZOO / "MinAtar-Freeway" / "dqn") == pytest.approx(int(alive), abs=3)
