"""Every verdict on data that confirm the claim, data that do not, and data that cannot tell."""

import re
from dataclasses import replace

import numpy as np
import pytest

from paper.claims import verdicts
from paper.claims.assumption import (
    as_assumed,
    assumption_vanishes,
    kernels_reduce_errors,
    one_more_kernel,
)
from paper.claims.drawing import number
from paper.claims.tables import PRINTED, Assumption, Assumptions, Bounds, Compare
from paper.verdict import Finding, Verdict, said
from tests.paper import synthetic_results as synthetic


def _with_mean(data: Compare, **curves: np.ndarray) -> Compare:
    return replace(data, mean={**data.mean, **curves})


def _with_columns(data: Bounds, **columns: np.ndarray) -> Bounds:
    return replace(data, columns={**data.columns, **columns})


def _without(data: Bounds, *names: str) -> Bounds:
    return replace(data, columns={k: v for k, v in data.columns.items() if k not in names})


@pytest.fixture(scope="module")
def compare() -> Compare:
    return synthetic.compare()


@pytest.fixture(scope="module")
def check() -> Assumptions:
    return synthetic.assumptions()


@pytest.fixture(scope="module")
def bounds() -> Bounds:
    return synthetic.bounds()


def test_words() -> None:
    assert [Verdict("", "", c).word for c in (True, False, None)] == [
        "Confirmed",
        "Not confirmed",
        "Not decided",
    ]
    assert Verdict("", "", np.bool_(True)).confirmed is True
    limited = [Verdict("", "", c, affirmed="Holds", but="says nothing here") for c in (True, False)]
    assert [row["verdict"] for row in said([*limited, Finding("a", "b")]).rows] == [
        "Holds, says nothing here",
        "Not confirmed, says nothing here",
        "described",
    ]
    assert [number(v) for v in (2.9e-7, 0.0, 123456.0, 3e8)] == [
        "2.90e-7",
        "0",
        "123,000",
        "3.00e8",
    ]


class TestMomentumConverges:
    def test_confirmed_when_avi_stays_and_movi_falls(self, compare: Compare) -> None:
        verdict = verdicts.momentum_converges(compare)
        assert verdict.confirmed is True
        late = compare.mean["avi"][5000:]
        assert f"between {number(late.min())} and {number(late.max())}" in verdict.seen
        assert f"ending at {number(compare.mean['movi'][-1])}" in verdict.seen

    def test_not_confirmed_when_avi_converges_too(self, compare: Compare) -> None:
        data = _with_mean(compare, avi=compare.mean["sql"])
        assert verdicts.momentum_converges(data).confirmed is False

    def test_not_confirmed_when_movi_stalls(self, compare: Compare) -> None:
        data = _with_mean(compare, movi=np.maximum(compare.mean["movi"], 0.05))
        assert verdicts.momentum_converges(data).confirmed is False

    def test_not_confirmed_when_avi_is_high_but_does_not_oscillate(self, compare: Compare) -> None:
        data = _with_mean(compare, avi=np.full(compare.iteration.size, 1.3))
        assert verdicts.momentum_converges(data).confirmed is False

    def test_not_decided_by_a_short_run_or_without_avi(self, compare: Compare) -> None:
        short = verdicts.momentum_converges(synthetic.compare(50))
        assert short.confirmed is None
        assert "50 iterations" in short.seen
        only = replace(compare, mean={"movi": compare.mean["movi"]})
        assert verdicts.momentum_converges(only).seen == "The data do not have AVI."

    def test_a_run_of_100_iterations_can_be_judged(self) -> None:
        assert verdicts.momentum_converges(synthetic.compare(100)).confirmed is not None


