"""The experiments on Garnets: their tables, what is recorded beside them, and how they say no."""

import csv
import json
import shlex
from importlib.metadata import version

import numpy as np
import pytest

import momentum_rl
from momentum_rl.cli import parse
from momentum_rl.errors import UserError
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import policy_values
from momentum_rl.planning.comparison import compare_schemes
from paper.__main__ import COMMANDS
from paper.tables.assumption import assumption_check
from paper.tables.experiments import Assumption, Bounds, Compare, command_line, write_table
from paper.tables.ledger import losses_and_bounds

SMALL = {"mdps": 3, "states": 6, "actions": 2, "branching": 2, "discount": 0.8, "seed": 4}
EXPERIMENTS = {
    "compare": (Compare, {"iterations": 9, "schemes": ("movi", "avi")}),
    "assumption": (Assumption, {"iterations": (4, 2), "lengths": (2, 0), "restarts": 7}),
    "bounds": (Bounds, {"iterations": 9, "delta": 0.2, "constant_betas": (0.25,)}),
}


def mdps():
    return garnet(6, 2, 2, discount=0.8, seed=4, count=3)


def refusal(compute):
    """The one line with which a mistake is refused."""
    with pytest.raises(UserError) as caught:
        compute()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module", params=EXPERIMENTS)
def made(request, tmp_path_factory):
    kind, options = EXPERIMENTS[request.param]
    out = tmp_path_factory.mktemp("experiment") / "deep" / "results"
    experiment = kind(out=out, **SMALL, **options)
    return request.param, experiment, experiment.compute()


def test_an_experiment_writes_its_table_and_what_made_it_and_nothing_else(made):
    name, experiment, path = made
    assert path == experiment.out / f"{name}.csv"
    assert sorted(file.name for file in experiment.out.iterdir()) == [f"{name}.csv", f"{name}.json"]
    assert path.read_text().endswith("\n")


def test_the_table_has_the_columns_of_its_contract(made):
    name, _, path = made
    header = path.read_text().splitlines()[0].split(",")
    if name == "compare":
        assert header == ["scheme", "iteration", "l1_mean", "l1_std", "sup_mean", "sup_std"]
    elif name == "assumption":
        assert header == ["reading", "lowest", "j", "l", "n", "mean", "std", "settled"]
    else:
        bounds = ("theorem_1_sup", "supremum", "proposition_1")
        expected = ["iteration", "loss_limit", "loss_sup"]
        expected += [f"{bound}{more}" for bound in bounds for more in ("", "_holds")]
        expected += ["loss_l1", "corollary_1", "corollary_1_holds", "constant_beta_loss_0.25"]
        expected += ["constant_beta_bound_0.25", "constant_beta_bound_0.25_holds"]
        for scheme in ("avi", "sql", "dpp"):
            expected += [f"{scheme}_loss_sup", f"{scheme}_bound", f"{scheme}_bound_holds"]
        assert header == expected


