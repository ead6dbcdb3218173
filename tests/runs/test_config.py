import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from movi.agents.algorithms import MomentumDQN
from movi.errors import UserError
from movi.runs.config import FIELDS, OWNERS, SHARED, Config, changes
from movi.runs.presets import PRESETS, preset_fields


def config_of(preset, **fields):
    return Config("dqn", "CartPole-v1", **{**preset_fields(preset), **fields})


def test_the_preset_paper_is_dopamines_dqn_of_2019():
    config = config_of("paper")
    expected = {
        "steps": 200 * 250_000,
        "iteration_steps": 250_000,
        "num_envs": 1,
        "gamma": 0.99,
        "replay_capacity": 1_000_000,
        "learning_starts": 20_000,
        "batch_size": 32,
        "update_period": 4,
        "sync_period": 8_000,
        "epsilon_warmup": 20_000,
        "epsilon_decay": 250_000,
        "epsilon_final": 0.01,
        "evaluation_epsilon": 0.001,
        "padding": "SAME",
        "optimiser": "rmsprop",
        "learning_rate": 2.5e-4,
        "optimiser_epsilon": 1e-5,
        "loss": "huber",
        "reward_clip": 1.0,
        "timeouts_are_terminal": False,
    }
    assert {name: getattr(config, name) for name in expected} == expected
    assert config.beta_of is None
    momentum = config.replace(algorithm="momentum-dqn", options={})
    assert momentum.options == MomentumDQN("rate-updates", shared_batch=False, h_target="sample")
    assert momentum.beta_of(2_500_000) == 0.5


def test_the_preset_modern_differs_from_paper_in_optimiser_and_loss_only():
    paper, modern = (config_of(name).to_dict() for name in ("paper", "modern"))
    changed = {name: modern[name] for name in modern if modern[name] != paper[name]}
    assert changed == {
        "preset": "modern",
        "optimiser": "adam",
        "learning_rate": 6.25e-5,
        "optimiser_epsilon": 1.5e-4,
        "loss": "squared",
    }


@pytest.mark.parametrize("preset", PRESETS)
def test_saving_and_loading_five_times_changes_nothing(preset):
    config = config_of(preset).replace(algorithm="momentum-dqn", options={})
    text = config.to_json()
    for _ in range(5):
        config = Config.from_json(config.to_json())
        assert config.to_json() == text
    assert json.loads(text)["options"]["kappa"] is None  # what is derived is never written back


@settings(max_examples=100, deadline=None)
@given(
    steps=st.integers(1, 2**31 - 1),
    kappa=st.none() | st.integers(1, 2**31 - 1),
    rate=st.floats(1e-12, 10),
    hidden=st.lists(st.integers(1, 999), max_size=4).map(tuple),
    shared=st.booleans(),
)
def test_any_config_survives_its_json(steps, kappa, rate, hidden, shared):
    config = Config(
        "momentum-dqn",
        "CartPole-v1",
        steps=steps,
        learning_rate=rate,
        hidden=hidden,
        options={"kappa": kappa, "shared_batch": shared},
    )
    assert Config.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "steps: 0, expected an integer from 1"),
        ({"steps": 2**31}, "steps: 2147483648"),
        ({"gamma": 1.0}, r"gamma: 1, expected a number in \[0, 1\)"),
        ({"gamma": float("nan")}, "gamma: nan"),
        ({"options": {"beta": 1.0}}, "beta: 1.0"),
        ({"epsilon_final": -0.1}, "epsilon_final: -0.1"),
        ({"learning_rate": 0.0}, "learning_rate: 0.0"),
        ({"hidden": (64, 0)}, "hidden: "),
        ({"options": {"kappa": 0}}, "kappa: 0"),
        ({"options": {"shared_batch": "yes"}}, "shared_batch: 'yes', expected true or false"),
        ({"options": {"h_target": "both"}}, "h_target: 'both', expected one of sample, network"),
        (
            {"options": {"alpha": 0.9}},
            "options: momentum-dqn has no 'alpha', expected some of beta_schedule, kappa, beta, ",
        ),
        ({"seed": -1}, "seed: -1"),
        ({"learning_starts": 101, "replay_capacity": 100}, "learning would never start"),
        ({"n_step": 0}, "n_step: 0, expected an integer from 1"),
        ({"n_step": -1}, "n_step: -1, expected an integer from 1"),
        ({"n_step": 1.5}, "n_step: 1.5, expected an integer from 1"),
        ({"n_step": 200_000}, "n_step: 200000, expected at most 99000: .* never start"),
        (
            {"n_step": 34, "num_envs": 3, "learning_starts": 1, "replay_capacity": 100},
            "n_step: 34, expected at most 33: with replay_capacity 100, learning_starts 1 and num",
        ),
    ],
)
def test_a_wrong_value_is_one_line_that_names_it(fields, message):
    with pytest.raises(UserError, match=message) as error:
        Config("momentum-dqn", "CartPole-v1", **fields)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as JSON"),
        ("[]", "expected an object"),
        ("{}", "format None"),
        ('{"format": 99}', "format 99"),
        ('{"format": 2, "algorithm": "dqn"}', "missing fields: env"),
        ('{"format": 2, "algorithm": "dqn", "env": "x", "colour": 3}', "colour"),
    ],
)
def test_a_file_that_is_no_config_is_one_line(text, message):
    with pytest.raises(UserError, match=message):
        Config.from_json(text)


def test_the_most_steps_leave_just_enough_to_learn_from():
    most = {"n_step": 33, "num_envs": 3, "learning_starts": 1, "replay_capacity": 100}
    config = config_of("control", **most)
    assert config.learns_after == 97  # of 100 transitions, 4 can be sampled
    assert config.horizon == (33, 3, None)


def test_a_config_that_knows_no_n_step_means_one():
    data = json.loads(config_of("control").to_json())
    del data["n_step"]
    assert Config.from_json(json.dumps(data)) == config_of("control")
    assert config_of("paper", num_envs=4).horizon == (1, 1, None)  # the learner clips
    assert config_of("paper", num_envs=4, n_step=3).horizon == (3, 4, 1.0)


def test_every_field_belongs_to_somebody_and_most_to_the_learning():
    others = {
        "run": {"env", "seed"},
        "algorithm": {"algorithm", "options"},
        "preset": {"preset"},
        "files": {"save_every", "checkpoint_every"},
        "evaluation": {
            "evaluation_epsilon",
            "evaluation_episodes",
            "evaluate_every",
            "evaluate_episodes",
            "average",
            "average_every",
        },
    }
    for owner, names in others.items():
        assert {name for name, own in OWNERS.items() if own == owner} == names
    assert set(SHARED) == FIELDS.difference(*others.values())


def test_two_configs_differ_in_what_decides_results_alone():
    one = Config("momentum-dqn", "CartPole-v1", options={"beta": 0.5})
    assert changes(one, one.replace(save_every=7, checkpoint_every=0)) == {}
    assert changes(one, one.replace(beta=0.9, evaluate_every=50)) == {
        "beta": (0.5, 0.9),
        "evaluate_every": (0, 50),
    }
    other = changes(one, Config("dqn", "CartPole-v1"))
    assert other["algorithm"] == ("momentum-dqn", "dqn")
    assert other["beta"] == (0.5, None)
