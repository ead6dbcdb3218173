"""Published curves: every form, and files that are none."""

import json
from pathlib import Path

import numpy as np
import pytest

from momentum_rl.errors import UserError
from momentum_rl.report.curves import Curve, CurvesFigure, Panel
from momentum_rl.report.page import Plate
from momentum_rl.report.style import BLUE, Style
from paper.references import laid_over, read_references

HEADER = "game,variant,run,iteration,train_return\n"
GREEDY = "game,algo,step,return\n"


def test_dopamines_json_has_a_run_for_each_value_of_an_iteration(tmp_path: Path) -> None:
    blocks = [("DQN", 0, 1.0), ("DQN", 1, 2.0), ("DQN", 0, 3.0), ("DQN", 1, 4.0), ("C51", 0, 9.0)]
    points = [{"Iteration": i, "Value": v, "Agent": agent} for agent, i, v in blocks]
    (tmp_path / "space_invaders.json").write_text(json.dumps(points))
    (tmp_path / "asterix_CNN.json").write_text(json.dumps(points))
    curves = read_references([tmp_path / "asterix_CNN.json"])
    assert curves == {
        ("asterix", "DQN", "training"): {250_000: [1.0, 3.0], 500_000: [2.0, 4.0]},
        ("asterix", "C51", "training"): {250_000: [9.0]},
    }


def test_both_csv_forms(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + "Space_Invaders,a,0,0,1\nSpace_Invaders,a,1,0,3\n")
    (tmp_path / "b.csv").write_text(GREEDY + "freeway,M-DQN,0,1\nfreeway,M-DQN,100000,2\n")
    assert read_references([tmp_path / "a.csv", tmp_path / "b.csv"]) == {
        ("spaceinvaders", "a", "training"): {250_000: [1.0, 3.0]},
        ("freeway", "M-DQN", "greedy"): {0: [1.0], 100_000: [2.0]},
    }


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.txt", "", "expected a file that ends in .json or .csv"),
        ("a.json", "[]", "no points, expected at least one"),
        ("a.json", "{", "a.json"),
        ("a.json", '[{"Agent": "a", "Iteration": 0}]', "Value"),
        ("a.csv", HEADER, "a header and no rows"),
        ("a.csv", HEADER + "Pong,a,0,0,x\n", "'x', expected a number"),
        ("a.csv", HEADER + "Pong,a,0,0,1\nPong,a,0,0,2\n", "a run has an iteration twice"),
        ("a.csv", HEADER + "Pong,a,0,0,inf\n", "expected numbers"),
        ("a.csv", GREEDY + "freeway,DQN,-1,1\n", "expected numbers"),
        ("a.csv", "game,score\nPong,1\n", "no column 'run'"),
    ],
)
def test_a_wrong_file_is_one_line(name: str, text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as caught:
        read_references([tmp_path / name])
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_same_curves_twice_and_no_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + "Pong,a,0,0,1\n")
    with pytest.raises(UserError, match="a on pong is in another file, too"):
        read_references([tmp_path / "a.csv"] * 2)
    with pytest.raises(UserError, match=r"absent\.csv: cannot be read: No such file"):
        read_references([tmp_path / "absent.csv"])


@pytest.mark.parametrize(("score", "count"), [("training", 2), ("greedy", 1)])
def test_means_are_laid_over_games_of_that_name_and_score_as_far_as_ours_go(
    score: str, count: int
) -> None:
    ours = Curve(Style("DQN", BLUE), np.array([250_000.0, 500_000]), np.array([0.0, 1]))
    panel = Panel("Pong", (ours,))
    figure = CurvesFigure("f", "F", "all", (panel,), y_title=f"{score} score")
    points = {250_000.0: [1.0, 3.0], 500_000.0: [5.0], 750_000.0: [9.0]}
    plate = laid_over(Plate(figure), {("pong", "DQN", "training"): points})
    assert isinstance(plate.figure, CurvesFigure)
    assert len(plate.figure.curves) == count
    if score == "training":
        last = plate.figure.curves[-1]
        assert last.style.label == "DQN (published)"
        assert (last.x.tolist(), last.y.tolist()) == ([250_000, 500_000], [2, 5])
