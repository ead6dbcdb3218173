"""What the repository says of the evidence is what its committed runs say."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from momentum_rl.agents.sac import SAC
from momentum_rl.report.figure import table_of
from momentum_rl.report.statistics import compare
from momentum_rl.runs.finding import find_runs
from momentum_rl.runs.sweep import read_sweep, read_sweep_file
from paper.evidence import blocks, collect, publish
from paper.evidence.plates import drawn
from tests.paper.audit_evidence import is_share

REPOSITORY = Path(__file__).parents[2]
RUNS = REPOSITORY / "paper" / "evidence" / "runs" / "1-momentum" / "runs"
TRIALS = 1_200
STALE = "out of date: run `make evidence`"


@pytest.fixture(scope="module")
def evidence():
    return publish.read_evidence()


MATRICES = sorted(folder for folder in RUNS.parents[1].iterdir() if folder.is_dir())
SECOND = [folder.name for folder in MATRICES if folder.name.startswith("p2-")]
"""The matrices of PLAN-2.md: the page does not tell of them before its experiment is complete."""


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda folder: folder.name)
def test_every_committed_run_names_its_commit_and_processor_and_every_matrix_its_command(matrix):
    origins = json.loads((matrix / collect.ORIGINS).read_text())
    runs = matrix / "runs"
    there = {str(file.parent.relative_to(runs)) for file in runs.glob("*/*/*/status.json")}
    assert set(origins) == there
    for own in origins.values():
        assert re.fullmatch("[0-9a-f]{40}", own["commit"])
        assert own["processor"] != "unknown unknown unknown"
    command = json.loads((matrix / "sweep.json").read_text())["command"]
    assert command == f"movi sweep evidence/{matrix.name}.toml"


def test_the_commits_that_made_the_runs_are_in_the_history():
    made = {
        own["commit"]
        for matrix in MATRICES
        for own in json.loads((matrix / collect.ORIGINS).read_text()).values()
    }
    git = shutil.which("git")
    words = ["rev-list", "HEAD"]
    listed = git and subprocess.run([git, *words], cwd=REPOSITORY, capture_output=True, text=True)
    if not listed or listed.returncode or (REPOSITORY / ".git" / "shallow").exists():
        pytest.skip("no clone with its history")
    assert made <= {*listed.stdout.split()}


def test_a_run_is_collected_with_the_commit_of_an_unchanged_clone(tmp_path):
    git = shutil.which("git")
    if git is None:
        pytest.skip("no git")
    clone, sweep, out = tmp_path / "clone", tmp_path / "sweep", tmp_path / "11-decoupling"
    clone.mkdir()
    (clone / "file").write_text("one")
    about = ["-c", "user.name=a", "-c", "user.email=a"]
    for words in (["init", "-q"], ["add", "file"], [*about, "commit", "-q", "-m", "one"]):
        subprocess.run([git, *words], cwd=clone, check=True, capture_output=True)
    run = sweep / "runs" / "env" / "dqn" / "seed-1"
    run.mkdir(parents=True)
    (sweep / "sweep.json").write_text('{"command": "movi sweep x --out /a/b", "name": "β"}')
    (run / "status.json").write_text('{"status": "running"}')
    commit = collect.commit_of(clone)
    assert collect.collect(sweep, out, commit) == []
    (run / "status.json").write_text('{"status": "finished"}')
    assert collect.collect(sweep, out, commit) == [out / "runs" / "env" / "dqn" / "seed-1"]
    (origin,) = json.loads((out / collect.ORIGINS).read_text()).values()
    head = (clone / ".git" / "HEAD").read_text().split()[1]
    assert origin["commit"] == (clone / ".git" / head).read_text().strip()
    kept = json.loads((out / "sweep.json").read_text())
    assert kept == {"command": "movi sweep evidence/11-decoupling.toml", "name": "β"}
    own = sweep / "runs" / "other" / "dqn" / "seed-0"
    own.mkdir(parents=True)
    (own / "status.json").write_text('{"status": "finished"}')
    (own / "config.json").write_text('{"evaluate_episodes": 3}')
    (own / "agent.safetensors").write_text("")
    for name, agents in (("11-decoupling", 0), ("1-momentum", 1)):  # the zoo's, and no others
        copied = collect.collect(sweep, tmp_path / name, commit)[-1]
        assert len([*copied.glob("agent.safetensors")]) == agents
        assert json.loads((copied / "config.json").read_text()) == {"periodic_episodes": 3}
    (clone / "file").write_text("two")
    with pytest.raises(SystemExit, match="file"):
        collect.commit_of(clone)


def test_a_curve_is_read_as_the_study_draws_it():
    """3,000 games of 1, then 1,000 of 2, and 18,000 to come at that rate: the last 2,200 count."""
    games = [(300, 1.0)] * 10 + [(100, 2.0)] * 10
    rows = [
        {"step": 50_000 * i, "episodes": n, "score": score}
        for i, (n, score) in enumerate(games, start=1)
    ]
    assert blocks.as_drawn(rows) == pytest.approx((1_000 * 2 + 1_200 * 1) / 2_200)
    rows[0] = {"step": 50_000, "episodes": 0, "score": None}
    rows[1:10] = [{**row, "episodes": 10} for row in rows[1:10]]
    assert blocks.as_drawn(rows) == pytest.approx((1_000 * 2 + 90 * 1) / 1_090)


def test_games_alongside_carry_what_made_them():
    for watched in blocks.WATCHED:
        for file in (publish.HERE / "alongside" / watched.replace(" ", "-")).glob("*.json"):
            record = json.loads(file.read_text())
            assert record["config"]["env"] == f"MinAtar/{watched.split()[0]}"
            assert record["command"].endswith(" torch") == watched.endswith(" torch")
            assert (
                record["config"]["seed"] == record["seed"] == int(file.stem.removeprefix("seed-"))
            )
            assert record["versions"]["jax"]
            assert [row["step"] for row in record["rows"]] == list(range(50_000, 1_000_001, 50_000))


def test_the_peers_runs_have_the_settings_steps_and_evaluations_of_ours():
    cells = read_sweep_file(publish.HERE / "9-mujoco.toml").cells
    assert {cell.env: len(cell.seeds) for cell in cells} == dict(blocks.MUJOCO)
    config = cells[0].config_of(0)
    for file in (publish.HERE / "peers").glob("*/*.json"):
        record = json.loads(file.read_text())
        assert (record["env"], f"seed-{record['seed']}") == (file.parent.name, file.stem)
        own = record["settings"]
        assert (config.learning_rate, config.gamma) == (own["learning_rate"], own["gamma"])
        assert (config.replay_capacity, config.batch_size) == (
            own["buffer_size"],
            own["batch_size"],
        )
        assert (config.learning_starts, config.epsilon_warmup) == (own["learning_starts"],) * 2
        assert list(config.hidden) == own["policy_kwargs"]["net_arch"]
        assert config.update_period == own["train_freq"] == own["gradient_steps"] == 1
        assert own["tau"] == SAC().polyak
        assert {"stable-baselines3", "torch", "mujoco"} <= set(record["versions"])
        steps = list(range(config.evaluate_every, config.steps + 1, config.evaluate_every))
        assert [row["step"] for row in record["rows"]] == steps
        for row in record["rows"]:
            assert len(row["returns"]) == config.periodic_episodes
            assert np.mean(row["returns"]) == pytest.approx(row["mean"])


def test_an_interval_over_few_seeds_leaves_out_zero_as_often_as_the_page_says():
    """By the statistics that the page's own intervals come from, with other scores."""
    text = publish.PAGES[0].read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| (\d) \| [^|]+ \| (\d+) \|$", text, re.MULTILINE)
    said = {(int(seeds), int(games)): int(share) / 100 for seeds, games, share in rows}
    assert {(2, 1), (3, 1), (3, 2), (3, 5), (5, 1)} <= set(said)
    for (seeds, games), share in said.items():
        generator, wrong = np.random.Generator(np.random.MT19937(1)), 0
        for trial in range(TRIALS):
            one, other = (
                {str(game): generator.normal(1, 0.1, seeds) for game in range(games)} for _ in "ab"
            )
            mean = compare(one, other, resamples=400, seed=trial).mean
            wrong += not mean.low <= 0 <= mean.high
        # Three standard errors of the difference of shares near .15 of 1,200 and of 2,000.
        assert wrong / TRIALS == pytest.approx(share, abs=0.04), (seeds, games)
        assert share > 0.09  # one in twenty would be right