def test_the_record_says_what_made_the_table(made):
    name, experiment, path = made
    record = json.loads(path.with_suffix(".json").read_text())
    assert set(record) == {"command", "config", "seed", "version", "versions", "seconds"}
    assert record["seed"] == 4
    assert record["version"] == momentum_rl.__version__
    assert record["versions"]["jax"] == version("jax")
    assert record["versions"]["numpy"] == version("numpy")
    assert set(record["versions"]) == {"python", "jax", "jaxlib", "numpy"}
    assert record["seconds"] >= 0
    kind, options = EXPERIMENTS[name]
    expected = SMALL | {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
    if name == "compare":
        expected |= {"samples": 1, "family": "garnet", "size": 10}
        expected |= {"errors": None, "average_errors": None}
    elif name == "assumption":
        expected |= {"further": 0}
    assert record["config"] == expected
    assert set(record["config"]) | {"out"} == set(kind.__dataclass_fields__)
    assert str(experiment.out) not in path.with_suffix(".json").read_text()


def test_the_recorded_command_reproduces_the_table_to_the_byte(made, tmp_path):
    _, _, path = made
    command = json.loads(path.with_suffix(".json").read_text())["command"]
    words = shlex.split(command.replace("DIR", str(tmp_path / "again")))
    assert words[:3] == ["python", "-m", "paper"]
    _, experiment = parse(words[3:], COMMANDS)
    assert experiment.compute().read_bytes() == path.read_bytes()


# The numbers -------------------------------------------------------------------------------------


def test_a_row_of_compare_has_mean_and_deviation_over_the_mdps(tmp_path):
    kind, options = EXPERIMENTS["compare"]
    rows = read(kind(out=tmp_path, **SMALL, **options).compute())
    assert [(row["scheme"], int(row["iteration"])) for row in rows] == [
        (name, k) for name in ("movi", "avi") for k in range(1, 10)
    ]
    # One iteration at a time: what is in the file does not depend on chunks.
    result = compare_schemes(mdps(), ("movi", "avi"), iterations=9, seed=4, chunk=1)
    for norm in ("l1", "sup"):
        values = getattr(result, norm).reshape(-1, 3)
        found = np.array([[float(row[f"{norm}_{of}"]) for of in ("mean", "std")] for row in rows])
        centre = values.sum(1) / 3
        spread = np.sqrt(((values - centre[:, None]) ** 2).sum(1) / 3)
        np.testing.assert_allclose(found[:, 0], centre, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(found[:, 1], spread, rtol=1e-8, atol=1e-9)


def test_further_restarts_are_those_of_the_first_j_as_printed_and_begin_with_the_same(tmp_path):
    kind, options = EXPERIMENTS["assumption"]
    plain = read(kind(out=tmp_path / "plain", **SMALL, **options).compute())
    more = read(kind(out=tmp_path / "more", **SMALL, **options, further=9).compute())
    added = [row for row in more if int(row["n"]) > 7]
    assert [row for row in more if int(row["n"]) <= 7] == plain
    assert [(row["reading"], row["j"], row["l"], row["n"]) for row in added] == [
        ("printed", "4", length, n) for length in ("2", "0") for n in ("8", "9")
    ]
    check = assumption_check(mdps(), iteration=4, lengths=(2, 0), restarts=9, seed=4)
    means = [float(row["mean"]) for row in added]
    np.testing.assert_allclose(means, check.printed[:, 7:].mean(-1).ravel(), rtol=1e-8)
    assert "further: -1" in refusal(kind(out=tmp_path, **SMALL, **options, further=-1).compute)


def test_no_policy_loses_more_than_the_limit_and_on_one_problem_one_loses_all_of_it():
    """One state that is never left: the reward of its actions is 1 and 0."""
    mdp = FiniteMDP(
        np.zeros((1, 1, 2, 1), int), np.ones((1, 1, 2, 1)), np.array([[[1.0, 0]]]), np.array([0.9])
    )
    limit = losses_and_bounds(mdp, 2)["loss_limit"]
    best, worst = policy_values(mdp[0], np.array([[0], [1]]))
    assert limit == pytest.approx((best - worst).max(), rel=1e-9)
    found = losses_and_bounds(mdps(), 40)
    own = [d * (r.max() - r.min()) / (1 - d) for r, d in zip(mdps().rewards, [0.8] * 3)]
    assert found["loss_limit"] == pytest.approx(np.full(40, np.mean(own)))
    assert (found["avi_loss_sup"] <= found["loss_limit"]).all()


def test_a_row_of_assumption_has_mean_and_deviation_over_the_mdps(tmp_path):
    kind, options = EXPERIMENTS["assumption"]
    rows = read(kind(out=tmp_path, **SMALL, **options).compute())
    names = ("reading", "lowest", "j", "l", "n")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (reading, lowest, str(j), str(length), str(n))
        for reading, lowest in (("printed", "j+1"), ("assumed", "j+1"), ("assumed", "j"))
        for j in (4, 2)
        for length in (2, 0)
        for n in range(1, 8)
    ]
    checks = [
        assumption_check(mdps(), iteration=j, lengths=(2, 0), restarts=7, seed=4, batch=1)
        for j in (4, 2)
    ]
    estimates = np.concatenate(
        [
            getattr(check, name).reshape(-1, 3)
            for name in ("printed", "assumed", "one_more")
            for check in checks
        ]
    )
    means, deviations, settled = (
        [float(row[of]) for row in rows] for of in ("mean", "std", "settled")
    )
    np.testing.assert_allclose(means, estimates.mean(1), rtol=1e-8)
    np.testing.assert_allclose(deviations, estimates.std(1), rtol=1e-8)
    proven = [
        getattr(check, name).mean(1)
        for name in ("fixed_printed", "fixed_assumed", "fixed_assumed")
        for check in checks
    ]
    np.testing.assert_allclose(settled, np.repeat(np.concatenate(proven), 7), rtol=1e-8)


def test_a_row_of_bounds_has_the_losses_and_bounds_of_its_iteration(tmp_path):
    kind, options = EXPERIMENTS["bounds"]
    rows = read(kind(out=tmp_path, **SMALL, **options).compute())
    expected = losses_and_bounds(mdps(), 9, seed=4, delta=0.2, constant_betas=(0.25,))
    assert [int(row["iteration"]) for row in rows] == list(range(1, 10))
    for name, values in expected.items():
        found = [float(row[name]) for row in rows]
        np.testing.assert_allclose(found, values, rtol=1e-8, atol=1e-12, err_msg=name)
    assert all(float(row["constant_beta_loss_0.25"]) >= 0 for row in rows)


def test_the_defaults_are_the_papers(tmp_path):
    compared, checked = Compare(out=tmp_path), Assumption(out=tmp_path)
    assert (compared.mdps, compared.states, compared.actions, compared.branching) == (100, 30, 4, 4)
    assert (compared.iterations, compared.samples, compared.discount) == (10_000, 1, 0.9)
    assert compared.schemes == ("avi", "movi", "sql", "dpp")
    assert (checked.iterations, checked.restarts) == ((10, 100, 1000), 200)
    assert checked.lengths == (0, 1, 2, 5, 10)
    garnets = compared.garnets()
    assert garnets.successors.shape == (100, 30, 4, 4)
    np.testing.assert_array_equal(garnets.rewards, garnet(count=100).rewards)


def test_without_samples_the_comparison_is_exact(tmp_path):
    """Exact MoVI and AVI end with optimal policies on these six states."""
    options = {"schemes": ("movi", "avi"), "samples": 0, "iterations": 60}
    rows = read(Compare(out=tmp_path, **SMALL, **options).compute())
    assert [float(row["sup_mean"]) for row in rows if row["iteration"] == "60"] == [0, 0]
    assert all(float(row["sup_mean"]) > 0.1 for row in rows if row["iteration"] == "1")


# Files -------------------------------------------------------------------------------------------


def test_a_second_run_replaces_the_first(tmp_path):
    kind, options = EXPERIMENTS["assumption"]
    first = kind(out=tmp_path, **SMALL, **options).compute().read_text()
    again = kind(out=tmp_path, **SMALL | {"seed": 5}, **options).compute().read_text()
    assert first != again
    assert json.loads((tmp_path / "assumption.json").read_text())["seed"] == 5
    assert len(list(tmp_path.iterdir())) == 2


def test_a_number_is_written_with_ten_digits_and_a_name_as_it_is(tmp_path):
    columns = {"name": ["a", "b"], "n": np.array([1, 2]), "x": np.array([1 / 3, 1e-20])}
    path = write_table(tmp_path, "t", columns, {})
    assert path.read_text() == "name,n,x\na,1,0.3333333333\nb,2,1e-20\n"


def test_a_command_line_spells_every_option_out(tmp_path):
    config = Assumption(out=tmp_path, lengths=(3, 1))
    assert command_line(config) == (
        "python -m paper assumption --out DIR --mdps 100 --states 30 --actions 4 --branching 4 "
        "--discount 0.9 --seed 0 --iterations 10 100 1000 --lengths 3 1 --restarts 200 "
        "--further 0"
    )


@pytest.mark.parametrize(
    ("name", "wrong", "complaint"),
    [
        ("compare", {"iterations": 0}, "iterations: 0, expected at least 1"),
        ("compare", {"samples": -1}, "samples: -1, expected at least 0"),
        ("compare", {"schemes": ("foo",)}, "scheme: 'foo', expected one of avi, movi, sql, dpp"),
        ("compare", {"schemes": ()}, "schemes: none, expected at least one"),
        ("compare", {"discount": 1.0}, "discount of MDP 0: 1.0, expected a number in [0, 1)"),
        ("compare", {"mdps": 0}, "count: 0, expected at least 1"),
        ("assumption", {"iterations": (3, 0)}, "iterations: 0, expected at least 1"),
        ("assumption", {"iterations": ()}, "iterations: none, expected at least one j"),
        ("assumption", {"restarts": 0}, "restarts: 0, expected at least 1"),
        ("assumption", {"lengths": ()}, "lengths: (), expected integers of at least 0"),
        ("assumption", {"branching": 7}, "branching: 7, expected at most the number of states, 6"),
        ("bounds", {"iterations": 0}, "iterations: 0, expected at least 1"),
        ("bounds", {"delta": 1.0}, "delta: 1.0, expected a number in (0, 1)"),
        ("bounds", {"constant_betas": (1.0,)}, "beta: 1.0, expected a number in [0, 1)"),
        ("bounds", {"seed": -1}, "seed: -1, expected "),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(name, wrong, complaint, tmp_path):
    kind, options = EXPERIMENTS[name]
    out = tmp_path / "new"
    assert refusal(kind(out=out, **SMALL | options | wrong).compute).startswith(complaint)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_place_that_is_no_directory_is_refused_before_any_work(name, tmp_path, monkeypatch):
    kind, options = EXPERIMENTS[name]
    (tmp_path / "file").write_text("mine")

    def never(*_, **__):
        raise AssertionError("worked")

    monkeypatch.setattr(kind, "columns", never)
    line = refusal(kind(out=tmp_path / "file" / "in", **SMALL, **options).compute)
    assert line == f"out: {tmp_path / 'file'} is a file, expected a directory"
    assert (tmp_path / "file").read_text() == "mine"


def test_the_schemes_are_compared_on_another_family_and_described(tmp_path):
    from paper.claims.experiments import chapters_of_tables

    experiment = Compare(out=tmp_path, mdps=2, iterations=30, family="maze", size=4, samples=0)
    path = experiment.compute()
    assert path.name == "compare_maze.csv"
    ((chapter, remarks),) = chapters_of_tables(tmp_path)
    assert [figure.name for figure in chapter.figures] == ["schemes_maze"]
    assert remarks[0].heading.startswith("Seen: Does averaging win")
    rows = path.read_text().splitlines()
    assert rows[0].startswith("scheme,iteration,l1_mean")
    # Exact value iteration on five states is optimal long before its end.
    assert rows[30].startswith("avi,30,0,")
