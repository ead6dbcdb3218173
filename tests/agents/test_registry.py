"""Algorithms by name: this package's, those of installed packages and of one's own modules."""

import sys
from dataclasses import dataclass

import pytest

from momentum_rl import cli
from momentum_rl.agents import registry
from momentum_rl.agents.learner import method_of
from momentum_rl.agents.registry import find, names, options_of, register, title_of
from momentum_rl.core.options import Options
from momentum_rl.core.targets import (
    AVI,
    C51,
    Algorithm,
    DynamicPolicyProgramming,
    Munchausen,
    Target,
    ValueIteration,
    greedy_value,
    momentum,
)
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config


def half(values, a, r, discount, v, beta):
    return r + discount * v / 2


HALF = Algorithm("half", {"q": Target(greedy_value, half)}, accepts_momentum=True)


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))


def test_the_registry_has_what_the_paper_and_its_conclusion_name():
    assert names() == [
        "dqn",
        "momentum-dqn",
        "deep-sql",
        "deep-dpp",
        "double-dqn",
        "momentum-double-dqn",
        "c51",
        "momentum-c51",
        "qr-dqn",
        "momentum-qr-dqn",
        "munchausen-dqn",
        "momentum-munchausen-dqn",
        "sac",
        "momentum-sac",
    ]
    assert {name: title_of(name) for name in names()[:4]} == {
        "dqn": "DQN",
        "momentum-dqn": "Momentum-DQN",
        "deep-sql": "Deep SQL",
        "deep-dpp": "Deep DPP",
    }


def test_whether_beta_matters_is_the_same_in_the_options_and_in_the_algorithm():
    for name in names():
        own = options_of(name)
        method = method_of(own, "squared", None)
        assert method.uses_beta == (own.beta_of(100) is not None), name
        policy = "actor" if name.endswith("sac") else "h" if "momentum" in name else "q"
        assert method.acts_on == policy


def test_the_defaults_are_the_published_ones():
    assert options_of("munchausen-dqn") == Munchausen(alpha=0.9, tau=0.03, floor=-1.0)
    assert options_of("deep-dpp") == DynamicPolicyProgramming(eta=None)
    assert options_of("deep-sql").sign == "sql"
    assert options_of("momentum-munchausen-dqn").tau == 0.03


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("munchausen-dqn", {"alpha": 1.5}, r"alpha: 1.5, expected a number in \[0, 1\]"),
        ("munchausen-dqn", {"tau": 0}, "tau: 0, expected a number above 0"),
        ("munchausen-dqn", {"tau": "hot"}, "tau: 'hot', expected a finite number"),
        ("munchausen-dqn", {"floor": 1.0}, "floor: 1.0, expected a finite number of at most 0"),
        ("munchausen-dqn", {"beta": 1.0}, "munchausen-dqn has no 'beta', expected some of alpha, "),
        ("deep-dpp", {"eta": -1.0}, "eta: -1.0, expected a number above 0"),
        ("deep-dpp", {"form": "cosine"}, "form: 'cosine', expected one of log-sum-exp, boltzmann"),
        ("momentum-dqn", {"beta": 1.0}, r"beta: 1.0, expected a number in \[0, 1\)"),
        ("c51", {"atoms": 1}, "atoms: 1, expected an integer from 2"),
        ("c51", {"v_min": 5.0, "v_max": 5.0}, r"v_min: 5.0, expected less than v_max \(5.0\)"),
        ("qr-dqn", {"quantiles": 0}, "quantiles: 0, expected an integer from 1"),
        ("momentum-c51", {"h_value": "both"}, "h_value: 'both', expected one of same, number"),
        ("dqn", {"tau": 1.0}, "dqn has no 'tau', expected none"),
        (
            "dqn",
            DynamicPolicyProgramming(),
            "options: of DynamicPolicyProgramming, expected those of dqn",
        ),
    ],
)
def test_an_option_that_is_unknown_or_out_of_range_is_one_line(name, given, says):
    with pytest.raises(UserError, match=says):
        options_of(name, given)


def test_an_unknown_name_is_one_line_that_lists_what_there_is():
    with pytest.raises(UserError, match=r"'dqm', expected one of dqn, momentum-dqn, .* or MODULE"):
        find("dqm")


def test_a_registered_algorithm_has_the_options_of_its_beta():
    register("half", HALF)
    assert options_of("half").algorithm() is HALF
    assert options_of("half").beta_of(100) is None
    register("averaged", momentum(HALF))
    assert options_of("averaged", {"beta_schedule": "constant", "beta": 0.9}).beta_of(9)(3) == 0.9


def test_names_of_this_package_cannot_be_taken_and_ones_own_can_be_defined_again():
    with pytest.raises(UserError, match="'dqn' is one of this package's, expected another name"):
        register("dqn", HALF)
    register("half", HALF)
    register("half", AVI)
    assert options_of("half").algorithm() is AVI


@pytest.mark.parametrize("thing", [3, "dqn", int, dict])
def test_only_algorithms_can_be_registered(thing):
    with pytest.raises(UserError, match="expected a"):
        register("thing", thing)


