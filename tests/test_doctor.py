"""`movi doctor`."""

import re
from importlib.metadata import PackageNotFoundError, metadata

import momentum_rl.plumbing.doctor
from momentum_rl.cli import main
from momentum_rl.plumbing.sizes import available_cores
from momentum_rl.version import __version__

DEVELOPERS = {"dev", "docs"}


def test_it_says_what_there_is(capsys):
    assert main(["doctor"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = dict(line.split(None, 1) for line in out.splitlines())
    assert lines["movi"] == __version__
    assert lines["cores"] == str(len(available_cores()))
    assert re.fullmatch(r"[\d.]+ [GMT]B available", lines["memory"])
    assert "cpu:0" in lines["jax"]


def test_every_extra_of_the_metadata_is_explained():
    declared = set(metadata("momentum-rl").get_all("Provides-Extra")) - DEVELOPERS
    assert declared <= set(momentum_rl.plumbing.doctor.ADDS)
    assert set(momentum_rl.plumbing.doctor.extras()) == declared


def test_what_an_extra_lacks_is_named_with_the_way_to_get_it(monkeypatch, capsys):
    real = momentum_rl.plumbing.doctor.version

    def version(name):
        if name == "ale-py":
            raise PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(momentum_rl.plumbing.doctor, "version", version)
    assert main(["doctor"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("atari")]
    assert "missing ale-py: Atari games" in line
    assert "pip install 'momentum-rl[atari]' (in a clone: '.[atari]')" in line


def test_devices_that_jax_cannot_use_are_said_in_one_line(monkeypatch, capsys):
    import jax

    def devices():
        raise RuntimeError("no backend\nfound")

    monkeypatch.setattr(jax, "devices", devices)
    assert main(["doctor"]) == 0
    assert "jax          cannot be used: no backend found" in capsys.readouterr().out