class TestSchemesAgree:
    def test_confirmed_when_three_fall_together(self, compare: Compare) -> None:
        assert verdicts.schemes_agree(compare).confirmed is True

    def test_the_factor_is_the_one_in_the_data(self, compare: Compare) -> None:
        movi = compare.mean["movi"]
        data = _with_mean(compare, sql=1.5 * movi, dpp=1.2 * movi)
        # 0.001 of AVI's level is added to both before the ratio: 1.5 is not quite reached.
        assert "within a factor of 1.5 " in verdicts.schemes_agree(data).seen

    def test_not_confirmed_when_one_is_three_times_slower(self, compare: Compare) -> None:
        data = _with_mean(compare, sql=3 * compare.mean["movi"])
        assert verdicts.schemes_agree(data).confirmed is False

    def test_not_confirmed_when_one_never_gets_there(self, compare: Compare) -> None:
        data = _with_mean(compare, dpp=compare.mean["avi"])
        verdict = verdicts.schemes_agree(data)
        assert verdict.confirmed is False
        assert "never reached by DPP" in verdict.seen

    def test_errors_of_exactly_zero_are_alike(self, compare: Compare) -> None:
        zeroed = {
            s: np.where(compare.iteration > 2000, 0.0, compare.mean[s])
            for s in ("movi", "sql", "dpp")
        }
        assert verdicts.schemes_agree(_with_mean(compare, **zeroed)).confirmed is True

    def test_not_decided_without_sql(self, compare: Compare) -> None:
        data = replace(compare, mean={s: c for s, c in compare.mean.items() if s != "sql"})
        assert verdicts.schemes_agree(data).confirmed is None


def _assumptions(**parts: dict[int, np.ndarray]) -> Assumptions:
    """As printed at j = 10, from the means by l."""
    n = np.arange(1.0, 1 + len(next(iter(parts.values()))[0]))
    own = {
        int(j.removeprefix("j")): Assumption(n, mean, mean, dict.fromkeys(mean, 0.0))
        for j, mean in parts.items()
    }
    return Assumptions({PRINTED: own})


def _with_mean_at(data: Assumptions, j: int, mean: dict[int, np.ndarray]) -> Assumptions:
    own = data.parts[PRINTED]
    changed = replace(own[j], mean={**own[j].mean, **mean})
    return Assumptions({**data.parts, PRINTED: {**own, j: changed}})


