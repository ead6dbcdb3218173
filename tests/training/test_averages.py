"""Averaging afterwards: copies of the network that acts, and who plays by their mean."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from momentum_rl import cli
from momentum_rl.envs.make import make_environment
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_evaluations, read_metrics
from momentum_rl.training.evaluation import evaluate
from momentum_rl.training.kept import Copies
from momentum_rl.training.train import train, train_seeds
from tests.training.runs import TINY, broken

AVERAGED = {**TINY, "checkpoint_every": 45, "average": 3, "average_every": 70}
HOST = Config("momentum-dqn", "CartPole-v1", **AVERAGED)
LOOPS = {"host": HOST, "fused": replace(HOST, env="gymnax/CartPole-v1")}
OBSERVATIONS = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)


@pytest.fixture(scope="module", params=LOOPS)
def run(request, tmp_path_factory):
    """A run that keeps copies, its directory and its result."""
    out = tmp_path_factory.mktemp("run")
    return LOOPS[request.param], out, train(LOOPS[request.param], out)


def values(params, x):
    """A network of one hidden layer, by NumPy."""
    hidden, out = params["torso"]["Dense_0"], params["Dense_0"]
    x = np.maximum(x @ np.float64(hidden["kernel"]) + np.float64(hidden["bias"]), 0)
    return x @ np.float64(out["kernel"]) + np.float64(out["bias"])


def test_one_plays_by_the_mean_of_the_values_and_one_by_the_mean_of_the_parameters():
    """Three agents of different seeds stand for three copies."""
    agents = [train(replace(HOST, average=0, seed=seed, steps=300)).agent for seed in range(3)]
    copies = Copies(3, 70)
    for i, agent in enumerate(agents):
        assert copies.players(agent) == {}  # not enough of them
        copies = copies.with_one_of(agent, 70 * (i + 1))
    players = copies.players(agents[2])
    copies = [agent.params["h"] for agent in agents]
    mean_values = np.mean([values(params, OBSERVATIONS) for params in copies], 0)
    mean_params = jax.tree.map(lambda *leaves: np.mean(np.float64(leaves), 0), *copies)
    expected = {"values": mean_values, "parameters": values(mean_params, OBSERVATIONS)}
    assert players.keys() == expected.keys()
    for name, q in expected.items():
        clear = np.abs(q[:, 0] - q[:, 1]) > 1e-5
        actions = players[name].actions(OBSERVATIONS)
        np.testing.assert_array_equal(actions[clear], q.argmax(1)[clear])
    # They differ from each other and from the last network somewhere, or this shows nothing.
    chosen = [q.argmax(1).tolist() for q in (*expected.values(), values(copies[2], OBSERVATIONS))]
    assert chosen[0] != chosen[1] != chosen[2]


def test_copies_are_of_the_network_at_their_steps(tmp_path):
    """Those of a run of 900 steps are the agents of runs that ended at 700, 770, 840."""
    config = replace(HOST, evaluate_every=0, final_episodes=5)
    result = train(config)
    copies = Copies(3, 70)
    for step in (700, 770, 840):
        copies = copies.with_one_of(train(replace(config, steps=step, average=0)).agent, step)
    for name, player in copies.players(result.agent).items():
        environment = make_environment("CartPole-v1", 5)
        played = evaluate(player, environment, 5, epsilon=config.evaluation_epsilon, seed=0)
        assert played.returns == result.evaluation.average[name].returns


def test_evaluations_are_played_twice_more_once_there_are_enough_copies(run, tmp_path):
    config, out, result = run
    rows = read_evaluations(out)
    assert [row["step"] for row in rows] == [500, 750, 900]
    for row in rows:
        assert set(row["average"]) == {"values", "parameters"}
        for other in row["average"].values():
            assert len(other["returns"]) == config.periodic_episodes
    again = train(config, out)  # a run that has ended is read from its files
    for name, played in result.evaluation.average.items():
        assert again.evaluation.average[name].returns == played.returns
    train(replace(config, average_every=290), tmp_path)  # copies at 290, 580, 870
    assert [bool(row["average"]) for row in read_evaluations(tmp_path)] == [False, False, True]


def test_training_does_not_notice_its_copies(run, tmp_path):
    config, out, _ = run
    train(replace(config, average=0), tmp_path)
    for name in ("metrics.jsonl", "agent.safetensors"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()
    for ours, theirs in zip(read_evaluations(out), read_evaluations(tmp_path), strict=True):
        assert {**ours, "average": {}} == theirs


def test_a_run_that_was_broken_off_has_the_same_copies(run, tmp_path):
    """Broken off before a copy is due, at one, and after; and between checkpoints."""
    config, out, _ = run
    broken(config, tmp_path, 60, 140, 215, 493, 700, 899)
    for name in ("metrics.jsonl", "evaluations.jsonl", "evaluation.json", "agent.safetensors"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()


def test_seeds_keep_each_their_own(tmp_path):
    outs = [tmp_path / "3", tmp_path / "4"]
    train_seeds(LOOPS["fused"], [3, 4], outs)
    for out in outs:
        alone = train(replace(LOOPS["fused"], seed=int(out.name)), tmp_path / f"alone-{out.name}")
        assert read_evaluations(out)[-1]["average"].keys() == {"values", "parameters"}
        assert len(alone.evaluation.average) == 2
    a, b = (read_evaluations(out) for out in outs)
    assert a != b


def test_a_policy_that_is_not_greedy_has_no_mean(tmp_path, capsys):
    with pytest.raises(UserError, match="average: 2, but sac does not act greedily by values"):
        train(Config("sac", "Pendulum-v1", **{**TINY, "average": 2}), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    words = ["train", "dqn", "--env", "CartPole-v1", "--out", str(tmp_path / "run")]
    assert cli.main([*words, "--average", "-1"]) == 2
    assert "average: -1, expected an integer from 0" in capsys.readouterr().err


# Tied --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", ["CartPole-v1", "gymnax/CartPole-v1"])
def test_tied_with_beta_zero_is_dqn_bit_for_bit(env, tmp_path):
    dqn = train(Config("dqn", env, **TINY), tmp_path / "dqn")
    options = {"beta_schedule": "constant", "beta": 0.0, "tie": True}
    tied = train(Config("momentum-dqn", env, options=options, **TINY), tmp_path / "tied")
    for q, h in zip(jax.tree.leaves(dqn.agent.params["q"]), jax.tree.leaves(tied.agent.params)):
        assert q.tobytes() == h.tobytes()
    assert tied.evaluation.returns == dqn.evaluation.returns
    for ours, theirs in zip(tied.metrics, dqn.metrics, strict=True):
        assert {name: ours[name] for name in theirs} == theirs
        assert (ours["loss_h"], ours["mean_h"]) == (theirs["loss_q"], theirs["mean_q"])


def test_tied_with_another_beta_is_not(tmp_path):
    dqn = train(Config("dqn", "CartPole-v1", **TINY))
    options = {"beta_schedule": "constant", "beta": 0.5, "tie": True}
    tied = train(Config("momentum-dqn", "CartPole-v1", options=options, **TINY))
    assert tied.metrics[0]["mean_q"] != tied.metrics[0]["mean_h"]
    assert tied.metrics[-1]["mean_h"] != dqn.metrics[-1]["mean_q"]


@pytest.mark.slow
def test_fifty_thousand_compiled_steps_tied_with_beta_zero_are_dqns(tmp_path):
    fields = {"steps": 50_000, "iteration_steps": 10_000, "final_episodes": 5}
    options = {"beta_schedule": "constant", "beta": 0.0, "tie": True}
    dqn = Config("dqn", "MinAtar/Asterix", preset="minatar", **fields)
    train(dqn, tmp_path / "dqn")
    train(replace(dqn, algorithm="momentum-dqn", options=options), tmp_path / "tied")
    ours, theirs = (read_metrics(tmp_path / name) for name in ("tied", "dqn"))
    for row, other in zip(ours, theirs, strict=True):
        assert {name: row[name] for name in other} == other


def test_what_has_no_h_or_another_one_cannot_be_tied(tmp_path, capsys):
    words = ["train", "dqn", "--env", "CartPole-v1", "--out", str(tmp_path / "run"), "--tie"]
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert "--tie" in error
    assert error.count("\n") == 1
    with pytest.raises(UserError, match="tie: H is a number and Q is not, expected --h-value same"):
        Config("momentum-c51", "CartPole-v1", options={"tie": True, "h_value": "number"})
    assert not (tmp_path / "run").exists()
