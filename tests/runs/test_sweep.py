"""A sweep's files: what is written is read again, and what is wrong is one clear line."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.runs.sweep import Matrix, from_json, read_sweep, to_json, write_sweep
from momentum_rl.sweeps.drive import sweep_named
from momentum_rl.version import __version__


@pytest.mark.parametrize("name", ["paper-beta", "minatar"])
def test_a_sweep_is_read_as_it_was_written(tmp_path, name):
    sweep = replace(sweep_named(name, "laptop"), command="movi sweep it")
    write_sweep(tmp_path / "new" / "one", sweep)
    assert read_sweep(tmp_path / "new" / "one") == sweep
    assert sweep.version == __version__


def test_the_file_says_everything_about_each_cell(tmp_path):
    write_sweep(tmp_path, sweep_named("minatar-beta", "paper"))
    data = json.loads((tmp_path / "sweep.json").read_text())
    assert (data["format"], data["name"], data["scale"]) == (1, "minatar-beta", "paper")
    cell = data["cells"][3]
    assert (cell["env"], cell["label"]) == ("MinAtar/Asterix", "momentum-dqn β=0.5")
    assert cell["seeds"] == [0, 1, 2, 3, 4]
    assert (cell["config"]["options"]["beta"], cell["config"]["steps"]) == (0.5, 5_000_000)


def stored(**changes):
    sweep = Matrix(["CartPole-v1"], ["dqn"], 2, "mine").sweep()
    data = json.loads(to_json(sweep))
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
        ({"cells": []}, "sweep mine: no runs"),
        ({"cells": {"a": 1}}, "cells"),
        ({"cells__0": 5}, "cells: entry 0: 5, expected an object"),
        ({"cells__0__env": "/etc/passwd"}, "'/etc/passwd'"),
        ({"cells__0__env": "Acrobot-v1"}, "its config says 'CartPole-v1'"),
        ({"cells__0__label": "../.."}, "letters or digits"),
        ({"cells__0__seeds": ["0"]}, "seeds: '0', expected an integer"),
        ({"cells__0__seeds": [0, 0]}, "all different"),
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