def test_the_peer_stands_beside_us_with_its_share_of_difference(evidence):
    """From the files alone; a row whose runs are not all there has no share."""
    for env, seeds in blocks.MUJOCO:
        runs = publish.HERE / "runs" / "9-mujoco" / "runs" / env / "sac"
        ours = [json.loads(f.read_text())["mean"] for f in runs.glob("*/evaluation.json")]
        files = sorted((publish.HERE / "peers" / env).glob("*.json"))
        theirs = [json.loads(file.read_text())["rows"][-1]["mean"] for file in files]
        assert len(ours) == seeds
        (row,) = (own for own in blocks.peer(evidence) if own["environment"] == env)
        if len(theirs) < seeds:
            assert f"{len(theirs)} of {seeds} runs" in row["stable-baselines3, by seed"]
            assert row["difference of means"] == ""
        else:
            difference = (np.mean(ours) - np.mean(theirs)) / abs(np.mean(theirs))
            assert is_share(row["difference of means"], difference)


def areas(game, label, file, column):
    """By seed, from the files alone: the mean of a column; nothing if a seed is not there."""
    found = []
    for seed in range(3):
        path = RUNS / f"MinAtar-{game}" / label / f"seed-{seed}" / file
        if not path.exists():
            return None
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["step"] for row in rows] == list(range(50_000, 1_000_001, 50_000))
        found.append(sum(row[column] for row in rows) / 20)
    return np.array(found)


