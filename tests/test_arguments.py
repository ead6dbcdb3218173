"""What is said of a command line that is wrong: the option, the value, what was expected."""

import sys

import pytest

from momentum_rl.cli import parse
from momentum_rl.errors import UserError
from momentum_rl.plumbing import arguments


def refused(words):
    with pytest.raises(UserError) as caught:
        parse(words.split())
    return str(caught.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("solve", "FILE: missing, expected a path"),
        ("solve x --iterations many", "--iterations: 'many', expected an integer"),
        ("solve x --discount=high", "--discount: 'high', expected a number"),
        ("solve x --iterations", "--iterations: no value, expected an integer"),
        ("mdp garnet --out", "--out: no value, expected a path"),
        ("solve x --method foo", "--method: 'foo', expected one of auto, vi, mpi, pi, ipi"),
        ("report x --format bmp", "--format: 'bmp', expected one of pdf, png, svg"),
        (
            "mdp garnet --out x --stats 3",
            "Unrecognized options: --stats, 3; did you mean --states?",
        ),
        ("mdp garnet --out x y", "Unrecognized options: y"),
        ("train dqn --env x --stepz 3", "Unrecognized options: --stepz, 3; did you mean --steps?"),
        ("solve x --scheme md-vi --tau -1", "tau: -1.0, expected a number of at least 0"),
    ],
)
def test_a_mistake_is_named(words, says):
    line = refused(words)
    assert line.startswith(says)
    assert line.endswith(f" (see movi {words.split()[0]} --help)")


def test_a_parser_that_says_it_in_other_words_still_gives_one_line(monkeypatch, capsys):
    def other(kind, **rest):
        print("Something is wrong.", file=sys.stderr)
        sys.exit(2)

    monkeypatch.setattr(arguments.tyro, "cli", other)
    line = refused("solve x --iterations many")
    assert line == "options: 'x --iterations many' (see movi solve --help)"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("word", "sweeps"), [("none", None), ("None", None), ("7", 7)])
def test_an_exact_evaluation_is_none_as_in_a_label(word, sweeps):
    _, command = parse(["solve", "x", "--scheme", "mpi", "--sweeps", word])
    assert command.options.sweeps == sweeps
