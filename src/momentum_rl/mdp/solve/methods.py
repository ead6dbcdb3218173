"""q* by one of several methods, all of which end with the same proof.

    vi    value iteration
    mpi   modified policy iteration: a few sweeps of the greedy policy between two improvements
    pi    policy iteration, every policy evaluated as exactly as float64 allows
    ipi   inexact policy iteration: a few sweeps of value iteration, then the greedy policy is
          evaluated by a Krylov method (see `linear`) as far as it helps
    auto  policy iteration on small problems; else modified policy iteration, and ipi as soon as
          the bounds show that it would take much longer

Whatever the method, an answer is judged by the certificate of its last sweep (see `certificates`),
and the answer is the best that was found.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.certificates import NEAR, Aim, bracket, rounding, sweeps_needed
from momentum_rl.mdp.solve.linear import distances, evaluate

Method = Literal["auto", "vi", "mpi", "pi", "ipi"]
DIRECT = 1_000  # up to this many states, linear systems are solved directly
HOWARD = 200  # up to this many states, policy iteration by such systems is the quickest way to q*
PATIENCE = 1_000_000  # improvements in total: γ = 0.9999 takes at most 400,000
_SMALL = 1 << 17  # entries of a model up to which NumPy's sweeps need no compilation
_PARTIAL = 8  # sweeps of the greedy policy between two improvements of mpi
_LOOKS = 6  # improvements before the first look at the bound
_WORTH = 60  # if it takes more improvements than this, policies are evaluated instead
_BETWEEN = 10  # sweeps of value iteration between two evaluations of ipi
_EVALUATIONS = 300
_ROUNDS = 6  # evaluations in a row without a better bound, then ipi gives up


class State(NamedTuple):
    """The state after some sweeps."""

    v: Any
    """The values, [S]."""
    q: Any
    """What v proves about q*, [S, A]."""
    policy: Any
    """Its greedy policy, [S]."""
    bound: float
    """A proven bound on ‖q − q*‖∞."""
    floor: float
    """No bound of this problem is below this in float64."""
    improvements: int
    """The number of improvements made."""


class Found(NamedTuple):
    """The best state of a method, and the way to it."""

    state: State
    """The state with the least bound."""
    method: str
    """vi, mpi, pi or ipi."""
    why: str
    """What ``auto`` saw; empty if the method was asked for."""
    sweeps: int
    """Sweeps over all pairs (s, a)."""
    evaluations: int
    """Evaluations of a policy."""


Sweep = Callable[[Any, Aim, int, int], State]  # v, the aim, how many improvements, partial sweeps


def optimal(
    mdp: FiniteMDP, wanted: Aim, method: Method = "auto", start: np.ndarray | None = None
) -> Found:
    """q* of one MDP by a method; sweeps begin at ``start`` [S], or at 0."""
    run = _Run(mdp, wanted, start)
    if method == "auto":
        return _auto(run)
    steps: dict[str, Callable[[_Run], Any]] = {
        "vi": _value_iteration,
        "mpi": lambda run: _value_iteration(run, _PARTIAL),
        "pi": _howard,
        "ipi": _inexact,
    }
    steps[method](run)
    return run.best_found(method)


class _Run:
    """What the methods share: the sweeps, the best state, counters, and when to end."""

    def __init__(self, mdp: FiniteMDP, wanted: Aim, start: np.ndarray | None = None) -> None:
        self.mdp, self.wanted = mdp, wanted
        self.start = np.zeros(mdp.states) if start is None else start
        self.sweep = sweeper(mdp)
        self.best: State | None = None
        self.was_near = False
        self.improvements = self.sweeps = self.evaluations = 0
        self.most = float(PATIENCE)

    def to(self, v: Any, many: int, partial: int = 0) -> State:
        """Sweeps from v; keeps the best state and counts."""
        state = self.sweep(v, self.wanted, many, partial)
        self.improvements += state.improvements
        self.sweeps += state.improvements + 1
        self.was_near = self.best is not None and self.best.bound <= NEAR * state.floor
        if self.best is None or state.bound < self.best.bound:
            self.best = state
        # Each improvement multiplies the bound by at most γ, up to rounding.
        left = sweeps_needed(state.bound, self.goal(state), float(self.mdp.discount))
        self.most = min(self.most, self.improvements + 4 * left + _LOOKS)
        return state

    def goal(self, state: State) -> float:
        return float(self.wanted.goal(state.floor, np))

    def ended(self, state: State) -> bool:
        """At the goal, where rounding is in the way, or out of patience."""
        assert self.best is not None
        reached = self.best.bound <= self.goal(state)
        return reached or self.was_near or self.improvements >= self.most

    def best_found(self, method: str, why: str = "") -> Found:
        assert self.best is not None
        return Found(self.best, method, why, self.sweeps, self.evaluations)


def _value_iteration(run: _Run, partial: int = 0, v: Any = None, many: int = _LOOKS) -> None:
    """Until the goal; looks at the bound after ``many`` improvements, then after ever more."""
    state = run.to(run.start if v is None else v, many, partial)
    while not run.ended(state):
        many = min(2 * many, 1_000)
        state = run.to(state.v, many, partial)


def _howard(run: _Run) -> None:
    """Policy iteration; an action is changed only for a gain beyond rounding, so ties never cycle.

    Small systems are solved directly, large ones to the end of float64.
    """
    mdp, discount = run.mdp, float(run.mdp.discount)
    kernel = mdp.dense() if mdp.states <= DIRECT else None
    size, unit = largest_reward(mdp), rounding(mdp)
    policy, v = mdp.rewards.argmax(-1), np.zeros(mdp.states)
    for _ in range(_EVALUATIONS if kernel is None else 10_000):
        run.evaluations += 1
        if kernel is None:
            v = evaluate(mdp, policy, v, unit * (size + float(np.abs(v).max()))).v
        else:
            system = np.eye(mdp.states) - discount * mdp.chosen(kernel, policy)
            v = np.linalg.solve(system, mdp.chosen(mdp.rewards, policy))
        q = backed_up(mdp, v)
        run.sweeps += 1
        better = q.max(-1) - mdp.chosen(q, policy) > unit * (size + np.abs(v).max())
        if not better.any():
            break
        policy = np.where(better, q.argmax(-1), policy)
    state = run.to(v, 0)
    if not run.ended(state):
        _value_iteration(run, v=state.v)


def _inexact(run: _Run, state: State | None = None) -> bool:
    """Inexact policy iteration; False if evaluations brought it no further before its end.

    It starts from the better of two lower bounds of v*: what the sweeps so far prove, and the value
    of going straight to the best states that they found.
    """
    mdp, discount = run.mdp, float(run.mdp.discount)
    if state is None:
        state = run.to(run.start, _LOOKS, _PARTIAL)
    v = np.asarray(state.v)
    if run.ended(state):
        return True
    residual = backed_up(mdp, v).max(-1) - v
    low = v + residual.min() / (1 - discount)
    steps = distances(mdp, np.flatnonzero(v >= v.max() - 1e-9 * np.ptp(v)))
    ahead = (mdp.probabilities * steps[mdp.successors]).sum(-1)
    policy = np.where(np.isneginf(mdp.rewards), np.inf, ahead).argmin(-1)
    run.evaluations += 1
    straight = evaluate(mdp, policy, low, 1e-3 * np.ptp(residual) + 1e-12, ranking=steps).v
    v, fails = np.where(straight > low, straight, low), 0
    for _ in range(_EVALUATIONS):
        before = run.best.bound if run.best is not None else np.inf
        state = run.to(v, _BETWEEN)
        if run.ended(state):
            return True
        fails = 0 if state.bound < before else fails + 1
        if fails > _ROUNDS:
            return False
        v = np.asarray(state.v)
        span = 2 * (1 - discount) * state.bound / max(discount, 1e-3)
        least = (1 - discount) * run.goal(state) / 8
        run.evaluations += 1
        policy = np.asarray(state.policy)
        v = evaluate(mdp, policy, v, max(1e-3 * span, least)).v
    return False


def _auto(run: _Run) -> Found:
    mdp = run.mdp
    if mdp.states <= min(HOWARD, DIRECT):
        _howard(run)
        return run.best_found("pi", f"{mdp.states} states")
    first = run.to(run.start, _LOOKS, _PARTIAL)
    if run.ended(first):
        return run.best_found("mpi", f"done in {first.improvements} improvements")
    many = _LOOKS
    while True:
        state = run.to(first.v, many, _PARTIAL)
        left = _improvements_left(first.bound, state.bound, many, run.goal(state))
        why = _pace(first.bound, state.bound, state.improvements)
        if run.ended(state):
            return run.best_found("mpi", why)
        if left > _WORTH:
            break
        first, many = state, 2 * many
    if _inexact(run, state):
        return run.best_found("ipi", why)
    assert run.best is not None
    _value_iteration(run, _PARTIAL, run.best.v, many)
    return run.best_found("mpi", f"{why}, and evaluations did not help")


def _pace(before: float, now: float, made: int) -> str:
    """How the bound fell, in words."""
    if not now < before:
        return f"the bound does not fall in {made} improvements"
    pace = (now / before) ** (1 / max(made, 1))
    return f"the bound falls to {pace:.2g} of itself per improvement"


def _improvements_left(before: float, now: float, made: int, goal: float) -> float:
    """How many more improvements it takes if the bound goes on falling as it did."""
    if now >= before:
        return np.inf
    return made * np.log(now / goal) / np.log(before / now)


# Sweeps ------------------------------------------------------------------------------------------


def sweeper(mdp: FiniteMDP) -> Sweep:
    """NumPy's sweeps for small problems, which compile nothing; compiled ones for large."""
    if mdp.successors.size <= _SMALL:
        return lambda v, wanted, many, partial: numpy_sweeps(mdp, v, wanted, many, partial)
    import jax

    from momentum_rl.mdp.operators import on_device
    from momentum_rl.mdp.solve.compiled import improvements

    with jax.enable_x64(True):
        device = on_device(mdp)

    def sweep(v: Any, wanted: Aim, many: int, partial: int) -> State:
        with jax.enable_x64(True):
            v, q, policy, bound, floor, count = improvements(
                device, v, wanted, many, partial_sweeps=partial
            )
            return State(v, q, policy, float(bound), float(floor), int(count))

    return sweep


