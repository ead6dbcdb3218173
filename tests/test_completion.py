"""Completion in bash itself: what it offers after some words."""

import shutil
import subprocess

import pytest

from movi import cli

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


@pytest.fixture
def script(capsys):
    assert cli.main(["completion"]) == 0
    return capsys.readouterr().out


@pytest.fixture
def offered(script):
    """What bash would offer at the end of some words, the last of which is begun."""

    def offered(*words):
        line = " ".join(f"'{word}'" for word in words)
        ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _movi; "
        ask += "printf '%s\\n' \"${COMPREPLY[@]}\""
        done = subprocess.run(
            ["bash", "-c", f"{script}\n{ask}"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stderr == ""
        return done.stdout.split()

    return offered


def test_commands_and_groups_are_completed(offered):
    assert offered("movi", "ga") == ["garnet", "garnets"]
    assert offered("movi", "garnets", "") == ["compare", "assumption", "bounds", "family"]
    firsts = {words.split()[0] for words in cli.COMMANDS}
    assert set(offered("movi", "")) == firsts | {"--help", "--version"}


def test_options_are_completed_wherever_they_stand(offered):
    assert offered("movi", "evaluate", "run", "--e") == ["--episodes", "--epsilon"]
    assert offered("movi", "mdp", "maze", "--wa") == ["--walls"]
    assert "--run" not in offered("movi", "evaluate", "--")  # it has no name
    assert offered("movi", "garnet", "--sta") == ["--states"]


def test_training_knows_the_algorithms_and_their_options(offered):
    assert offered("movi", "train", "momentum-d") == ["momentum-dqn", "momentum-double-dqn"]
    assert "--env" in offered("movi", "train", "dqn", "--")
    assert "--kappa" in offered("movi", "train", "momentum-dqn", "--ka")
