"""The documented examples of algorithms of one's own, from outside the package."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import momentum_rl
from momentum_rl import cli
from momentum_rl.agents import registry
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config
from momentum_rl.training.train import train
from tests.training.diagnostics import DIAGNOSTICS, vector
from tests.training.jax_diagnostics import JAX_DIAGNOSTICS
from tests.training.learned import SETTINGS

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    monkeypatch.setattr(sys, "path", [*sys.path, str(EXAMPLES)])


@pytest.fixture
def munchausen():
    import munchausen

    return munchausen.Munchausen


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def test_munchausens_own_part_has_at_most_twelve_lines():
    """What is in its class, without its text and without blank lines."""
    tree = ast.parse((EXAMPLES / "munchausen.py").read_text())
    (own,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    text = "\n".join(map(ast.unparse, own.body[1:]))
    assert len([line for line in text.splitlines() if line]) <= 12


def test_its_target_is_the_papers_written_out_in_numpy(munchausen):
    q, q2, tau = np.array([0.3, 0.31, -1.0]), np.array([1.0, 0.98, 0.5]), 0.03
    p, p2 = softmax(q / tau), softmax(q2 / tau)
    for a in range(3):
        expected = (
            0.7
            + 0.9 * np.clip(tau * np.log(p[a]), -1, 0)
            + 0.9 * (p2 * (q2 - tau * np.log(p2))).sum()
        )
        algorithm = munchausen().algorithm()
        found = algorithm.target("q", {"q": q[None]}, np.int32(a), 0.7, 0.9, {"q": q2[None]}, 0.0)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


QUICK = [
    "--steps",
    "300",
    "--learning-starts",
    "100",
    "--hidden",
    "8",
    "--final-episodes",
    "1",
]


def test_munchausen_trains_from_the_command_line_with_its_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["train", "munchausen:Munchausen", "--env", "CartPole-v1", "--tau", "0.5", *QUICK]
    assert cli.main([*command, "--out", "run"]) == 0
    config = read_config(tmp_path / "run")
    assert (config.algorithm, config.options.tau) == ("munchausen:Munchausen", 0.5)
    assert cli.main(["evaluate", "run", "--episodes", "2"]) == 0


def test_the_momentum_of_an_algorithm_of_ones_own_is_known_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["train", "momentum-munchausen:Munchausen", "--env", "CartPole-v1", "--kappa", "50"]
    assert cli.main([*command, "--tau", "0.5", *QUICK, "--out", "run"]) == 0
    config = read_config(tmp_path / "run")
    assert (config.options.tau, config.options.kappa) == (0.5, 50)
    assert momentum_rl.load(tmp_path / "run", trust=["munchausen"]).acts_on == "h"


def test_a_sweep_imports_an_algorithms_module_only_if_it_is_trusted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(EXAMPLES)
    command = ["sweep", "second_moment.toml", "--out", str(tmp_path / "sweep"), "--dry-run"]
    assert cli.main(command) == 2
    assert "--trust second_moment" in capsys.readouterr().err
    assert cli.main([*command, "--trust", "second_moment"]) == 0
    assert "second_moment:ALGORITHM, seed" in capsys.readouterr().out


@pytest.mark.slow
def test_an_unheard_of_variant_reaches_sweep_and_report_without_touching_the_package(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(EXAMPLES)
    matrix = (EXAMPLES / "second_moment.toml").read_text()
    matrix = matrix.replace("seeds = 3", "seeds = 1").replace("20_000", "600")
    matrix = matrix.replace("1_000", "200") + "learning_starts = 100\nfinal_episodes = 1\n"
    (tmp_path / "small.toml").write_text(matrix)
    out = tmp_path / "sweep"
    command = ["sweep", str(tmp_path / "small.toml"), "--out", str(out), "--workers", "1"]
    assert cli.main([*command, "--trust", "second_moment"]) == 0
    run = out / "runs" / "gymnax-CartPole-v1" / "second-moment-ALGORITHM" / "seed-0"
    assert read_config(run).algorithm == "second_moment:ALGORITHM"
    assert cli.main(["report", str(out), "--format", "svg"]) == 0
    page = (out / "report.html").read_text()
    assert "second_moment:ALGORITHM" in page


@pytest.mark.parametrize("case", range(5))
@pytest.mark.parametrize("loop", ["host", pytest.param("fused", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["munchausen:Munchausen", "second_moment:ALGORITHM"])
def test_both_learn_the_five_diagnostics(name, loop, case):
    environment, observations, values = (
        DIAGNOSTICS[case] if loop == "host" else JAX_DIAGNOSTICS[case][1:]
    )
    made = vector([environment]) if loop == "host" else environment
    module = name.partition(":")[0]
    result = train(Config(name, "diagnostic", **SETTINGS), environment=made, trust=[module])
    x, values = np.array(observations, np.float32)[:, None], np.array(values, float)
    best = values.max(1)[:, None]
    for network in result.agent.params:
        learned = result.agent.values(x, network)
        less = 0.9 * (values < best) if module == "munchausen" else 0.0  # τ ln π, clipped at −1
        expected = values**2 if network == "u" else values - less
        np.testing.assert_allclose(learned, expected, atol=0.1)
