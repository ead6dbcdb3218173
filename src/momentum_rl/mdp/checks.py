"""What makes arrays an MDP: every check says, in one line, where the first offender is.

Arrays are [S, A, B] (or [M, S, A, B]). A reward of −inf marks an action that a state does not have.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from momentum_rl.errors import UserError
from momentum_rl.mdp.arrays import LARGEST_REWARD, expectation

ROW_TOLERANCE = 1e-6  # a row may miss 1 by this much (float32 data do); it is then normalised
BLOCK = 1 << 21  # entries checked at a time, so that validation needs no large temporaries
FIELDS = ("successors", "probabilities", "rewards", "discount")
Place = Callable[[int], str]  # the place of a row in words


class Fields(NamedTuple):
    """The arrays of an MDP."""

    successors: np.ndarray
    probabilities: np.ndarray
    rewards: np.ndarray
    discount: np.ndarray
    missed: float  # by rows that sum to 1 only nearly, before they were normalised


def validated(successors: Any, probabilities: Any, rewards: Any, discount: Any) -> Fields:
    """The arrays, checked; rewards as [S, A], rows that miss one slightly normalised."""
    successors = numbers("successors", successors)
    if successors.dtype.kind not in "iu":
        raise UserError(f"successors: dtype {successors.dtype}, expected integers")
    probabilities, rewards, discount = (
        floats(name, value) for name, value in zip(FIELDS[1:], (probabilities, rewards, discount))
    )
    if successors.ndim not in (3, 4) or successors.size == 0:
        raise UserError(
            f"successors: shape {successors.shape}, expected [S, A, B] or [M, S, A, B], each at "
            "least 1"
        )
    shape, states = successors.shape[:-1], successors.shape[-3]

    def place(row: int) -> str:
        return _place(np.unravel_index(row, shape))

    if states >= 2**31:
        raise UserError(f"successors: {states} states, expected fewer than 2**31")
    _check_fits("probabilities", probabilities, successors.shape, successors)
    rewards = expected_rewards(rewards, successors, probabilities, states)
    _check_fits("rewards", rewards, shape, successors)
    _check_fits("discount", discount, shape[:-2], successors)
    check_discount(discount)
    check_rewards(rewards, place)
    absent = np.isneginf(rewards)
    if absent.any():
        empty = absent.all(-1)
        if empty.any():
            where = _place(np.argwhere(empty)[0], ("MDP", "state"))
            raise UserError(f"rewards: {where}: −inf for every action, expected one it can take")
        # The entries of an absent action mean nothing: it stays in its state.
        each_state = np.arange(states).reshape(-1, 1, 1)
        successors = np.where(absent[..., None], each_state, successors)
        stay = np.arange(successors.shape[-1]) == 0
        probabilities = np.where(absent[..., None], stay, probabilities)
    check_successors(successors, states, place)
    rows, missed = normalised(probabilities, place, discount)
    return Fields(successors, rows, rewards, discount, missed)


def expected_rewards(
    rewards: np.ndarray, successors: np.ndarray, probabilities: np.ndarray, states: int
) -> np.ndarray:
    """r(s, a) from [S], or from rewards of every successor: [S, A, S'] by state, [S, A, B] by slot.

    Any other shape is returned unchanged; so are batches, which have a reward per (s, a).
    """
    pairs = successors.shape[:-1]
    if rewards.shape == (states,) and len(pairs) == 2:
        return np.repeat(rewards[:, None], pairs[1], 1)
    if len(pairs) == 3 or rewards.shape[:-1] != pairs:
        return rewards
    if rewards.shape[-1] == states:
        check_successors(successors, states, lambda row: _place(np.unravel_index(row, pairs)))
        by_state = np.take_along_axis(rewards, successors.astype(np.int64), -1)
        if by_state.shape == rewards.shape and ((by_state != rewards) & (probabilities > 0)).any():
            line = f"rewards: {states} states and as many successors, taken as R[s, a, s']"
            warnings.warn(line, stacklevel=5)
        rewards = by_state
    elif rewards.shape[-1] != successors.shape[-1]:
        return rewards
    return expectation(probabilities, rewards)


def require_single(mdp: Any, reason: str = "solve its members one by one") -> None:
    """Raise unless it is one `FiniteMDP`, without a batch axis."""
    if mdp.batch is not None:
        raise UserError(f"mdp: a batch, expected one MDP; {reason}")


def require_batch(mdps: Any) -> int:
    """Raise unless it is a batch; how many MDPs it holds."""
    if mdps.batch is None:
        raise UserError(
            "mdps: a single MDP, expected a batch such as momentum_rl.garnet(count=100)"
        )
    return int(mdps.batch)


def numbers(name: str, value: Any) -> np.ndarray:
    """The value as an array."""
    if np.ma.is_masked(value):
        raise UserError(
            f"{name}: a masked array, expected all of it; −inf in the rewards masks actions"
        )
    try:
        return np.asarray(value)
    except ValueError:
        raise UserError(f"{name}: rows of different lengths, expected an array") from None


def floats(name: str, value: Any) -> np.ndarray:
    """The value as an array of float64."""
    array = numbers(name, value)
    if array.dtype.kind not in "fiu":
        raise UserError(f"{name}: dtype {array.dtype}, expected numbers")
    with np.errstate(over="ignore"):  # what is beyond float64 is refused as infinite
        return array.astype(np.float64, copy=False)


def check_shape(name: str, array: np.ndarray, expected: tuple[int, ...]) -> None:
    """Raise unless an array has this shape."""
    if array.shape != expected:
        raise UserError(f"{name}: shape {array.shape}, expected {expected}")


def _check_fits(
    name: str, array: np.ndarray, expected: tuple[int, ...], successors: np.ndarray
) -> None:
    if array.shape != expected:
        raise UserError(
            f"{name}: shape {array.shape}, expected {expected} to go with successors of shape "
            f"{successors.shape}"
        )


def _place(index: Sequence[Any], names: tuple[str, ...] = ("MDP", "state", "action")) -> str:
    """'MDP 3, state 1, action 0' from the index of a row."""
    return ", ".join(f"{name} {int(i)}" for name, i in zip(names[-len(index) :], index))


def check_discount(discount: np.ndarray) -> None:
    """Raise unless γ, or that of every MDP of a batch, is in [0, 1)."""
    bad = ~((discount >= 0) & (discount < 1))
    if bad.any():
        where = f" of MDP {int(np.argmax(bad))}" if discount.ndim else ""
        raise UserError(f"discount{where}: {discount[bad][0]}, expected a number in [0, 1)")


def _blocks(rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Some rows at a time, each with the number of its first."""
    step = max(1, BLOCK // (rows.shape[1] if rows.ndim > 1 else 1))
    return ((start, rows[start : start + step]) for start in range(0, len(rows), step))


def check_rewards(rewards: np.ndarray, place: Place) -> None:
    """Raise at the first reward that is not a number, +inf, or too large to add up."""
    for start, block in _blocks(rewards.reshape(-1)):
        sizes = np.where(np.isneginf(block), 0.0, np.abs(block))
        good = sizes <= LARGEST_REWARD  # which a NaN is not
        if not good.all():
            at = int(np.argmin(good))
            finite = np.isfinite(block[at])
            expected = f"at most ±{LARGEST_REWARD:g}" if finite else "a finite number"
            raise UserError(f"rewards: {place(start + at)}: {block[at]}, expected {expected}")


def check_successors(successors: np.ndarray, states: int, place: Place) -> None:
    """Raise at the first row with a successor that is not a state."""
    for start, block in _blocks(successors.reshape(-1, successors.shape[-1])):
        if block.min() >= 0 and block.max() < states:
            continue
        bad = (block < 0) | (block >= states)
        row = int(np.argmax(bad.any(-1)))
        raise UserError(
            f"successors: {place(start + row)}: {block[row][bad[row]][0]}, "
            f"expected a state in 0..{states - 1}"
        )


def row_rounding(branching: int) -> float:
    """How far from 1 a row's sum may be: what rounding explains; other rows are normalised."""
    return (branching + 4) * 2.0**-52


def row_tolerance(branching: int, discount: np.ndarray) -> float:
    """How far from 1 a row may be: less than half of 1 − γ, or it might not discount at all."""
    return max(row_rounding(branching), min(ROW_TOLERANCE, (1 - float(discount.max())) / 2))


def normalised(p: np.ndarray, place: Place, discount: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows, divided by their sums if any misses 1 by more than rounding; how far one misses it."""
    branching, missed = p.shape[-1], 0.0
    allowed = row_tolerance(branching, discount)
    for start, block in _blocks(p.reshape(-1, branching)):
        miss = np.abs(block.sum(-1) - 1)
        # Written so that a NaN fails both comparisons.
        good = (block >= 0).all(-1) & (miss <= allowed)
        if not good.all():
            row = int(np.argmin(good))
            wrong = block[row][~(block[row] >= 0)]
            sums = f"they sum to {block[row].sum()}, expected 1"
            what = f"{wrong[0]}, expected a number ≥ 0" if len(wrong) else sums
            raise UserError(f"probabilities: {place(start + row)}: {what}")
        missed = max(missed, float(miss.max()))
    if missed <= row_rounding(branching):
        return p, 0.0
    return p / p.sum(-1, keepdims=True), missed


def checked_names(name: str, values: Any, count: int) -> np.ndarray:
    """Names of states or actions: ``count`` texts."""
    names = numbers(name, values)
    if names.dtype.kind != "U" or names.shape != (count,):
        raise UserError(f"{name}: shape {names.shape} of {names.dtype}, expected {count} texts")
    result = names.copy()
    result.flags.writeable = False
    return result
