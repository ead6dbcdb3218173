"""Schemes of the family by name: solved and certified against the right optimum; compared."""

import numpy as np
import pytest

import momentum_rl
from momentum_rl import cli
from momentum_rl.core.catalogue import TABLES, label, options_of
from momentum_rl.core.family import MirrorDescent
from momentum_rl.core.targets import AVI
from momentum_rl.mdp.files import save_mdp
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.mdp.solve.regularised import entropy_bias, regularised_optimum
from momentum_rl.planning.engine import scheme
from tests.oracles import random_mdp, refusal

MDP = momentum_rl.garnet(8, 3, 3, seed=2, discount=0.8)
TAUS = {"m-vi": 0.1 * 0.03, "cvi": 0.1 / 30, "md-vi:tau=0.2": 0.2}


@pytest.mark.parametrize("name", [*TABLES, "md-vi:tau=0.2"])
def test_every_scheme_solves_to_a_certified_optimum_of_its_own(name):
    tolerance = 2e-4 if name == "sql" else 1e-5  # which falls like 1/k
    found = momentum_rl.solve(MDP, name, tolerance=tolerance)
    tau = TAUS.get(name, 0.0)
    assert found.tau == pytest.approx(tau)
    assert found.converged
    best = regularised_optimum(MDP, tau)
    assert np.abs(found.q - best.q).max() <= found.bound + float(best.bound) <= 1.1 * tolerance
    soft = scheme(name).algorithm.tabular.temperature > 0
    assert found.policy.shape == ((8, 3) if soft else (8,))
    worth = momentum_rl.policy_value(MDP, found)
    assert np.abs(worth.q - best.q).max() <= worth.loss_bound < 0.02


def test_a_plain_evaluation_with_entropy_keeps_a_distance_within_the_bias():
    found = momentum_rl.solve(MDP, "md-vi:lambda=0.1:tau=0.1:evaluation=plain", iterations=400)
    assert not found.converged
    assert found.tau == 0
    gap = optimum(MDP).q - momentum_rl.policy_value(MDP, found).q
    assert 0.001 < gap.max() <= float(entropy_bias(MDP, 0.1))


def test_a_sampled_sum_is_certified_as_the_average_that_it_is():
    """DA-VI keeps Σ q; divided by its weights it is as good as MoVI's mean."""
    sampled = {"sampled": True, "iterations": 1500, "seed": 3}
    sums, mean = (
        momentum_rl.solve(MDP, "da-vi", **sampled),
        momentum_rl.solve(MDP, "movi", **sampled),
    )
    assert sums.bound < 2 * mean.bound
    for found in (sums, mean):
        assert np.abs(found.q - optimum(MDP).q).max() <= found.bound


def test_missing_actions_are_never_taken_by_soft_policies():
    mdp = random_mdp(3, 5, 3, 2)
    rewards = mdp.rewards.copy()
    rewards[2, 1] = -np.inf
    partial = FiniteMDP(mdp.successors, mdp.probabilities, rewards, 0.9)
    for name in ("md-vi:lambda=0.1:tau=0.1", "da-vi:lambda=0.1", "m-vi", "cvi", "politex", "mpi"):
        found = momentum_rl.solve(partial, name, tolerance=1e-5)
        assert found.converged, name
        if found.policy.ndim == 2:
            assert found.policy[2, 1] == 0
            np.testing.assert_allclose(found.policy.sum(1), 1)
        best = regularised_optimum(partial, found.tau).q
        there = ~np.isneginf(rewards)
        assert np.abs(found.q[there] - best[there]).max() <= found.bound + 1e-9, name


def test_a_solution_reads_its_values_and_actions_from_a_soft_policy_too():
    found = momentum_rl.solve(MDP, "md-vi:tau=0.2", tolerance=1e-8)
    expected = 0.2 * np.log(np.exp(found.q / 0.2).sum(1))
    np.testing.assert_allclose(found.v, expected, rtol=0, atol=1e-12)
    assert found.action(3) == found.q[3].argmax()


