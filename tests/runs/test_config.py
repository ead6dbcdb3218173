import json
from dataclasses import MISSING, fields, replace

import pytest
import tyro
from hypothesis import given, settings
from hypothesis import strategies as st

from momentum_rl.agents.registry import options_of
from momentum_rl.errors import UserError
from momentum_rl.runs.config import FIELD_ROLES, FIELDS, SHARED, Config, changes
from momentum_rl.runs.presets import PRESETS, preset_fields
from momentum_rl.training.commands import Train


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
    assert momentum.options == options_of("momentum-dqn")
    assert momentum.beta_of(2_500_000) == 0.5


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
        ({"gamma": 1.0}, r"gamma: 1.0, expected a number in \[0, 1\)"),
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
        ('{"format": 3, "algorithm": "dqn"}', "missing fields: env"),
        ('{"format": 3, "algorithm": "dqn", "env": "x", "colour": 3}', "colour"),
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
            "final_episodes",
            "evaluate_every",
            "periodic_episodes",
            "average",
            "average_every",
        },
    }
    for owner, names in others.items():
        assert {name for name, own in FIELD_ROLES.items() if own == owner} == names
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


def test_a_run_is_the_same_however_long_it_is_and_another_with_another_seed():
    config = Config("momentum-dqn", "CartPole-v1")
    same = [{"steps": 9_999}, {"kappa": 7}, {"checkpoint_every": 3}, {"save_every": 3}]
    other = [
        {"seed": 1},
        {"gamma": 0.5},
        {"beta": 0.9},
        {"algorithm": "dqn"},
        {"env": "Acrobot-v1"},
    ]
    assert {config.replace(**one).identity for one in same} == {config.identity}
    assert len({config.identity, *(config.replace(**one).identity for one in other)}) == 6


def by_the_command(*words):
    """The config that the command line makes of these words."""
    found, default = Train.given(words)
    made = tyro.cli(found, args=list(words), default=default)
    return Config(**{own.name: getattr(made, own.name) for own in fields(Config)})


@pytest.mark.parametrize("env", ["CartPole-v1", "ALE/Pong-v5", "MinAtar/Asterix", "Pendulum-v1"])
@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_a_config_has_the_values_of_its_preset_as_the_command_has_them(env, preset):
    algorithm = "sac" if (preset or "").startswith("sac") or env == "Pendulum-v1" else "c51"
    named = {} if preset is None else {"preset": preset}
    words = [algorithm, "--env", env, *(("--preset", preset) if preset else ())]
    if algorithm == "sac" and preset is not None and not preset.startswith("sac"):
        for make in (lambda: Config("sac", env, **named), lambda: by_the_command(*words)):
            with pytest.raises(UserError, match=f"preset: '{preset}', expected sac for sac"):
                make()
        return
    config = Config(algorithm, env, **named)
    assert config == by_the_command(*words)
    chosen = config.preset
    if preset is None:
        usual = {"CartPole-v1": "control", "ALE/Pong-v5": "paper", "MinAtar/Asterix": "minatar"}
        assert chosen == usual.get(env, "sac")
    for name, value in preset_fields(chosen).items():
        assert getattr(config, name) == value
    own = Config(algorithm, env, **named, learning_rate=0.125, steps=777_777)
    assert (own.learning_rate, own.steps, own.preset) == (0.125, 777_777, chosen)
    assert own == replace(config, learning_rate=0.125, steps=777_777)
    if chosen != "control":
        assert config != Config(algorithm, env, **{**_defaults(), "preset": chosen})


def _defaults():
    return {own.name: own.default for own in fields(Config) if own.default is not MISSING}


def test_presets_are_positional_too_and_another_replaces_what_was_not_given():
    paper = Config("dqn", "CartPole-v1", "paper")
    assert paper == Config("dqn", "CartPole-v1", preset="paper")
    assert paper.replay_capacity == 1_000_000
    assert paper.replace(preset="control", gamma=0.5) == Config("dqn", "CartPole-v1", gamma=0.5)
    atoms = Config("c51", "CartPole-v1").replace(preset="minatar", atoms=7).options
    assert (atoms.atoms, atoms.v_max) == (7, 100.0)


@pytest.mark.parametrize("preset", ["nonsense", "", ["paper"], 5])
def test_a_preset_that_is_none_is_refused(preset):
    with pytest.raises(UserError, match=r"preset: .*, expected one of control, paper"):
        Config("dqn", "CartPole-v1", preset=preset)


def test_the_preset_of_a_file_is_a_record_and_applied_no_more():
    odd = Config("dqn", "ALE/Pong-v5", preset="paper", steps=50_000, gamma=0.5)
    data = {**odd.to_dict(), "preset": "of another version"}
    config = Config.from_dict(data)
    for _ in range(5):
        config = replace(Config.from_json(config.to_json()), seed=config.seed)
    assert config.to_dict() == data
    few = {"algorithm": "dqn", "env": "ALE/Pong-v5", "preset": "paper"}  # as before there were more
    assert Config.from_dict(few).evaluate_every == 0
    assert Config.from_dict(few).learning_rate == _defaults()["learning_rate"]
