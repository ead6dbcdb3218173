"""MDPs from a function ``successors(s, a) → (s'[B], p[B], r)``, stored or evaluated in every sweep.

The function takes scalars and can be compiled by JAX, or it takes NumPy arrays s [n] and a [n] and
gives [n, B], [n, B] and [n] (``vectorised=True``). A reward of −inf is an action that a state does
not have. Every row is checked, stored or not; the first offending (s, a) is named.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from momentum_rl.errors import UserError, check_count
from momentum_rl.mdp.certificates import (
    Aim,
    backup_rounding,
    bracket,
    check_tolerance,
    sweeps_needed,
)
from momentum_rl.mdp.checks import (
    check_discount,
    check_rewards,
    check_successors,
    normalised,
    row_tolerance,
)
from momentum_rl.mdp.memory import aligned
from momentum_rl.plumbing.sizes import available_cores, require

Rows = Callable[[Any, Any], tuple[Any, Any, Any]]
_CHUNK = 1 << 16  # pairs that are evaluated at a time
_BLOCK = 1 << 19  # states that one thread sweeps at a time
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
        found = f"{self.iterations} sweeps, mean value {self.v.mean():.6g}"
        return f"FunctionSolution({len(self.v)} states, {found}, within {self.bound:.2g}{reached})"


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
        self.branching = 0  # until the first rows tell
        s = np.arange(min(states, 4), dtype=np.int32)
        first = self.rows(s, np.zeros(len(s), np.int32))
        self.branching = first[0].shape[1]

    def __repr__(self) -> str:
        return (
            f"FunctionMDP({self.states} states, {self.actions} actions, "
            f"{self.branching} successors, discount {self.discount:g}, not stored)"
        )

    @property
    def batch(self) -> None:
        """What wants a table asks for this first."""
        raise UserError("mdp: a function that is not stored, expected store=True")

    @cached_property
    def _compiled(self) -> Any:
        return _mapped(self.function)

    def rows(self, s: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The function at pairs s [n], a [n]: [n, B], [n, B], [n]; their shapes are checked."""
        try:
            if self.vectorised:
                found = self.function(s, a)
            else:
                import jax

                with jax.enable_x64(True):
                    found = self._compiled(s, a)
            to, p, r = (np.asarray(x) for x in found)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"successors: the function fails: {error}") from None
        n = len(s)
        fits = to.ndim == 2 and p.shape == to.shape and len(to) == n and to.size
        if to.dtype.kind not in "iu" or not fits:
            raise UserError(
                f"successors: shapes {to.shape} of {to.dtype} and {p.shape} for {n} pairs, "
                "expected integers and probabilities [B] of each"
            )
        if r.shape != (n,):
            raise UserError(f"successors: rewards of shape {r.shape}, expected a number for each")
        if to.shape[1] != (self.branching or to.shape[1]):
            raise UserError(
                f"successors: {to.shape[1]} of them from state {s[0]} on, {self.branching} in the "
                "first states, expected as many everywhere"
            )
        return to, p, r

    def _chunks(self) -> range:
        """The first state of every chunk; `_pairs` are what it consists of."""
        return range(0, self.states, max(1, _CHUNK // self.actions))

    def _pairs(self, begin: int) -> tuple[slice, np.ndarray, np.ndarray]:
        """The states of a chunk, and their pairs (s, a)."""
        end = min(begin + self._chunks().step, self.states)
        states = np.arange(begin, end, dtype=np.int32)
        actions = np.tile(np.arange(self.actions, dtype=np.int32), len(states))
        return slice(begin, end), np.repeat(states, self.actions), actions

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All rows in memory: successors and probabilities [S, A, B], rewards [S, A]."""
        shape = (self.states, self.actions, self.branching)
        cells = self.states * self.actions
        require(f"{cells:,} pairs (s, a)", memory=cells * (12 * self.branching + 8))
        successors, probabilities = aligned(shape, np.int32), aligned(shape, np.float64)
        rewards = aligned(shape[:2], np.float64)

        def fill(begin: int) -> None:
            there, s, a = self._pairs(begin)
            to, p, r = self.rows(s, a)
            # Before it is an int32, where it might come to lie within the states again.
            own = np.where(np.isneginf(r)[:, None], s[:, None], to)
            check_successors(own, self.states, lambda row: f"state {s[row]}, action {a[row]}")
            successors[there] = own.reshape(-1, *shape[1:])
            probabilities[there] = p.reshape(-1, *shape[1:])
            rewards[there] = r.reshape(-1, self.actions)

        # A function of Python's own need not bear several threads at a time.
        with ThreadPoolExecutor(1 if self.vectorised else len(available_cores())) as pool:
            list(pool.map(fill, self._chunks()))
        return successors, probabilities, rewards

    def solve(
        self, *, tolerance: float | None = None, iterations: int | None = None
    ) -> FunctionSolution:
        """v* by value iteration, two vectors of values in memory; a proof as for any other MDP."""
        tolerance = TOLERANCE if tolerance is None else tolerance
        check_tolerance(tolerance)
        check_count("iterations", iterations)
        require(f"{self.states:,} values", memory=17 * self.states)
        sweep = self._numpy_sweep if self.vectorised else self._compiled_sweep()
        wanted, v, made = Aim(float(tolerance), True), np.zeros(self.states), 0
        most = np.inf if iterations is None else float(iterations)
        while True:
            new, facts = sweep(v)
            self._check(facts)
            # The extremes of v and of the residual are all that `bracket` looks at.
            ends, gaps = np.array(facts[:2]), np.array(facts[2:4])
            unit = backup_rounding(self.branching) + 2 * facts.missed
            found = bracket(ends, gaps, facts.size, self.discount, unit)
            made += 1
            if made == 1:
                goal = float(wanted.goal(found.floor))
                at_most = sweeps_needed(float(found.bound), goal, self.discount)
                most = min(most, 2 * at_most + 100)
            if found.bound <= wanted.goal(found.floor) or made >= most:
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
        normalised(p, place, np.asarray(self.discount))
        raise UserError(f"rewards: state {s}: −inf for every action, expected one it can take")

    def _numpy_sweep(self, v: np.ndarray) -> "tuple[np.ndarray, _Facts]":
        new, policy = np.empty(self.states), np.empty(self.states, _small(self.actions))
        facts = _Facts.none(self.states * self.actions)
        for begin in self._chunks():
            there, s, a = self._pairs(begin)
            numbers, rows = s.astype(np.int64) * self.actions + a, self.rows(s, a)
            own = s[:: self.actions].astype(np.int64)
            new[there], policy[there], part = _backed_up(self, np, own, numbers, rows, v, v[there])
            facts = facts.joined(part, np)
        return new, facts._replace(policy=policy)

    def _compiled_sweep(self) -> Callable[[np.ndarray], Any]:
        """Blocks of states side by side: XLA runs a loop over chunks on one core."""
        import jax

        size = min(_BLOCK, self.states)
        with jax.enable_x64(True):
            block = _compiled_block(self, size)
        begins = [min(i, self.states - size) for i in range(0, self.states, size)]

        def sweep(v: np.ndarray) -> tuple[np.ndarray, _Facts]:
            new, policy = aligned(v.shape, np.float64), np.empty(self.states, _small(self.actions))
            with jax.enable_x64(True):
                device = jax.device_put(v)  # not copied on a CPU

            def part(begin: int) -> _Facts:
                left = -begin % size  # by the last block, which begins earlier, to its neighbour
                there = slice(begin + left, begin + size)
                with jax.enable_x64(True):
                    *found, facts = block(device, begin)
                    new[there], policy[there] = (np.asarray(array)[left:] for array in found)
                    return _Facts(*(x.item() for x in facts[:7]))

            facts = _Facts.none(self.states * self.actions)
            with ThreadPoolExecutor(len(available_cores())) as pool:
                for seen in pool.map(part, begins):
                    facts = facts.joined(seen, np)
            return new, facts._replace(policy=policy)

        return sweep


class _Facts(NamedTuple):
    """What a sweep, or a part of it, saw: extremes of v and of T v − v, and the first bad pair."""

    lowest: Any
    highest: Any
    least: Any
    most: Any
    size: Any
    missed: Any
    first_bad: Any
    policy: Any = None

    @classmethod
    def none(cls, pairs: int) -> "_Facts":
        return cls(np.inf, -np.inf, np.inf, -np.inf, 0.0, 0.0, pairs)

    def joined(self, other: "_Facts", xp: Any) -> "_Facts":
        low, high = xp.minimum, xp.maximum
        each = zip((low, high, low, high, high, high, low), self, other)
        return _Facts(*(extreme(mine, theirs) for extreme, mine, theirs in each))


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
    total, allowed = p.sum(-1), row_tolerance(p.shape[-1], np.asarray(mdp.discount))
    absent = r == -np.inf
    good = inside & (p >= 0).all(-1) & (xp.abs(total - 1) <= allowed) & (r < np.inf)
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
        xp.abs(safe - 1).max(),
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


def _compiled_block(mdp: FunctionMDP, states: int) -> Any:
    """A compiled sweep over some states, a chunk at a time.

    It takes v [S] and the first of the states; it gives T v at these, greedy actions and facts.
    """
    import jax
    import jax.numpy as jnp

    from momentum_rl.plumbing.compilation import library_takes

    size = max(1, min(_CHUNK // mdp.actions, states))
    actions = jnp.arange(mdp.actions, dtype=jnp.int32)

    def block(v: Any, first: Any) -> Any:
        def part(carry: Any, i: Any) -> Any:
            new, policy, facts = carry
            here = jnp.minimum(i * size, states - size)  # the last chunk begins earlier, too
            begin = first + here
            s = begin + jnp.arange(size)
            pairs = jnp.repeat(s.astype(jnp.int32), mdp.actions), jnp.tile(actions, size)
            found = _mapped(mdp.function)(*pairs)
            numbers = (s[:, None] * mdp.actions + actions).reshape(-1)
            own = jax.lax.dynamic_slice(v, (begin,), (size,))
            top, best, seen = _backed_up(mdp, jnp, s, numbers, found, v, own)
            new = jax.lax.dynamic_update_slice(new, top, (here,))
            policy = jax.lax.dynamic_update_slice(policy, best, (here,))
            return (new, policy, facts.joined(seen, jnp)), None

        none = _Facts(*(jnp.asarray(x) for x in _Facts.none(mdp.states * mdp.actions)[:7]))
        start = (jnp.zeros(states), jnp.zeros(states, _small(mdp.actions)), none)
        chunks = jnp.arange(-(-states // size))
        return jax.lax.scan(part, start, chunks)[0]

    return jax.jit(block, compiler_options=library_takes("nothing"))