class TestAssumption:
    def test_vanishing_like_a_mean_of_centred_errors_is_confirmed(self, check: Assumptions) -> None:
        verdict = assumption_vanishes(check)
        assert verdict.confirmed is True
        for words in ("j = 10 ", "j = 1,000 ", "N = 1 to 200"):
            assert words in verdict.seen

    def test_the_slope_is_the_exponent(self) -> None:
        n = np.arange(1.0, 201)
        exact = _assumptions(j7={0: 2 * n**-0.5, 1: n**-0.75})
        seen = assumption_vanishes(exact).seen
        assert "for j = 7 and l = 0, 1 the mean falls like N to the power of −0.50, −0.75" in seen

    def test_a_bias_that_stays_at_one_j_is_not_confirmed(self, check: Assumptions) -> None:
        biased = {5: check.of(PRINTED)[100].mean[5] + 0.2}
        assert assumption_vanishes(_with_mean_at(check, 100, biased)).confirmed is False

    def test_the_assumptions_own_indices_change_no_verdict(self, check: Assumptions) -> None:
        assert as_assumed(check) is not None
        without = Assumptions({PRINTED: check.parts[PRINTED]})
        for judge in (assumption_vanishes, kernels_reduce_errors):
            assert judge(without) == judge(check)
        assert as_assumed(without) is None
        assert one_more_kernel(without) is None

    def test_the_assumptions_own_indices_are_described_j_by_j(self, check: Assumptions) -> None:
        found = as_assumed(check)
        assert isinstance(found, Finding)
        assert "seems to go to zero for every l at j = 1,000." in found.seen

    def test_one_kernel_more_is_described(self, check: Assumptions) -> None:
        found = one_more_kernel(check)
        assert isinstance(found, Finding)
        assert "seems to go to zero for every l at j = 10, 100, 1,000." in found.seen

    def test_a_limit_that_only_more_restarts_show_is_said_in_the_verdict(
        self, check: Assumptions
    ) -> None:
        """1/√N + 0.02: at N = 200 it looks centred, at N = 3,200 a third of what is left is not."""
        n = np.arange(1.0, 3_201)
        own = {j: {0: n**-0.5, 2: n**-0.5 + bias} for j, bias in ((10, 0.02), (20, 0.0))}
        parts = {j: Assumption(n, mean, mean, {0: 0.0, 2: 0.0}) for j, mean in own.items()}
        verdict = assumption_vanishes(Assumptions({PRINTED: parts}))
        assert verdict.confirmed is True
        assert verdict.word == "Confirmed, but not at N = 3,200"
        slope = np.polyfit(np.log(n[:200]), np.log(own[10][2][:200]), 1)[0]
        assert f"power of −0.50, {slope:.2f}".replace("-", "−") in verdict.seen
        assert "With more restarts, from N = 1 to 3,200: for j = 10" in verdict.seen
        centred = Assumptions({PRINTED: {20: parts[20]}})
        assert assumption_vanishes(centred).word == "Confirmed"
        assert "With more restarts" not in assumption_vanishes(check).seen

    def test_three_restarts_do_not_decide(self) -> None:
        few = synthetic.assumptions(3)
        assert assumption_vanishes(few).confirmed is None
        found = as_assumed(few)
        assert found is not None
        assert "to zero" not in found.seen

    def test_zero_from_the_start_is_confirmed(self) -> None:
        assert assumption_vanishes(_assumptions(j1={0: np.zeros(200)})).confirmed is True

    def test_kernels_on_all_outcomes(self, check: Assumptions) -> None:
        verdict = kernels_reduce_errors(check)
        assert verdict.confirmed is True
        assert "lower at each of the 200 values" in verdict.seen
        part = check.of(PRINTED)[100]
        once = part.mean[2].copy()
        once[7] = part.mean[0][7]
        broken = kernels_reduce_errors(_with_mean_at(check, 100, {2: once}))
        assert broken.confirmed is False
        assert "not lower for l = 2 at 1 of the values of N" in broken.seen
        lone = _assumptions(j10={0: part.mean[0]})
        assert kernels_reduce_errors(lone).confirmed is None
        assert kernels_reduce_errors(Assumptions({})).confirmed is None
        assert assumption_vanishes(Assumptions({})).confirmed is None


def test_every_claim_quotes_the_paper_or_names_its_statement(
    compare: Compare, check: Assumptions, bounds: Bounds
) -> None:
    judged = [
        verdicts.momentum_converges(compare),
        verdicts.schemes_agree(compare),
        assumption_vanishes(check),
        kernels_reduce_errors(check),
        verdicts.movi_bounds_hold(bounds),
        verdicts.proposition_holds(bounds),
        verdicts.scheme_bounds_hold(bounds),
        verdicts.averaging_shrinks_bound(bounds),
        verdicts.constant_beta_leaves_error(bounds),
    ]
    for verdict in judged:
        assert re.search(r"Section \d|Theorem 1", verdict.claim), verdict.claim
        assert re.search("“|(Theorem|Proposition) 1", verdict.claim), verdict.claim