def test_labels_name_a_scheme_with_what_is_not_the_default():
    assert label("md-vi:lambda=0.01:tau=1e-3") == "md-vi:tau=0.001"
    assert label(MirrorDescent(lam=0.5)) == "md-vi:lambda=0.5"
    assert label("mpi:sweeps=none") == "mpi:sweeps=none"
    assert label(AVI) == "avi"
    assert options_of("m-vi:alpha=1") == TABLES["m-vi"](alpha=1)
    for name in TABLES:
        assert label(name) == name
        assert options_of(label(options_of(name))) == options_of(name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("m-vi:gamma=1", "scheme: m-vi has no option 'gamma', expected some of alpha, tau"),
        ("avi:tau=1", "scheme: avi has no option 'tau', expected none"),
        ("m-vi:tau", "scheme: m-vi: 'tau', expected tau=VALUE"),
        ("m-vi:tau=hot", "scheme: m-vi: tau: 'hot', expected a finite number"),
        ("md-vi:evaluation=soft", "scheme: md-vi: evaluation: 'soft', expected one of regularised"),
        ("md-vi:lambda=0", "tau: 0.0 with lambda 0, expected a sum of at least 1e-300"),
        ("m-vi:alpha=-1", "alpha: -1, expected a number in [0, 1]"),
        ("movi:beta=1", "beta: 1, expected a number in [0, 1)"),
        ("nothing", "scheme: 'nothing', expected one of avi, movi, sql, dpp, m-vi, md-vi"),
    ],
)
def test_a_label_that_means_nothing_is_one_line(text, says):
    assert refusal(scheme, text).startswith(says)


def test_a_comparison_judges_each_scheme_by_its_own_optimum():
    mdps = momentum_rl.garnet(6, 3, 2, count=3, seed=1)
    names = ["avi", "md-vi:lambda=0.1:tau=0.1", "m-vi", "movi:beta=0.5", AVI]
    result = momentum_rl.compare_schemes(mdps, names, iterations=150, samples=0)
    assert result.schemes == ("avi", "md-vi:lambda=0.1:tau=0.1", "m-vi", "movi:beta=0.5", "avi")
    assert result.taus == pytest.approx((0, 0.1, 0.003, 0, 0))
    assert result.l1[:, -1].max() < 1e-6
    alone = momentum_rl.compare_schemes(mdps, names[1:2], iterations=150, samples=0)
    np.testing.assert_allclose(alone.l1[0], result.l1[1], rtol=0, atol=1e-12)


@pytest.fixture
def file(tmp_path):
    save_mdp(MDP, tmp_path / "mdp.npz")
    return tmp_path / "mdp.npz"


def test_the_command_certifies_the_regularised_optimum_and_says_the_bias(file, capsys):
    out = file.with_name("out.npz")
    words = ["--scheme", "m-vi", "--alpha", "0.5", "--tau", "0.2", "--out"]
    assert cli.main(["solve", str(file), *words, str(out)]) == 0
    said = capsys.readouterr().out
    bias = 0.1 * np.log(3) / 0.2
    assert "scheme       m-vi:alpha=0.5:tau=0.2 (exact)" in said
    assert "certificate  ‖q − q^τ_*‖∞ ≤" in said
    assert "τ = 0.1 times the policy's entropy in its reward: ‖q^τ_* − q*‖∞ ≤" in said
    assert f"= {bias:.3g}\n" in said
    with np.load(out) as written:
        assert written["tau"] == 0.1
        assert written["policy"].shape == (8, 3)
        assert np.abs(written["q"] - regularised_optimum(MDP, 0.1).q).max() <= written["bound"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--scheme foo", "scheme: 'foo', expected one of avi, movi, sql, dpp, m-vi, md-vi, da-vi"),
        ("--scheme m-vi --alpha 2", "alpha: 2.0, expected a number in [0, 1]"),
        ("--scheme md-vi --lambda -1", "lambda: -1.0, expected a number of at least 0"),
        ("--scheme md-vi --lambda 0", "tau: 0.0 with lambda 0.0, expected a sum"),
        ("--scheme md-vi --eta 1", "md-vi's own are --lambda, --tau, --evaluation"),
        ("--scheme avi --eta 1", "avi has none of its own"),
        ("--eta 1", "a scheme's own options need its name, as in --scheme md-vi"),
        ("--scheme dpp --eta 0", "eta: 0.0, expected a number above 0"),
    ],
)
def test_a_mistake_in_a_schemes_options_is_one_line_and_writes_nothing(file, capsys, words, says):
    out = file.with_name("out.npz")
    assert cli.main(["solve", str(file), *words.split(), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert not out.exists()


def test_the_help_of_a_scheme_shows_its_options(capsys):
    with pytest.raises(SystemExit):
        cli.main(["solve", "--scheme", "md-vi", "--help"])
    said = capsys.readouterr().out
    assert "--lambda" in said
    assert "advantage-learning" in said