def numpy_sweeps(mdp: FiniteMDP, v: np.ndarray, wanted: Aim, many: int, partial: int = 0) -> State:
    """The same as `compiled.improvements`, without compilation."""
    size, discount = largest_reward(mdp), float(mdp.discount)
    count, v = 0, np.asarray(v, np.float64)
    while True:
        q = backed_up(mdp, v)
        top = q.max(-1)
        shift, bound, floor = bracket(v, top - v, size, discount, rounding(mdp))
        if count >= many or bound <= wanted.goal(floor):
            q = q + shift
            return State(v, q, q.argmax(-1), float(bound), float(floor), count)
        v, count = top, count + 1
        if partial:
            policy = q.argmax(-1)
            rewards, successors, probabilities = (
                mdp.chosen(x, policy) for x in (mdp.rewards, mdp.successors, mdp.probabilities)
            )
            for _ in range(partial):
                v = rewards + discount * (probabilities * v[successors]).sum(-1)


def backed_up(mdp: FiniteMDP, v: np.ndarray) -> np.ndarray:
    """The backup of every action, r + γ P v, [S, A]."""
    return mdp.rewards + float(mdp.discount) * (mdp.probabilities * v[mdp.successors]).sum(-1)


def largest_reward(mdp: FiniteMDP) -> float:
    """max |r(s, a)| over the pairs that are there."""
    return float(np.where(np.isneginf(mdp.rewards), 0.0, np.abs(mdp.rewards)).max())
