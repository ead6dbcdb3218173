"""A sweep's files: what is written is read again, and what is wrong is one clear line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from movi.errors import UserError
from movi.sweeps.files import from_json, read_sweep, read_sweep_file, to_json, write_sweep
from movi.sweeps.matrix import Variant, cross, difference
from movi.sweeps.named import named_sweep
from movi.version import __version__


@pytest.mark.parametrize("name", ["paper-beta", "minatar"])
def test_a_sweep_is_read_as_it_was_written(tmp_path, name):
    sweep = named_sweep(name, "laptop")
    write_sweep(tmp_path / "new" / "one", sweep, "movi sweep it")
    stored = read_sweep(tmp_path / "new" / "one")
    assert (stored.sweep, stored.command, stored.version) == (sweep, "movi sweep it", __version__)


def test_the_file_says_everything_about_each_cell(tmp_path):
    write_sweep(tmp_path, named_sweep("minatar-beta", "paper"), "movi sweep it")
    data = json.loads((tmp_path / "sweep.json").read_text())
    assert (data["format"], data["name"], data["scale"]) == (1, "minatar-beta", "paper")
    cell = data["cells"][3]
    assert (cell["env"], cell["label"]) == ("MinAtar/Asterix", "momentum-dqn β=0.5")
    assert cell["seeds"] == [0, 1, 2, 3, 4]
    assert (cell["config"]["options"]["beta"], cell["config"]["steps"]) == (0.5, 5_000_000)


def stored(**changes):
    sweep = cross("mine", ["CartPole-v1"], [Variant("dqn")], [0, 1])
    data = json.loads(to_json(sweep, "movi sweep mine.toml"))
    for path, value in changes.items():
        *there, last = [int(key) if key.isdecimal() else key for key in path.split("__")]
        place = data
        for key in there:
            place = place[key]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": 2}, "format 2, this version of movi reads 1"),
        ({"format": "1"}, "format '1', this version"),
        ({"format": ...}, "format None"),
        ({"name": 3}, "name: 3"),
        ({"version": None}, "version: None"),
        ({"cells": []}, "cells: none"),
        ({"cells": {"a": 1}}, "cells"),
        ({"cells__0": 5}, "cells: entry 0: 5, expected an object"),
        ({"cells__0__env": "/etc/passwd"}, "'/etc/passwd'"),
        ({"cells__0__env": "Acrobot-v1"}, "its config says 'CartPole-v1'"),
        ({"cells__0__label": "../.."}, "letters or digits"),
        ({"cells__0__seeds": ["0"]}, "seeds: '0', expected an integer"),
        ({"cells__0__seeds": [0, 0]}, "all different"),
        ({"cells__0__together": 3}, "together: 3"),
        ({"cells__0__together": 0}, "together: 0"),
        ({"cells__0__config": ...}, "config"),
        ({"cells__0__config__steps": -5}, "steps: -5"),
        ({"cells__0__config__gamma": None}, "gamma: None"),
        ({"cells__0__config__colour": "red"}, "colour"),
    ],
)
def test_a_stored_sweep_that_was_tampered_with_is_one_clear_line(changes, says):
    with pytest.raises(UserError) as error:
        from_json(stored(**changes))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@given(st.integers(0, len(stored()) - 1))
def test_a_sweep_cut_anywhere_is_the_users_error(length):
    with pytest.raises(UserError, match=r"sweep\.json"):
        from_json(stored()[:length])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_other_json_is_the_users_error(data):
    with pytest.raises(UserError):
        from_json(json.dumps(data))


def test_json_that_is_too_deep_is_the_users_error():
    with pytest.raises(UserError, match="JSON: too deep"):
        from_json("[" * 100_000)


TOML = """
name = "mine"
environments = ["CartPole-v1", "MinAtar/Breakout"]
algorithms = [
    "dqn",
    {algorithm = "momentum-dqn", label = "momentum β=0.5", beta_schedule = "constant", beta = 0.5},
    {algorithm = "dqn", label = "dqn (modern)", preset = "modern"},
]
seeds = 3

[config]
steps = 5000
"""


def test_a_file_of_ones_own_is_the_matrix_it_says(tmp_path):
    file = tmp_path / "some.toml"
    file.write_text(TOML)
    expected = cross(
        "mine",
        ["CartPole-v1", "MinAtar/Breakout"],
        [
            Variant("dqn"),
            Variant(
                "momentum-dqn",
                "momentum β=0.5",
                options=(("beta_schedule", "constant"), ("beta", 0.5)),
            ),
            Variant("dqn", "dqn (modern)", "modern"),
        ],
        [0, 1, 2],
        options={"steps": 5000},
    )
    assert read_sweep_file(file) == expected
    assert expected.runs == 18


def test_json_means_the_same_as_toml(tmp_path):
    data = {"environments": ["CartPole-v1"], "algorithms": ["dqn"], "seeds": [4, 7]}
    (tmp_path / "one.json").write_text(json.dumps(data))
    (tmp_path / "one.toml").write_text(
        'environments = ["CartPole-v1"]\nalgorithms = ["dqn"]\nseeds = [4, 7]\n'
    )
    one, other = (read_sweep_file(tmp_path / f"one.{kind}") for kind in ("json", "toml"))
    assert one == other
    assert one.name == "one"
    assert difference(one, other) == ""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("seeds = 3", "", "no seeds"),
        ("seeds = 3", "seeds = 0", "seeds: 0"),
        ("seeds = 3", "seeds = [1.5]", "seeds: 1.5"),
        ("seeds = 3", 'seeds = "many"', "seeds: 'many'"),
        ("seeds = 3", "seeds = 3\nsteps = 4", "unknown: steps"),
        ("seeds = 3", "seeds = [", "cannot be read as TOML"),
        ('name = "mine"', "name = 7", "name: 7"),
        ('name = "mine"', 'preset = "old"', "preset: 'old'"),
        ('["CartPole-v1", "MinAtar/Breakout"]', '"CartPole-v1"', "expected a list"),
        ('["CartPole-v1", "MinAtar/Breakout"]', "[1]", "environments: 1"),
        ("steps = 5000", "seed = 4", "seed"),
        ("steps = 5000", "steps = 1.5", "steps: 1.5"),
        ("beta = 0.5", "beta = 1.5", "beta: 1.5"),
        ("beta = 0.5", "bta = 0.5", "bta"),
        ('algorithm = "dqn", label', "label", "no algorithm"),
    ],
)
def test_a_mistake_in_a_file_of_ones_own_is_one_clear_line(tmp_path, old, new, says):
    assert old in TOML
    file = tmp_path / "some.toml"
    file.write_text(TOML.replace(old, new))
    with pytest.raises(UserError) as error:
        read_sweep_file(file)
    assert str(error.value).startswith(str(file))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name, says in [
        ("missing.toml", "No such file"),
        ("binary.toml", "UTF-8"),
        ("a.yaml", ".toml"),
    ]:
        with pytest.raises(UserError, match=says):
            read_sweep_file(tmp_path / name)
