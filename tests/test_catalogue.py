"""One declaration gives an algorithm its names, options and checks, on tables and with networks."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import momentum_rl
from momentum_rl import cli
from momentum_rl.agents import registry
from momentum_rl.core import options
from momentum_rl.core.catalogue import label, options_of
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config

SOURCE = Path(momentum_rl.__file__).parent
EXAMPLES = Path(__file__).parents[1] / "examples"
QUICK = ["--env", "CartPole-v1", "--steps", "300", "--learning-starts", "100", "--hidden", "8"]


@pytest.fixture
def made_up(monkeypatch):
    """The declaration of a made-up algorithm, in this test alone."""
    for table in ("TABLES", "NETWORKS", "TITLES"):
        for name, kind in dict(getattr(options, table)).items():
            monkeypatch.setitem(getattr(options, table), name, kind)
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop("discounted_twice", None)
    yield import_module("discounted_twice")
    for table in ("TABLES", "NETWORKS", "TITLES"):
        for name in [name for name in getattr(options, table) if "discounted" in name]:
            del getattr(options, table)[name]


def test_a_made_up_algorithm_is_one_source_file(made_up, tmp_path, capsys):
    mdp = momentum_rl.garnet(8, 3, 3, seed=1, discount=0.8)
    whole = momentum_rl.solve(mdp, "discounted-twice:share=1", iterations=30).q
    np.testing.assert_array_equal(whole, momentum_rl.solve(mdp, "avi", iterations=30).q)
    there = {"q": np.array([[8.0, 6.0]])}
    algorithm = made_up.DiscountedTwice(0.25).algorithm()
    assert algorithm.target("q", there, 0, 3.0, 0.5, there) == 3 + 0.5 * 0.25 * 8

    file = tmp_path / "mdp.npz"
    momentum_rl.save_mdp(mdp, file)
    assert cli.main(["solve", str(file), "--scheme", "discounted-twice", "--share", "1"]) == 0
    assert "discounted-twice:share=1" in capsys.readouterr().out
    assert cli.main(["solve", str(file), "--scheme", "discounted-twice", "--share", "2"]) == 2
    assert "share: 2.0, expected a number in [0, 1]" in capsys.readouterr().err

    run = tmp_path / "run"
    words = ["train", "momentum-discounted-twice-dqn", *QUICK, "--share", "0.25", "--kappa", "70"]
    assert cli.main([*words, "--out", str(run)]) == 0
    config = json.loads((run / "config.json").read_text())
    assert (config["options"]["share"], config["options"]["kappa"]) == (0.25, 70)
    assert Config.from_json((run / "config.json").read_text()).options.share == 0.25
    assert momentum_rl.load(run).acts_on == "h"
    assert registry.title_of("momentum-discounted-twice-dqn") == "Momentum Discounted-twice DQN"


def test_a_scheme_of_ones_own_is_solved_by_from_the_command_line(tmp_path, capsys, monkeypatch):
    file = tmp_path / "mdp.npz"
    momentum_rl.save_mdp(momentum_rl.garnet(8, 3, 3, seed=1, discount=0.8), file)
    (tmp_path / "mine_own.py").write_text(
        "from dataclasses import dataclass\n"
        "import momentum_rl\nfrom momentum_rl.core.targets import AVI\n"
        "@dataclass(frozen=True)\nclass Plain(momentum_rl.Options):\n"
        "    rate: float = 0.5\n    def algorithm(self):\n        return AVI\nOTHER = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    command = ["solve", str(file), "--scheme", "mine_own:Plain"]
    assert cli.main([*command, "--rate", "0.25"]) == 0
    assert "scheme       Plain:rate=0.25" in capsys.readouterr().out
    assert cli.main(["solve", str(file), "--scheme", "mine_own:OTHER"]) == 2
    assert "expected a dataclass of momentum_rl.Options" in capsys.readouterr().err
    with pytest.raises(UserError, match="trust"):
        options_of("mine_own:Plain")


def test_a_label_says_what_differs_from_the_defaults_of_its_name(made_up):
    assert label(made_up.DiscountedTwice()) == "discounted-twice"
    assert label(made_up.DiscountedTwice(0.1)) == "discounted-twice:share=0.1"
    assert options_of("discounted-twice:share=0.1") == made_up.DiscountedTwice(0.1)
    with pytest.raises(UserError, match="share: -1, expected a number in"):
        options_of("discounted-twice:share=-1")


def test_a_published_algorithm_stands_in_one_place():
    files = [p for p in SOURCE.rglob("*.py") if "munchausen" in p.read_text().lower()]
    assert 1 <= len(files) <= 3, files


def test_options_are_read_without_jax_and_flax():
    script = (
        "import sys\n"
        "from momentum_rl.agents.registry import options_of\n"
        "from momentum_rl.core.catalogue import options_of as table\n"
        "options_of('momentum-c51', {'beta': 0.3}); options_of('momentum-sac'); table('md-vi')\n"
        "print([name for name in ('jax', 'flax', 'optax') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_equal_options_are_one_algorithm():
    one, other = (options.algorithm_of(options_of("m-vi:alpha=0.7")) for _ in range(2))
    assert one is other
