"""What the plan describes without judging, on made-up runs: its tables and figures."""

from pathlib import Path

import pytest

from momentum_rl.runs.finding import find_runs
from momentum_rl.runs.sweep import read_sweep_file, run_directory, write_sweep
from paper.evidence import blocks, gathered, plates
from paper.evidence.gathered import Evidence, gather
from paper.evidence.plan import read_plan
from tests.paper.synthetic_plan import write_matrix, write_plan
from tests.report.synthetic_runs import write_run

PENDULUM = """environments = ["gymnax/Pendulum-v1"]
algorithms = ["sac", "momentum-sac"]
seeds = 2
preset = "sac"
[config]
steps = 2_000
iteration_steps = 1_000
"""
C51 = """environments = ["MinAtar/Asterix", "MinAtar/Breakout"]
algorithms = ["c51"]
seeds = 3
preset = "minatar"
[config]
steps = 200_000
evaluate_every = 50_000
"""


def add_matrix(file: Path, name: str, protocol: str) -> None:
    """A matrix more in the plan, of this protocol."""
    text = file.read_text().replace("matrices = [", f'matrices = ["{name}.toml", ')
    file.write_text(text.replace(f"{protocol} = [", f'{protocol} = ["{name}.toml", '))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The plan with two matrices more."""
    write_plan(tmp_path)
    file = tmp_path / "evidence.toml"
    add_matrix(file, "10-distributional", "minatar-published")
    file.write_text(file.read_text() + 'sac = ["8-sac.toml"]\n')
    file.write_text(file.read_text().replace("matrices = [", 'matrices = ["8-sac.toml", '))
    (tmp_path / "8-sac.toml").write_text(PENDULUM)
    (tmp_path / "10-distributional.toml").write_text(C51)
    with (tmp_path / "published.csv").open("a") as table:
        table.write("gymnax/Pendulum-v1,sac,2000,-157,a zoo\n")
    return tmp_path


def evidence_in(folder: Path) -> Evidence:
    evidence, odd = gather(read_plan(folder), find_runs(folder).runs)
    assert odd == ()
    return evidence


def write_sac(folder: Path, sac: float, momentum: float, *ends: float) -> None:
    """Two seeds of either, with their scores and what SAC's seeds have at the end."""
    sweep = read_sweep_file(folder / "8-sac.toml")
    write_sweep(folder / "runs" / "8-sac", sweep)
    for cell, level in zip(sweep.cells, (sac, momentum)):
        for seed, end in zip(cell.seeds, ends):
            path = run_directory(folder / "runs" / "8-sac", cell, seed)
            write_run(path, cell.config_of(seed), [level, level], evaluation=end)


@pytest.mark.parametrize(
    ("momentum", "gain"),
    [
        (-500.0, "+50 % [+50 %, +50 %]"),
        (-1500.0, "−50 % [−50 %, −50 %]"),
        (-1000.0, "0 % [0 %, 0 %]"),
    ],
)
def test_a_return_below_zero_improves_towards_zero(
    folder: Path, momentum: float, gain: str
) -> None:
    write_sac(folder, -1000.0, momentum, -150.0, -190.0)
    (row,) = blocks.in_sac(evidence_in(folder))
    assert row["environment"] == "Pendulum-v1 (gymnax)"
    assert row["Momentum-SAC over SAC"] == gain


def test_sac_is_the_published_one_if_every_seed_is_good(folder: Path) -> None:
    (missing,) = blocks.at_the_ends(evidence_in(folder))
    assert missing["mean returns, by seed"] == "0 of 2 runs"
    assert missing["the same"] == ""
    assert missing["published"] == "-157 (a zoo)"
    assert missing["the same if"] == "-200 in 2 of 2 seeds"
    write_sac(folder, -1000.0, -1000.0, -150.0, -210.0)
    (row,) = blocks.at_the_ends(evidence_in(folder))
    assert row["mean returns, by seed"] == "-150, -210"
    assert row["the same"] == "no"


@pytest.mark.parametrize(("last", "word"), [(475.0, "yes"), (474.9, "no")])
def test_c51_is_the_published_one_if_all_seeds_but_one_are_good(
    folder: Path, last: float, word: str
) -> None:
    file = folder / "evidence.toml"
    file.write_text(file.read_text() + 'c51-cleanrl = ["12-cartpole.toml"]\n')
    file.write_text(file.read_text().replace("matrices = [", 'matrices = ["12-cartpole.toml", '))
    matrix = folder / "12-cartpole.toml"
    matrix.write_text(PENDULUM.replace("gymnax/Pendulum-v1", "CartPole-v1").replace("2\n", "5\n"))
    text = matrix.read_text().replace('"sac", "momentum-sac"', '"c51"')
    matrix.write_text(text.replace('preset = "sac"', 'preset = "control"'))
    with (folder / "published.csv").open("a") as table:
        table.write("CartPole-v1,c51,2000,481,CleanRL\n")
    sweep = read_sweep_file(matrix)
    write_sweep(folder / "runs" / "12-cartpole", sweep)
    (cell,) = sweep.cells
    for seed, end in zip(cell.seeds, (500.0, 480.0, 12.0, 476.0, last), strict=True):
        path = run_directory(folder / "runs" / "12-cartpole", cell, seed)
        write_run(path, cell.config_of(seed), [400.0, 450.0], evaluation=end)
    _, row = blocks.at_the_ends(evidence_in(folder))
    assert row["the same if"] == "475 in 4 of 5 seeds"
    assert row["mean returns, by seed"].startswith("500, 480, 12, 476, ")
    assert row["the same"] == word