def block(page, name):
    """What stands between the markers of a page."""
    text = page.read_text(encoding="utf-8")
    return re.search(rf"<!-- evidence:{name} -->\n(.*?)<!-- /evidence -->", text, re.DOTALL)[1]


def shares(text):
    """The shares in a text, as numbers."""
    found = re.findall(r"([+−]?)(\d[\d,]*(?:\.\d)?) %", text)
    return [(-1 if sign == "−" else 1) * float(n.replace(",", "")) / 100 for sign, n in found]


@pytest.mark.parametrize("page", publish.PAGES, ids=lambda page: page.name)
def test_the_pages_have_the_numbers_of_the_committed_runs(page, evidence):
    text = page.read_text(encoding="utf-8")
    assert publish.filled(text, evidence) == text, f"{page.name} is {STALE}"
    assert publish.MARKED.search(text)


def test_the_committed_figures_are_those_of_the_committed_runs(evidence):
    figures = [figure for draw in drawn() if (figure := draw(evidence)) is not None]
    names = {f"{figure.name}.{form}" for figure in figures for form in publish.FORMATS}
    assert names <= {path.name for path in publish.FIGURES.iterdir()}, STALE
    for figure in figures:
        text = (publish.FIGURES / f"{figure.name}.csv").read_text(encoding="utf-8")
        assert text == table_of(figure.numbers()), f"{figure.name}.csv is {STALE}"


def test_every_committed_run_is_in_order_and_of_the_plan(evidence):
    found = find_runs(REPOSITORY / "paper" / "evidence")
    assert found.problems == ()
    second = [run for run in found.runs if run.path.parents[3].name in SECOND]
    assert len(found.runs) - len(second) == sum(evidence.ended.values()) >= 9
    for run in second:
        assert run.cell is not None
        assert run.state in ("finished", "diverged")
        assert run.config.evaluate_every <= 25_000


@pytest.mark.parametrize("name", SECOND)
def test_a_matrix_of_the_second_plan_is_the_file_that_was_planned(name):
    planned = read_sweep_file(REPOSITORY / "paper" / "evidence" / f"{name}.toml")
    kept = read_sweep(RUNS.parents[1] / name)
    assert kept.cells == planned.cells


def test_the_second_plan_is_older_than_its_first_run():
    git = shutil.which("git")
    words = ["log", "--diff-filter=A", "--format=%H", "--", "*evidence/PLAN-2.md"]
    listed = git and subprocess.run([git, *words], cwd=REPOSITORY, capture_output=True, text=True)
    if not listed or not listed.stdout.strip() or (REPOSITORY / ".git" / "shallow").exists():
        pytest.skip("no clone with its history")
    plan = listed.stdout.split()[-1]
    for name in SECOND:
        origins = json.loads((RUNS.parents[1] / name / collect.ORIGINS).read_text())
        for commit in {own["commit"] for own in origins.values()}:
            older = ["merge-base", "--is-ancestor", plan, commit]
            assert subprocess.run([git, *older], cwd=REPOSITORY).returncode == 0


@pytest.mark.parametrize(
    ("score", "file", "key"),
    [("greedy", "evaluations.jsonl", "mean"), ("training", "metrics.jsonl", "score")],
    ids=["greedy", "training"],
)
def test_the_improvements_by_game_are_those_worked_out_from_the_files(score, file, key):
    """Means of the rows, and a bootstrap of its own with another generator and seed."""
    names, _, first, *_ = block(publish.PAGES[0], score).splitlines()
    cells = dict(zip(*([cell.strip() for cell in row.split("|")] for row in (names, first))))
    assert cells["improvement"] == "Momentum-DQN over DQN"
    complete = 0
    for game in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders"):
        dqn, momentum = (areas(game, name, file, key) for name in ("dqn", "momentum-dqn"))
        if dqn is None or momentum is None:
            assert cells[game] == "", game
            continue
        complete += 1
        value, low, high = shares(cells[game])
        assert value == pytest.approx(momentum.mean() / dqn.mean() - 1, abs=0.0051), game
        generator = np.random.Generator(np.random.MT19937(7))
        ours, theirs = (own[generator.integers(3, size=(4000, 3))] for own in (momentum, dqn))
        drawn_again = ours.mean(1) / theirs.mean(1) - 1
        spread = drawn_again.std()
        assert low == pytest.approx(np.quantile(drawn_again, 0.025), abs=0.0051 + 0.3 * spread)
        assert high == pytest.approx(np.quantile(drawn_again, 0.975), abs=0.0051 + 0.3 * spread)
    assert complete >= 1


def test_no_share_of_these_runs_stands_outside_of_the_markers():
    for page in publish.PAGES:
        text = publish.MARKED.sub("", page.read_text(encoding="utf-8"))
        begin, end = ("## What helps?", "## Where") if page.name == "README.md" else ("", r"\Z")
        own = re.search(rf"{begin}(.*?)(?={end})", text, re.DOTALL)[1]
        assert {*re.findall(r"\S+ %", own)} <= {"95 %", "±25 %"}
