"""The matrix of a sweep: which runs there are, where they go, and what their configs say."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields
from momentum_rl.runs.sweep import Matrix, difference, jobs_of, read_sweep_file, slug
from momentum_rl.sweeps.drive import NAMED, sweep_named
from tests.report.synthetic_runs import GAMES

SMALL = {"steps": 300, "learning_starts": 50}
SCALES = ("quick", "laptop", "paper")


def small(**changes):
    fields = {"environments": ["CartPole-v1"], "algorithms": ["dqn"], "seeds": [0, 1]}
    return Matrix(**{**fields, "name": "small", "config": SMALL, **changes}).sweep()


@pytest.mark.parametrize(
    ("name", "runs", "steps_each"),
    [
        ("paper-atari", 20 * 5 * 5, 50_000_000),
        ("paper-beta", 2 * 6 * 5, 50_000_000),
        ("minatar", 5 * 5 * 5, 5_000_000),
        ("minatar-beta", 5 * 6 * 5, 5_000_000),
    ],
)
def test_the_papers_scale_is_the_protocol_in_full(name, runs, steps_each):
    sweep = sweep_named(name, "paper")
    assert sweep.runs == runs
    assert sweep.steps == runs * steps_each
    for cell in sweep.cells:
        for field, value in preset_fields(cell.config.preset).items():
            assert getattr(cell.config, field) == value


def test_the_papers_atari_comparison_is_every_algorithm_on_every_game_and_both_signs():
    cells = sweep_named("paper-atari", "paper").cells
    labels = ["dqn", "momentum-dqn", "deep-sql", "deep-dpp", "deep-sql (printed)"]
    assert [(cell.env, cell.label) for cell in cells] == [
        (f"ALE/{game}-v5", label) for game in GAMES for label in labels
    ]
    signs = {c.label: c.config.options.sign for c in cells if c.config.algorithm == "deep-sql"}
    assert (signs["deep-sql"], signs["deep-sql (printed)"]) == ("sql", "printed")
    assert {cell.config.preset for cell in cells} == {"paper"}
    assert all(cell.seeds == (0, 1, 2, 3, 4) for cell in cells)


@pytest.mark.parametrize("name", ["paper-beta", "minatar-beta"])
@pytest.mark.parametrize("scale", SCALES)
def test_the_study_of_beta_has_the_appendixs_alternatives(name, scale):
    cells = sweep_named(name, scale).cells[:6]
    steps = cells[0].config.steps
    assert (cells[0].label, cells[0].config.beta_of) == ("dqn", None)
    at_the_end = {cell.label: cell.config.beta_of(steps - 1) for cell in cells[1:]}
    assert {label: pytest.approx(beta) for label, beta in at_the_end.items()} == {
        "momentum-dqn": 19 / 20,
        "momentum-dqn β=0.1": 0.1,
        "momentum-dqn β=0.5": 0.5,
        "momentum-dqn β=0.9": 0.9,
        "momentum-dqn (heuristic)": 0.9,
    }
    tenth = steps // 10  # two κ into the run
    assert cells[1].config.beta_of(tenth) == pytest.approx(2 / 3)
    assert cells[5].config.beta_of(tenth) == pytest.approx(0.2)


def test_minatar_has_both_signs_of_deep_sql():
    cells = sweep_named("minatar", "laptop").cells
    signs = {
        cell.label: cell.config.options.sign
        for cell in cells
        if cell.config.algorithm == "deep-sql"
    }
    assert signs == {"deep-sql": "sql", "deep-sql (printed)": "printed"}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("scale", SCALES)
def test_every_named_sweep_compares_within_equal_lengths(name, scale):
    sweep = sweep_named(name, scale)
    assert (sweep.name, sweep.scale) == (name, scale)
    assert len({cell.config.steps for cell in sweep.cells}) == 1
    places = {cell.place(seed) for cell in sweep.cells for seed in cell.seeds}
    assert len(places) == sweep.runs
    for cell in sweep.cells:
        assert getattr(cell.config.options, "kappa", None) is None  # a twentieth of the run
        assert cell.config.steps % cell.config.iteration_steps == 0


@given(st.lists(st.integers(0, 10**9), min_size=1, unique=True))
def test_jobs_are_the_seeds_in_their_order(seeds):
    sweep = small(seeds=seeds, algorithms=["dqn", "deep-sql"])
    assert [job.seed for job in jobs_of(sweep)] == seeds + seeds


@given(st.text(max_size=40))
def test_a_slug_is_a_name_of_one_plain_directory(label):
    name = slug(label)
    assert all(c.isascii() and (c.isalnum() or c in "-.") for c in name)
    assert not name.startswith((".", "-"))
    assert slug(name) == name


def dqn(**more):
    return {"algorithm": "dqn", **more}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seeds": []}, "seeds: []"),
        ({"seeds": [1, 1]}, "all different"),
        ({"seeds": [-1]}, "seeds: -1"),
        ({"seeds": [True]}, "seeds: True"),
        ({"environments": []}, "no runs"),
        ({"environments": ["../../etc"]}, "'../../etc'"),
        ({"environments": ["A/B-v0", "A-B-v0"]}, "directory of"),
        ({"algorithms": ["dqn", {"algorithm": "deep-sql", "label": "dqn"}]}, "directory of"),
        ({"algorithms": [dqn(label="a b"), dqn(label="a-b")]}, "directory of"),
        ({"algorithms": [dqn(label="…")]}, "letters or digits"),
        ({"algorithms": [dqn(label="a\x1b[2J")]}, "label"),
        ({"algorithms": [dqn(preset="none")]}, "preset: 'none'"),
        ({"algorithms": [dqn(steppes=3)]}, "steppes"),
        ({"algorithms": ["momentum-dqn"], "config": {"beta_schedule": "cosine"}}, "'cosine'"),
        ({"config": {"beta_schedule": "constant"}}, "beta_schedule"),  # DQN has no β
        ({"algorithms": [dqn(beta=0.5)]}, "dqn has no 'beta'"),
        ({"config": {"steps": 0}}, "steps: 0"),
        ({"config": {"gamma": "high"}}, "gamma: 'high'"),
        (
            {"algorithms": ["momentum-dqn"], "config": {"shared_batch": "yes"}},
            "shared_batch: 'yes'",
        ),
    ],
)
def test_a_matrix_that_makes_no_sense_is_one_clear_line(changes, says):
    with pytest.raises(UserError) as error:
        small(**changes)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_names_and_scales_are_named():
    with pytest.raises(UserError, match="'maxatar', expected one of minatar"):
        sweep_named("maxatar", "quick")
    with pytest.raises(UserError, match="'huge', expected one of paper"):
        sweep_named("minatar", "huge")


def test_the_difference_between_matrices_is_said():
    assert difference(small(), small()) == ""
    more = small(algorithms=["dqn", "deep-dpp"], seeds=[0, 1, 2])
    assert difference(small(), more) == (
        "new CartPole-v1 deep-dpp; CartPole-v1 dqn: seeds [0, 1] → [0, 1, 2]"
    )
    assert difference(more, small()).startswith("without CartPole-v1 deep-dpp")
    assert difference(small(), small(config={**SMALL, "gamma": 0.9})) == (
        "CartPole-v1 dqn: gamma 0.99 → 0.9"
    )


TOML = """
name = "mine"
environments = ["CartPole-v1", "MinAtar/Breakout"]
algorithms = [
    "dqn",
    {algorithm = "momentum-dqn", label = "momentum β=0.5", beta_schedule = "constant", beta = 0.5},
    {algorithm = "dqn", label = "dqn (paper)", preset = "paper"},
]
seeds = 3