class TestBounds:
    def test_bounds_above_the_loss_hold(self, bounds: Bounds) -> None:
        assert verdicts.movi_bounds_hold(bounds).confirmed is True
        assert verdicts.scheme_bounds_hold(bounds).confirmed is True

    def test_one_iteration_above_the_bound_breaks_it_and_is_named(self, bounds: Bounds) -> None:
        for loss, judge in (
            ("loss_sup", verdicts.movi_bounds_hold),
            ("dpp_loss_sup", verdicts.scheme_bounds_hold),
        ):
            column = bounds.columns[loss].copy()
            column[41] = 1e6
            verdict = judge(_with_columns(bounds, **{loss: column}))
            assert verdict.confirmed is False
            assert "broken at 1 of 10,000 iterations, first at k = 42" in verdict.seen

    def test_equality_up_to_rounding_holds_and_tightness_is_reported(self, bounds: Bounds) -> None:
        equal = _with_columns(bounds, theorem_1_sup=bounds.columns["loss_sup"] * (1 - 1e-12))
        verdict = verdicts.movi_bounds_hold(equal)
        assert verdict.confirmed is True
        assert "Theorem 1: holds at all 10,000 iterations, bound ≥ 1 × loss" in verdict.seen

    def test_a_bound_above_what_any_policy_can_lose_says_nothing_and_is_told_apart(
        self, bounds: Bounds
    ) -> None:
        """The limit is 20: Proposition 1 is above it to the end, the others fall below it."""
        assert verdicts.movi_bounds_hold(bounds).word == "Holds"
        above = verdicts.proposition_holds(bounds)
        assert above is not None
        assert above.word == "Holds, says nothing here"
        least = bounds.columns["proposition_1"][-1] / 20
        assert f"also ≥ {number(least)} × what any policy can lose" in above.seen
        part = _with_columns(bounds, corollary_1=np.full(10_000, 21.0))
        assert verdicts.movi_bounds_hold(part).word == "Holds"
        assert "Corollary 1: holds at all 10,000 iterations" in verdicts.movi_bounds_hold(part).seen
        assert verdicts.movi_bounds_hold(part).seen.count("says nothing here") == 1
        unknown = verdicts.proposition_holds(_without(bounds, "loss_limit"))
        assert unknown is not None
        assert unknown.word == "Holds"
        assert verdicts.proposition_holds(_without(bounds, "proposition_1")) is None

    def test_an_infinite_bound_holds(self, bounds: Bounds) -> None:
        infinite = _with_columns(bounds, corollary_1=np.full(10_000, np.inf))
        assert verdicts.movi_bounds_hold(infinite).confirmed is True

    def test_absent_columns_do_not_decide(self, bounds: Bounds) -> None:
        some = _without(bounds, "loss_sup", "loss_l1")
        assert verdicts.movi_bounds_hold(some).confirmed is None

    def test_averaging_on_all_outcomes(self, bounds: Bounds) -> None:
        assert verdicts.averaging_shrinks_bound(bounds).confirmed is True
        flat = _with_columns(bounds, supremum=bounds.columns["avi_bound"])
        assert verdicts.averaging_shrinks_bound(flat).confirmed is False
        falling = _with_columns(bounds, avi_bound=bounds.columns["supremum"])
        assert verdicts.averaging_shrinks_bound(falling).confirmed is False
        assert verdicts.averaging_shrinks_bound(_without(bounds, "avi_bound")).confirmed is None

    def test_constant_beta_on_all_outcomes(self, bounds: Bounds) -> None:
        judge = verdicts.constant_beta_leaves_error
        verdict = judge(bounds)
        assert verdict.confirmed is True
        assert "β = 0.9: 13 (loss 0.7" in verdict.seen
        broken = np.ones(10_000)
        broken[77] = 0.99
        other = judge(_with_columns(bounds, **{"constant_beta_bound_0.9_holds": broken}))
        assert other.confirmed is False
        assert "β = 0.9: 13 (loss 0.701), broken" in other.seen
        falls = _with_columns(
            bounds, **{"constant_beta_bound_0.9": bounds.columns["theorem_1_sup"]}
        )
        assert judge(falls).confirmed is False
        worse = _with_columns(bounds, avi_bound=bounds.columns["constant_beta_bound_0.5"])
        assert judge(worse).confirmed is False
        names = [name for name in bounds.columns if name.startswith("constant")]
        assert judge(_without(bounds, *names)).confirmed is None