def test_the_figures_of_c51_and_sac_have_their_improvements_above_each_game(folder: Path) -> None:
    """SAC from −1000 to −500 is +50 % of its area; C51 is at 4 and Momentum-C51 4 above it."""
    empty = evidence_in(folder)
    assert plates.in_c51(empty) is None
    assert plates.in_sac(empty, gathered.SAC[0]) is None
    file = folder / "10-distributional.toml"
    file.write_text(file.read_text().replace('["c51"]', '["c51", "momentum-c51"]'))
    write_sac(folder, -1000.0, -500.0, -150.0, -190.0)
    write_matrix(folder, "1-momentum", {"dqn": 0.0})
    write_matrix(folder, "10-distributional", {"c51": 0.0, "momentum-c51": 4.0})
    evidence = evidence_in(folder)
    sac = plates.in_sac(evidence, gathered.SAC[0])
    assert sac is not None
    assert sac.name == "sac-gymnax-training"
    gain = "Pendulum-v1: +50 % [+50 %, +50 %]"
    assert sac.panels[0].title == gain
    assert sac.subtitle.endswith("the gain in area of Momentum-SAC over SAC")
    c51 = plates.in_c51(evidence)
    assert c51 is not None
    assert [panel.title[:16] for panel in c51.panels] == ["Asterix: +100 % ", "Breakout: +100 %"]
    assert [style.label for style in c51.styles] == ["C51", "Momentum-C51", "DQN"]
    assert len({style.colour for style in c51.styles}) == 3
    assert plates.in_sac(evidence, gathered.SAC[1]) is None


DECOUPLING = """environments = ["MinAtar/Asterix", "MinAtar/Breakout"]
algorithms = [
    {algorithm = "momentum-dqn", label = "momentum-dqn β=0", beta_schedule = "constant", beta = 0},
    "double-dqn",
]
seeds = 3
preset = "minatar"
[config]
steps = 200_000
evaluate_every = 50_000
"""


@pytest.fixture
def decoupling(folder: Path) -> Path:
    """The plan with Momentum-DQN without its average, and Double DQN."""
    file = folder / "evidence.toml"
    add_matrix(file, "11-decoupling", "minatar-published")
    (folder / "11-decoupling.toml").write_text(DECOUPLING)
    return folder


def test_bars_over_all_games_leave_out_what_is_planned_on_some_or_not_complete(
    decoupling: Path,
) -> None:
    file = decoupling / "10-distributional.toml"
    file.write_text(file.read_text().replace('"MinAtar/Asterix", ', ""))
    write_matrix(decoupling, "1-momentum", {"dqn": 0.0, "momentum-dqn": 4.0})
    write_matrix(decoupling, "2-speedy", {"deep-sql": 0.0, "deep-dpp": -1.0})
    write_matrix(decoupling, "10-distributional", {"c51": 4.0})
    missing = [("Breakout", "double-dqn", 1)]
    gains = {"double-dqn": 1.0, "momentum-dqn β=0": 2.0}
    write_matrix(decoupling, "11-decoupling", gains, without=missing)
    evidence = evidence_in(decoupling)
    bars = plates.improvements(evidence)
    assert bars is not None
    known = ["Momentum-DQN", "Deep SQL", "Deep DPP"]
    assert [style.label for style in bars.styles] == [*known, "Double DQN"]
    assert len({style.colour for style in bars.styles}) == 4
    assert bars.rows == ["Asterix", "Breakout", "mean"]
    assert [entry.style.label for entry in bars.entries if entry.row == "mean"] == known


def test_the_figure_of_the_average_has_its_gain_over_beta_zero(decoupling: Path) -> None:
    """β = 0 has the area 4 + 4 = 8 and Momentum-DQN 4 + 8 = 12: half as much again."""
    write_matrix(decoupling, "1-momentum", {"dqn": 0.0, "momentum-dqn": 8.0})
    assert plates.is_it_the_average(evidence_in(decoupling)) is None
    write_matrix(decoupling, "11-decoupling", {"momentum-dqn β=0": 4.0, "double-dqn": 0.0})
    drawn = plates.is_it_the_average(evidence_in(decoupling))
    assert drawn is not None
    assert [panel.title[:16] for panel in drawn.panels] == ["Asterix: +50 % [", "Breakout: +50 % "]
    labels = ["Momentum-DQN β=0", "Momentum-DQN", "DQN", "Double DQN"]
    assert [style.label for style in drawn.styles] == labels
    assert len({style.colour for style in drawn.styles}) == 4


def test_the_figure_of_beta_has_whole_games_and_no_other_runs(decoupling: Path) -> None:
    write_matrix(decoupling, "1-momentum", {"dqn": 0.0, "momentum-dqn": 8.0})
    write_matrix(decoupling, "11-decoupling", {"momentum-dqn β=0": 4.0})
    betas = {f"momentum-dqn β={b}": b for b in (0.1, 0.5, 0.9)}
    gains = {**betas, "momentum-dqn (heuristic)": 1.0}
    assert plates.beta(evidence_in(decoupling)) is None
    write_matrix(decoupling, "4-beta", gains, without=[("Breakout", "momentum-dqn β=0.5", 0)])
    drawn = plates.beta(evidence_in(decoupling))
    assert drawn is not None
    assert [panel.title for panel in drawn.panels] == ["Asterix"]
    assert drawn.title.endswith(": Asterix")
    shown = [style.label for style in drawn.styles]
    assert len(shown) == 6
    assert "Momentum-DQN β=0" not in shown