[config]
steps = 5000
"""


def test_a_file_of_ones_own_is_the_matrix_it_says(tmp_path):
    file = tmp_path / "some.toml"
    file.write_text(TOML)
    expected = Matrix(
        ["CartPole-v1", "MinAtar/Breakout"],
        [
            "dqn",
            {
                "algorithm": "momentum-dqn",
                "label": "momentum β=0.5",
                "beta_schedule": "constant",
                "beta": 0.5,
            },
            dqn(label="dqn (paper)", preset="paper"),
        ],
        [0, 1, 2],
        "mine",
        config={"steps": 5000},
    ).sweep()
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


def test_too_many_runs_are_refused_before_any_is_made(monkeypatch):
    monkeypatch.setattr(Config, "from_flat", None)  # making one would fail
    variants = [dqn(label=f"dqn {i}") for i in range(1_000)]
    with pytest.raises(UserError, match="sweep big: 1000000 runs, expected at most 100000"):
        Matrix(["CartPole-v1"], variants, 1_000, "big").sweep()


def test_a_file_may_have_scales_which_replace_its_keys(tmp_path):
    file = tmp_path / "some.toml"
    file.write_text(f"{TOML}\n[scales.short]\nseeds = [7]\nconfig = {{steps = 100}}\n")
    sweep = read_sweep_file(file, scale="short")
    assert (sweep.scale, sweep.runs, sweep.cells[0].seeds) == ("short", 6, (7,))
    assert {cell.config.steps for cell in sweep.cells} == {100}
    for scale in (None, "long"):
        with pytest.raises(UserError, match=rf"^scale: {scale!r}, expected one of short$"):
            read_sweep_file(file, scale=scale)
