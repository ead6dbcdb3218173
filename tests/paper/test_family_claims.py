"""The study of the family in the report: made-up curves, and what is said of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from momentum_rl.errors import UserError
from paper.claims import family as part
from paper.claims.experiments import chapters_of_tables
from paper.claims.tables import Family, Measured, Member, read_family
from tests.paper.synthetic_family import family, write_family


@pytest.fixture
def data() -> Family:
    return family()


def changed(data: Family, key: Member, **columns: np.ndarray) -> Family:
    return replace(data, members={**data.members, key: data.members[key]._replace(**columns)})


def test_what_that_paper_states_is_confirmed_on_curves_that_show_it(data: Family) -> None:
    for judge in (part.kl_converges, part.theorem_1_holds, part.beta_trades, part.theorem_2_holds):
        assert judge(data).confirmed is True, judge.__name__


def test_a_scheme_that_does_not_converge_is_seen(data: Family) -> None:
    key = Member("md-vi", "regularised", 0.1, 0.0)
    verdict = part.kl_converges(changed(data, key, mean=np.full(data.iteration.size, 0.4)))
    assert verdict.confirmed is False
    assert "λ = 0.1: 0.4" in verdict.seen


def test_a_bound_that_is_broken_once_is_seen(data: Family) -> None:
    for key, judge in (
        (Member("md-vi", "regularised", 0.1, 0.0), part.theorem_1_holds),
        (Member("md-vi", "regularised", 0.1, 0.001), part.theorem_2_holds),
    ):
        holds = np.ones(data.iteration.size)
        holds[5] = 0.99
        verdict = judge(changed(data, key, holds=holds))
        assert verdict.confirmed is False
        assert verdict.seen.startswith(f"Broken for λ = 0.1, τ = {key.tau:g}")


def test_a_larger_beta_that_ends_higher_is_seen(data: Family) -> None:
    key = Member("md-vi", "regularised", 0.1, 0.001)
    verdict = part.beta_trades(changed(data, key, mean=np.full(data.iteration.size, 0.9)))
    assert verdict.confirmed is False


def test_data_that_lack_what_a_sentence_is_about_decide_nothing(data: Family) -> None:
    only = Family(data.iteration, {k: v for k, v in data.members.items() if k.scheme != "md-vi"})
    for judge in (part.kl_converges, part.theorem_1_holds, part.beta_trades, part.theorem_2_holds):
        assert judge(only).confirmed is None
    assert part.by_lambda(only) is part.by_beta(only) is None
    assert part.grid(only).rows == []
    first = {key: Measured(*(x[:10] for x in own)) for key, own in data.members.items()}
    short = Family(data.iteration[:10], first)
    assert part.kl_converges(short).confirmed is None


def test_the_plain_evaluation_is_described_and_not_judged(data: Family) -> None:
    said = part.plain_beside(data)
    assert "1.2 × that of the regularised one in the median" in said.seen
    assert "MoVI's loss ends at" in said.seen


def test_the_grid_has_the_late_mean_of_every_pair(data: Family) -> None:
    rows = part.grid(data).rows
    cells = [text for row in rows for name, text in row.items() if name.startswith("λ") and text]
    assert len(cells) == len(data.where("regularised")) + len(data.where("plain"))
    key = Member("md-vi", "plain", 0.1, 0.001)
    late = data.members[key].mean[data.iteration > data.iteration[-1] / 2].mean()
    (row,) = (row for row in rows if (row["evaluation"], row["τ"]) == ("plain", "0.001"))
    assert row["λ = 0.1"] == f"{late:.2g}"


def test_a_table_that_was_written_is_read_and_drawn(tmp_path: Path, data: Family) -> None:
    write_family(tmp_path, data)
    found = read_family(tmp_path / "family.csv")
    assert found.members.keys() == data.members.keys()
    for key, own in data.members.items():
        np.testing.assert_allclose(found.members[key].mean, own.mean, rtol=1e-9)
    ((chapter, said),) = chapters_of_tables(tmp_path)
    names = {figure.name for figure in chapter.figures}
    assert names == {"family_lambda", "family_beta", "family_bounds"}
    assert len(said) == 5


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("plain", "soft", "column 'evaluation': 'soft', expected one of regularised, plain"),
        ("0.001", "-1", "expected a finite number of at least 0"),
    ],
)
def test_a_damaged_table_is_one_line(
    tmp_path: Path, data: Family, old: str, new: str, says: str
) -> None:
    write_family(tmp_path, data)
    file = tmp_path / "family.csv"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(UserError, match=says):
        read_family(file)
