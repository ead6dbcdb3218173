"""Published curves: both forms, and files that are neither."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from momentum_rl.errors import UserError
from momentum_rl.plumbing.games import GAMES, MINATAR
from momentum_rl.report.deep.published import published_results
from momentum_rl.report.deep.references import Reference, read_reference, read_references
from tests.report.synthetic_runs import MOMENTUM, SEEDS, scores_of

REFERENCE = Path(__file__).parents[4] / "shared" / "reference" / "dopamine_dqn_20games.csv"
"""In a folder beside the clone, where it is there."""


def dopamine(*points: tuple[str, int, float]) -> str:
    return json.dumps([{"Iteration": i, "Value": v, "Agent": agent} for agent, i, v in points])


def test_dopamines_json_in_blocks_and_interleaved(tmp_path: Path) -> None:
    blocks = [("DQN", 0, 1.0), ("DQN", 1, 2.0), ("DQN", 0, 3.0), ("DQN", 1, 4.0), ("C51", 0, 9.0)]
    interleaved = [blocks[i] for i in (0, 2, 1, 3, 4)]
    for name, points in (("pong.json", blocks), ("pong_CNN.json", interleaved)):
        (tmp_path / name).write_text(dopamine(*points))
        curves = read_reference(tmp_path / name)
        assert list(curves) == [("pong", "DQN"), ("pong", "C51")]
        assert curves["pong", "DQN"].scores.tolist() == [[1, 2], [3, 4]]


def test_our_csv(tmp_path: Path) -> None:
    file = tmp_path / "curves.csv"
    file.write_text(
        "game,variant,run,iteration,train_return\nPong,a,0,0,-21\nPong,a,0,1,3.5\nPong,a,4,0,-20\n"
    )
    found = read_references([file])
    assert found is not None
    assert found.name == "curves.csv"
    np.testing.assert_array_equal(found.curves["Pong", "a"].scores, [[-21, 3.5], [-20, math.nan]])
    assert read_references([]) is None


HEADER = "game,variant,run,iteration,train_return\n"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.txt", "", "expected a file that ends in .json or .csv"),
        ("a.csv", "", "empty, expected a header"),
        ("a.csv", "game,variant\nPong,a\n", "no column 'run'"),
        ("a.csv", HEADER, "a header and no rows"),
        ("a.csv", HEADER + "Pong,a,0,0.5,1\n", "iteration 0.5, expected a whole number"),
        ("a.csv", HEADER + "Pong,a,0,-1,1\n", "iteration -1.0, expected a whole number from 0"),
        ("a.csv", HEADER + "Pong,a,0,0,inf\n", "train_return inf, expected a finite number"),
        ("a.csv", HEADER + "Pong,a,0,0,x\n", "'x', expected a number"),
        ("a.csv", HEADER + "Pong,a,0,0,1\nPong,a,0,0,2\n", "run 0 has iteration 0 twice"),
        ("a.json", "", "cannot be read as JSON"),
        ("a.json", "[" * 100_000, "cannot be read as JSON"),
        ("a.json", "{}", "{}, expected a list"),
        ("a.json", "[3]", "entry 0: 3, expected an object"),
        ("a.json", '[{"Agent": 1, "Iteration": 0, "Value": 1}]', "Agent: 1, expected a text"),
        ("a.json", '[{"Agent": "x", "Iteration": true, "Value": 1}]', "expected a finite number"),
        (
            "a.json",
            '[{"Agent": "x", "Iteration": NaN, "Value": 1}]',
            "the number NaN is not finite",
        ),
        (
            "a.json",
            '[{"Agent": "x", "Iteration": 1e99, "Value": 1}]',
            "expected a whole number from 0",
        ),
        ("a.json", '[{"Agent": "x", "Iteration": 0, "Value": "1"}]', "expected a finite number"),
        ("a.json", '[{"Agent": "x", "Iteration": 0, "Value": Infinity}]', "Infinity is not finite"),
    ],
)
def test_a_wrong_file_is_one_line(name: str, text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as caught:
        read_references([tmp_path / name])
    assert complaint in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


GREEDY = "game,algo,step,return\n"


def test_greedy_scores_on_minatar_by_agent_step(tmp_path: Path) -> None:
    file = tmp_path / "minatar.csv"
    rows = ["space_invaders,DQN,200,3", "space_invaders,DQN,100,1", "freeway,M-DQN,100,9"]
    file.write_text(GREEDY + "\n".join(rows) + "\n")
    found = read_references([file])
    assert found is not None
    dqn = found.curves["space_invaders", "DQN"]
    assert (dqn.suite, dqn.score) == ("MinAtar", "greedy")
    assert (dqn.steps.tolist(), dqn.scores.tolist()) == ([100, 200], [[1, 3]])
    ours = found.of("MinAtar", "greedy", ["SpaceInvaders", "Breakout"])
    assert ours is not None
    assert list(ours.curves) == [("SpaceInvaders", "DQN")]
    # Never over training scores, nor over Atari's game of the same name.
    assert found.of("MinAtar", "training", ["SpaceInvaders"]) is None
    assert found.of("Atari", "greedy", ["SpaceInvaders"]) is None
    assert [own.name for own in published_results(found)] == ["published-minatar"]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("freeway,DQN,100,1\nfreeway,DQN,100,2", "DQN on freeway: step 100, expected each once"),
        ("freeway,DQN,-1,1", "step -1, expected each once, from 0 on"),
        ("freeway,DQN,1,inf", "return inf, expected a finite number"),
        ("freeway,DQN,1,x", "'x', expected a number"),
    ],
)
def test_a_wrong_row_of_greedy_scores_is_one_line(row: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GREEDY + row + "\n")
    with pytest.raises(UserError) as caught:
        read_references([tmp_path / "a.csv"])
    assert complaint in str(caught.value)


def test_the_published_gain_of_munchausen_dqn_on_minatar() -> None:
    file = REFERENCE.with_name("minatar_dqn_mdqn_dvw_10M.csv")
    if not file.exists():
        pytest.skip(f"the published curves are not here: {file.name}")
    reference = read_references([file])
    assert reference is not None
    (results,) = published_results(reference)
    assert results.games == MINATAR
    gains = {g: e.value for g, e in results.comparisons["M-DQN"].games.items()}
    # Means of the columns, worked out apart from this package.
    expected = dict(zip(MINATAR, (1.2734, 0.2946, 0.1124, 2.9715, 0.6493)))
    assert gains == pytest.approx(expected, abs=1e-4)


def test_runs_too_sparse_to_keep_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"Pong,a,{run},{(run % 2) * 99_999},1\n" for run in range(200))
    (tmp_path / "a.csv").write_text(HEADER + rows)
    with pytest.raises(UserError, match="200 runs up to iteration 99999, expected complete runs"):
        read_references([tmp_path / "a.csv"])


def test_the_same_curves_twice_and_no_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + "Pong,a,0,0,1\n")
    with pytest.raises(UserError, match="a on Pong is in another file, too"):
        read_references([tmp_path / "a.csv"] * 2)
    with pytest.raises(UserError, match=r"absent\.csv: cannot be read: No such file"):
        read_references([tmp_path / "absent.csv"])


def published(file: Path, iterations: int = 20) -> Reference:
    """Two variants on the 20 games as a CSV: a late one, an iteration shorter, with known gains.

    The late one is above the other by its gain times |the other's area over what both have|.
    """
    rows = [HEADER]
    for game in GAMES:
        for seed in range(SEEDS):
            base = scores_of(game, seed, 0.0, iterations)
            common = scores_of(game, 2, 0.0, iterations)[:-1].mean()
            late = base[:-1] + MOMENTUM[game] * abs(common)
            for variant, scores in (("early", base), ("late", late)):
                rows += [
                    f"{game},{variant},{seed},{i},{x!r}\n" for i, x in enumerate(scores.tolist())
                ]
    file.write_text("".join(rows))
    found = read_references([file])
    assert found is not None
    return found


def test_the_bars_of_published_variants_show_improvements_known_beforehand(tmp_path: Path) -> None:
    from momentum_rl.report.deep.figures import improvement

    (results,) = published_results(published(tmp_path / "curves.csv"))
    figure = improvement(results, "late")
    assert figure is not None
    values = {game: bar.value for game, bar in figure.bars[0].games.items()}
    assert values == pytest.approx(MOMENTUM, abs=1e-9)
    # (15 · 0.4 + 3.3 + 0 − 3 · 0.1)/20 = 0.45. Over all 20 iterations of the other, whose last is
    # its highest, every one of these would be lower.
    assert figure.bars[0].mean == pytest.approx(0.45)
    comparison = results.comparisons["late"]
    assert (comparison.improved.value, comparison.median.value) == (16, pytest.approx(0.4))
    assert "20 to 19" in results.protocol or "19 to 20" in results.protocol


def test_the_bars_of_published_variants_show_the_known_improvement() -> None:
    if not REFERENCE.exists():
        pytest.skip(f"the published curves are not here: {REFERENCE.name}")
    from momentum_rl.report.deep.figures import improvement

    reference = read_references([REFERENCE])
    assert reference is not None
    (results,) = published_results(reference)
    figure = improvement(results, "jax_adam_mse_legacy")
    assert figure is not None
    values = [estimate.value for estimate in figure.bars[0].games.values()]
    assert len(values) == 20
    assert sum(value > 0 for value in values) == 18
    assert sum(values) / 20 == pytest.approx(0.80, abs=0.005)
    assert figure.bars[0].mean == pytest.approx(0.80, abs=0.005)
    # Lengths differ (200 and 199 iterations): over those in common, worked out apart.
    other = results.comparisons["jax_v4_cnn"]
    assert (other.improved.value, other.mean.value) == (17, pytest.approx(0.8331, abs=1e-4))
