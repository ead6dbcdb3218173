"""MDPs from a function ``successors(s, a) → (s'[B], p[B], r)``, stored or evaluated in every sweep.

The function takes scalars and can be compiled by JAX, or it takes NumPy arrays s [n] and a [n] and
gives [n, B], [n, B] and [n] (``vectorised=True``). A reward of −inf is an action that a state does
not have. Every row is checked, stored or not; the first offending (s, a) is named.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from movi.errors import UserError, check_count
from movi.mdp.certificates import Aim, bracket, check_tolerance, sweeps_needed
from movi.mdp.checks import (
    ROW_TOLERANCE,
    check_discount,
    check_rewards,
    check_successors,
    normalised,
)
from movi.mdp.memory import aligned
from movi.sizes import require

Rows = Callable[[Any, Any], tuple[Any, Any, Any]]
_CHUNK = 1 << 16  # pairs that are evaluated at a time
TOLERANCE = 1e-6


class FunctionSolution(NamedTuple):
    """What value iteration found without a table."""

    v: np.ndarray
    """[S], within ``bound`` of v*."""
    policy: np.ndarray
    """[S], greedy."""
    bound: float
    """A proven bound on ‖v − v*‖∞."""
    iterations: int
    """The number of sweeps."""
    converged: bool
    """Whether the bound is within the tolerance."""

    def __repr__(self) -> str:
        reached = "" if self.converged else ", tolerance NOT reached"
        return (
            f"FunctionSolution({len(self.v)} states, {self.iterations} sweeps, "
            f"mean value {self.v.mean():.6g}, within {self.bound:.2g}{reached})"
        )


class FunctionMDP:
    """An MDP whose rows are computed where they are needed."""

    def __init__(
        self,
        states: int,
        actions: int,
        successors: Rows,
        discount: float,
        *,
        vectorised: bool = False,
    ) -> None:
        """See `FiniteMDP.from_function`; the function is tried at the first states."""
        check_count("states", states)
        check_count("actions", actions)
        check_discount(np.asarray(discount, float))
        self.states, self.actions, self.discount = states, actions, float(discount)
        self.function, self.vectorised = successors, vectorised
        s = np.arange(min(states, 4), dtype=np.int32)
        first = self.rows(s, np.zeros(len(s), np.int32))
        self.branching = first[0].shape[1]

    def __repr__(self) -> str:
        return (
            f"FunctionMDP({self.states} states, {self.actions} actions, "
            f"{self.branching} successors, discount {self.discount:g})"
        )

    def rows(self, s: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The function at pairs s [n], a [n]: [n, B], [n, B], [n]; their shapes are checked."""
        try:
            if self.vectorised:
                found = self.function(s, a)
            else:
                import jax

                with jax.enable_x64(True):
                    found = _mapped(self.function)(s, a)
            to, p, r = (np.asarray(x) for x in found)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"successors: the function fails: {error}") from None
        n = len(s)
        if to.dtype.kind not in "iu" or to.ndim != 2 or p.shape != to.shape or len(to) != n:
            raise UserError(
                f"successors: shapes {to.shape} of {to.dtype} and {p.shape} for {n} pairs, "
                "expected integers and probabilities [B] of each"
            )
        if r.shape != (n,):
            raise UserError(f"successors: rewards of shape {r.shape}, expected a number for each")
        return to, p, r

    def _chunks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """All states, some at a time, and the pairs (s, a) of these."""
        step = max(1, _CHUNK // self.actions)
        for begin in range(0, self.states, step):
            some = np.arange(begin, min(begin + step, self.states), dtype=np.int32)
            actions = np.tile(np.arange(self.actions, dtype=np.int32), len(some))
            yield some, np.repeat(some, self.actions), actions

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All rows in memory: successors and probabilities [S, A, B], rewards [S, A]."""
        shape = (self.states, self.actions, self.branching)
        cells = self.states * self.actions
        require(f"{cells:,} pairs (s, a)", memory=cells * (12 * self.branching + 8))
        successors, probabilities = aligned(shape, np.int32), aligned(shape, np.float64)
        rewards = aligned(shape[:2], np.float64)
        for some, s, a in self._chunks():
            to, p, r = self.rows(s, a)
            successors[some] = to.reshape(-1, *shape[1:])
            probabilities[some] = p.reshape(-1, *shape[1:])
            rewards[some] = r.reshape(-1, self.actions)
        return successors, probabilities, rewards

    def solve(
        self, *, tolerance: float = TOLERANCE, iterations: int | None = None
    ) -> FunctionSolution:
        """v* by value iteration, two vectors of values in memory; a proof as for any other MDP."""
        check_tolerance(tolerance)
        most = np.inf if iterations is None else iterations
        require(f"{self.states:,} values", memory=17 * self.states)
        sweep = self._numpy_sweep if self.vectorised else self._compiled_sweep()
        wanted, v, made = Aim(float(tolerance), True), np.zeros(self.states), 0
        limit = np.inf
        while True:
            new, facts = sweep(v)
            self._check(facts)
            # The extremes of v and of the residual are all that `bracket` looks at.
            ends, gaps = np.array(facts[:2]), np.array(facts[2:4])
            found = bracket(ends, gaps, facts.size, self.discount, self.branching)
            made += 1
            if made == 1:
                goal = float(wanted.goal(found.floor))
                limit = 2 * sweeps_needed(float(found.bound), goal, self.discount) + 100
            if found.bound <= wanted.goal(found.floor) or made >= min(most, limit):
                break
            v = new
        del v
        # In NumPy: outside of enable_x64 JAX would add in float32.
        shifted, bound = np.asarray(new) + float(found.shift), float(found.bound)
        policy = np.asarray(facts.policy)
        return FunctionSolution(shifted, policy, bound, made, bound <= tolerance)

    def _check(self, facts: "_Facts") -> None:
        if facts.first_bad >= self.states * self.actions:
            return
        s, a = divmod(int(facts.first_bad), self.actions)
        to, p, r = self.rows(np.array([s], np.int32), np.array([a], np.int32))

        def place(row: int) -> str:
            return f"state {s}, action {a}"

        check_successors(to, self.states, place)
        check_rewards(r, place)
        normalised(p, place)
        raise UserError(f"rewards: state {s}: −inf for every action, expected one it can take")

    def _numpy_sweep(self, v: np.ndarray) -> "tuple[np.ndarray, _Facts]":
        new, policy = np.empty(self.states), np.empty(self.states, _small(self.actions))
        facts = _Facts.none(self.states * self.actions)
        for some, s, a in self._chunks():
            numbers = s.astype(np.int64) * self.actions + a
            top, best, part = _backed_up(self, np, some, numbers, self.rows(s, a), v, v[some])
            new[some], policy[some] = top, best
            facts = facts.joined(part, np)
        return new, facts._replace(policy=policy)

    def _compiled_sweep(self) -> Callable[[Any], Any]:
        import jax

        with jax.enable_x64(True):
            sweep = _sweep(self)

        def call(v: Any) -> Any:
            with jax.enable_x64(True):
                new, facts = sweep(v)
                return new, _Facts(*(x if i == 6 else x.item() for i, x in enumerate(facts)))

        return call


class _Facts(NamedTuple):
    """What a sweep, or a part of it, saw: extremes of v and of T v − v, and the first bad pair."""

    lowest: Any
    highest: Any
    least: Any
    most: Any
    size: Any
    first_bad: Any
    policy: Any = None

    @classmethod
    def none(cls, pairs: int) -> "_Facts":
        return cls(np.inf, -np.inf, np.inf, -np.inf, 0.0, pairs)

    def joined(self, other: "_Facts", xp: Any) -> "_Facts":
        return _Facts(
            xp.minimum(self.lowest, other.lowest),
            xp.maximum(self.highest, other.highest),
            xp.minimum(self.least, other.least),
            xp.maximum(self.most, other.most),
            xp.maximum(self.size, other.size),
            xp.minimum(self.first_bad, other.first_bad),
        )


def _small(actions: int) -> Any:
    return np.uint8 if actions <= 256 else np.int32


def _backed_up(
    mdp: FunctionMDP, xp: Any, states: Any, pairs: Any, rows: Any, v: Any, own: Any
) -> tuple[Any, Any, _Facts]:
    """T v and its greedy actions at some states, and what was seen; ``own`` is v there.

    Rows that miss one slightly are normalised; ``pairs`` are the numbers of the rows, s·A + a.
    """
    to, p, r = rows
    inside = ((to >= 0) & (to < mdp.states)).all(-1)
    total = p.sum(-1)
    absent = r == -np.inf
    good = inside & (p >= 0).all(-1) & (xp.abs(total - 1) <= ROW_TOLERANCE) & (r < np.inf)
    good = good | absent
    safe = xp.where(good & ~absent, total, 1.0)
    step = (p * v[xp.clip(to, 0, mdp.states - 1)]).sum(-1) / safe
    q = xp.where(absent, -np.inf, r + mdp.discount * step).reshape(-1, mdp.actions)
    top = q.max(-1)
    bad = xp.where(good, mdp.states * mdp.actions, pairs).min()
    empty = xp.where(
        absent.reshape(q.shape).all(-1), states * mdp.actions, mdp.states * mdp.actions
    )
    seen = _Facts(
        own.min(),
        own.max(),
        (top - own).min(),
        (top - own).max(),
        xp.where(absent, 0.0, xp.abs(r)).max(),
        xp.minimum(bad, empty.min()),
    )
    return top, q.argmax(-1).astype(_small(mdp.actions)), seen


def _mapped(function: Rows) -> Any:
    import jax
    import jax.numpy as jnp

    def one(s: Any, a: Any) -> Any:
        to, p, r = function(s, a)
        return jnp.asarray(to), jnp.asarray(p, float), jnp.asarray(r, float)

    return jax.jit(jax.vmap(one))


def _sweep(mdp: FunctionMDP) -> Any:
    """A compiled sweep over all states, a chunk at a time: v [S] to T v [S] and what it saw."""
    import jax
    import jax.numpy as jnp

    size = max(1, min(_CHUNK // mdp.actions, mdp.states))
    actions = jnp.arange(mdp.actions, dtype=jnp.int32)

    @jax.jit
    def sweep(v: Any) -> Any:
        def part(carry: Any, i: Any) -> Any:
            new, policy, facts = carry
            # The last chunk begins earlier: its first states are computed twice, to the same.
            begin = jnp.minimum(i * size, mdp.states - size)
            s = begin + jnp.arange(size)
            pairs = jnp.repeat(s.astype(jnp.int32), mdp.actions), jnp.tile(actions, size)
            found = _mapped(mdp.function)(*pairs)
            numbers = (s[:, None] * mdp.actions + actions).reshape(-1)
            own = jax.lax.dynamic_slice(v, (begin,), (size,))
            top, best, seen = _backed_up(mdp, jnp, s, numbers, found, v, own)
            new = jax.lax.dynamic_update_slice(new, top, (begin,))
            policy = jax.lax.dynamic_update_slice(policy, best, (begin,))
            return (new, policy, facts.joined(seen, jnp)), None

        none = _Facts(*(jnp.asarray(x) for x in _Facts.none(mdp.states * mdp.actions)[:6]))
        start = (jnp.zeros(mdp.states), jnp.zeros(mdp.states, _small(mdp.actions)), none)
        chunks = jnp.arange(-(-mdp.states // size))
        (new, policy, facts), _ = jax.lax.scan(part, start, chunks)
        return new, facts._replace(policy=policy)

    return sweep