MODULE = """
import momentum_rl
from momentum_rl.core.targets import AVI
OWN = momentum_rl.momentum(AVI, "own")
print("imported")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "mine_of_test.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "mine_of_test"
    sys.modules.pop("mine_of_test", None)


def test_a_module_is_imported_only_if_it_is_trusted(module, capsys):
    with pytest.raises(UserError, match=f"which only a file asks for; .* --trust {module}"):
        find(f"{module}:OWN")
    assert module not in sys.modules
    config = Config.from_json(Config("dqn", "x").to_json().replace('"dqn"', f'"{module}:OWN"'))
    assert config.options.to_json() == {}
    assert module not in sys.modules
    assert find(f"{module}:OWN", [module])().beta_of(100) is not None
    assert capsys.readouterr().out == "imported\n"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mine_of_test:NOTHING", "the module 'mine_of_test' has no 'NOTHING'"),
        ("nowhere_at_all:OWN", "cannot be imported: ModuleNotFoundError"),
        ("a:b:c", "expected a name of the form NAME or MODULE:NAME"),
        (":x", "expected a name of the form NAME or MODULE:NAME"),
    ],
)
def test_a_module_that_has_no_such_algorithm_is_one_line(module, name, says):
    with pytest.raises(UserError, match=says):
        find(name, ["mine_of_test", "nowhere_at_all"])


def test_options_of_an_unknown_algorithm_are_kept_as_they_are():
    theirs = {"lambda": 0.5, "sizes": [1, 2], "more": {"a": None}}
    config = Config("theirs", "x", options=theirs)
    assert Config.from_json(config.to_json()) == config
    assert config.options.to_json() == theirs
    assert hash(config)


def test_help_shows_the_algorithms_own_options(capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "munchausen-dqn", "--help"])
    shown = capsys.readouterr().out
    assert "--tau" in shown
    assert "the temperature of the softmax policy" in " ".join(shown.split())
    assert "--kappa" not in shown
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "momentum-munchausen-dqn" in shown
    assert "--tau" not in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dqm", "--env", "x"], "algorithm: 'dqm', expected one of dqn, momentum-dqn"),
        (
            ["dqn", "--env", "x", "--tau", "1"],
            "Unrecognized options: --tau, 1; dqn has none of its own",
        ),
        (
            ["momentum-dqn", "--env", "x", "--tau", "1"],
            "momentum-dqn's own are --beta-schedule, --kappa",
        ),
        (["munchausen-dqn", "--env", "x", "--tau", "0"], "tau: 0.0, expected a number above 0"),
    ],
)
def test_a_wrong_name_or_option_on_the_command_line_is_one_line(arguments, says, capsys):
    assert cli.main(["train", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert says in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["dqn", "--env", "x", "--preset", "paper"],
        ["--preset", "paper", "dqn", "--env", "x"],
        ["--out", "c51", "--env", "x", "dqn"],
        ["--timeouts-are-terminal", "dqn", "--env", "x"],
    ],
)
def test_the_algorithm_is_found_among_words_in_any_order(arguments):
    _, command = cli.parse(["train", *arguments])
    assert (command.algorithm, command.options) == ("dqn", ValueIteration())


def test_a_preset_sets_the_atoms_from_python_as_on_the_command_line():
    _, command = cli.parse(["train", "c51", "--env", "CartPole-v1"])
    assert command.options == Config("c51", "CartPole-v1").options == C51(201, -100, 100)
    minatar = Config("momentum-c51", "MinAtar/Breakout", preset="minatar")
    assert (minatar.options.atoms, minatar.options.v_max) == (51, 100.0)
    assert Config("dqn", "x").replace(algorithm="c51").options.atoms == 201
    assert Config("c51", "x", options={"atoms": 7}).options == C51(7, -100, 100)
    assert Config("c51", "x", preset="paper").options == C51(51, -10, 10)


@dataclass(frozen=True)
class Colliding(Options):
    gamma: float = 0.5

    def algorithm(self):
        return AVI


@dataclass(frozen=True)
class Needy(Options):
    weight: float

    def algorithm(self):
        return AVI


@dataclass(frozen=True)
class Typo(Options):
    def algoritm(self):
        return AVI


class Bare(Options):
    def algorithm(self):
        return AVI


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: register("needy", Needy), "Needy.weight has no default"),
        (lambda: register("typo", Typo), r"Typo has no algorithm\(\)"),
        (lambda: register("bare", Bare), "Bare, expected a dataclass of momentum_rl.Options"),
        (lambda: register("", AVI), "algorithm: '', expected a name"),
        (lambda: Config(["dqn"], "x"), r"algorithm: \['dqn'\], expected a text"),
        (lambda: Config("dqn", "x", options=3), "options: 3, expected the options of dqn"),
        (lambda: DynamicPolicyProgramming(eta="x"), "eta: 'x', expected a number"),
        (lambda: Config("dqn", "x").replace(stpes=3), "dqn has no 'stpes'"),
    ],
)
def test_a_mistake_in_a_declaration_is_one_line(make, says):
    with pytest.raises(UserError, match=says):
        make()


def test_an_option_may_not_have_the_name_of_a_config_field():
    register("colliding", Colliding)
    with pytest.raises(UserError, match="gamma of colliding is a config's field"):
        Config("colliding", "x")


def test_options_and_single_ones_can_be_replaced_together():
    config = Config("momentum-dqn", "x").replace(options={"beta": 0.3}, kappa=3)
    assert (config.options.beta, config.options.kappa) == (0.3, 3)


@dataclass(frozen=True)
class Own(Options):
    weight: float = 0.25
    """How much."""

    def algorithm(self):
        return Algorithm("own", {"q": Target(greedy_value, half)})


def test_a_config_names_a_class_of_options_as_it_likes():
    register("mine", Own)
    config = Config("mine", "x", options={"weight": 0.5})
    assert config.options == Own(0.5)
    assert '"weight": 0.5' in config.to_json()
