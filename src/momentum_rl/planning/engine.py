"""The one update of every scheme on tables, and what it reads at the successors.

An iteration (`update`) evaluates each target of an algorithm at every (s, a). The exact and the
sampled scheme differ in one thing only, the ``read`` they are given: what v(s') becomes for (s, a),
its expectation over the successors (`exactly`) or its value at sampled ones (`Sampler.read`).
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.core.algorithm import Algorithm, Target
from momentum_rl.core.catalogue import label, options_of
from momentum_rl.core.options import Options, algorithm_of
from momentum_rl.core.schedules import Mean, Schedule
from momentum_rl.core.soft import Real, soft_policy
from momentum_rl.core.targets import evaluation
from momentum_rl.errors import UserError, door
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import DeviceMDP, expected, masked, on_device, take, thresholds

Tables = Mapping[str, Array]  # by name, [L, N, A, …]: the newest first, then the L − 1 before it
_UNROLLED = 32  # actions up to which each is written out in the compiled code
Read = Callable[[Array], Array]  # v [N, …] to what (s, a) sees of it, [N, A, …]


class Scheme(NamedTuple):
    """An algorithm with its schedule β_k; hashable, so that compiled code can depend on it."""

    algorithm: Algorithm
    beta: Schedule

    def rate(self, k: Array | int) -> Real:
        """β at iteration k = 1, 2, …"""
        rate = self.beta(k - 1 + self.algorithm.tabular.first_beta)
        assert not isinstance(rate, np.ndarray)  # k is a number or JAX's
        return rate


@door
def scheme(which: str | Algorithm | Options, beta: Schedule | None = None) -> Scheme:
    """The scheme of a label, of some options, or of any algorithm; β_k = k/(k+1) for the last.

    ``beta`` is another schedule for MoVI, SQL and algorithms of one's own.
    """
    if isinstance(which, Algorithm):
        return Scheme(which, Mean() if beta is None else beta)
    options = options_of(which)
    if not options.takes_beta or beta is None:
        beta = options.schedule()
    elif options.schedule() != Mean():
        raise UserError(f"beta: {beta}, but the scheme {label(options)} has one of its own")
    return Scheme(algorithm_of(options), beta)


def check_affine(algorithm: Algorithm, samples: int) -> None:
    """Raises unless values can be averaged over successors, where an update has to.

    An exact one (``samples = 0``) does, and one from several samples.
    """
    for name in algorithm.targets:
        if samples != 1 and not algorithm.kind(name).affine:
            raise UserError(
                f"scheme: {algorithm.name} has values of the kind {algorithm.kind(name)}, whose "
                "mean over successors is not defined; expected one sample per (s, a)"
            )


def start(algorithm: Algorithm, states: int, actions: int) -> dict[str, Array]:
    """All tables at zero: h_0 = q_0 = 0, and q_{−1} = q_0 where a scheme looks two back."""
    return {
        name: jnp.broadcast_to(
            jnp.asarray(zero := algorithm.kind(name).zero(), jnp.float64),
            (algorithm.lags, states, actions, *zero.shape),
        )
        for name in algorithm.targets
    }


def preference(algorithm: Algorithm, tables: Tables) -> Array:
    """What the policy is read from, [N, A]."""
    name = algorithm.preference
    return algorithm.kind(name).expectation(tables[name][0])


def greedy(algorithm: Algorithm, tables: Tables) -> Array:
    """π = G(the table that the policy is read from), [N]; the first of equal actions."""
    return jnp.argmax(preference(algorithm, tables), -1)


def policy(algorithm: Algorithm, tables: Tables) -> Array:
    """The policy: actions [N] of a greedy one, probabilities [N, A] of a soft one."""
    if isinstance(algorithm.tabular.temperature, float) and algorithm.tabular.temperature == 0:
        return greedy(algorithm, tables)
    return soft_policy(preference(algorithm, tables), algorithm.tabular.temperature)


def bootstraps(
    algorithm: Algorithm, tables: Tables, names: Collection[str] | None = None
) -> dict[str, Any]:
    """What each target (of these names) reads at a state, for every state: a pytree of [N, …]."""
    return {
        name: jax.vmap(lambda rows, of=target: of.bootstrap(algorithm.at(rows)), in_axes=1)(
            dict(tables)
        )
        for name, target in algorithm.targets.items()
        if names is None or name in names
    }


def _backups(
    algorithm: Algorithm, tables: Tables, seen: Mapping[str, Any], mdp: DeviceMDP, beta: Real
) -> dict[str, Array]:
    """Each target at every (s, a), [N, A, …], given what it sees of its successors ([N, A, …]).

    Only the targets that ``seen`` names.
    """
    states, actions = mdp.rewards.shape
    discount = jnp.broadcast_to(mdp.discount[:, 0], (states,))
    result = {}
    for name in seen:

        def backup(rows: Any, *rest: Any, of: Target = algorithm.targets[name]) -> Array:
            return of.backup(algorithm.at(rows), *rest)

        # One action at a time, below: an evaluation does not read it, and gains nothing by that.
        if actions > _UNROLLED or algorithm.targets[name].backup is evaluation:
            over_actions = jax.vmap(backup, in_axes=(None, 0, 0, None, 0, None))
            result[name] = jax.vmap(over_actions, in_axes=(1, None, 0, 0, 0, None))(
                dict(tables), jnp.arange(actions), mdp.rewards, discount, seen[name], beta
            )
            continue
        # One action at a time: with a constant `a`, a table's entry is a slice and not a gather.
        columns = [
            jax.vmap(backup, in_axes=(1, None, 0, 0, 0, None))(
                dict(tables),
                a,
                mdp.rewards[:, a],
                discount,
                jax.tree.map(lambda v, a=a: v[:, a], seen[name]),
                beta,
            )
            for a in range(actions)
        ]
        result[name] = jnp.stack(columns, 1)
    return masked(mdp, result)


class Update(NamedTuple):
    """One iteration, and what it was made of; dictionaries by the name of a table."""

    read: dict[str, Any]
    """What its target reads at every state, a pytree of [N, …]."""
    seen: dict[str, Any]
    """What (s, a) sees of that at its successors, a pytree of [N, A, …]."""
    new: dict[str, Array]
    """Its target at every (s, a), [N, A, …]."""
    tables: dict[str, Array]
    """The tables after the iteration, [L, N, A, …]."""


def update(algorithm: Algorithm, tables: Tables, read: Read, mdp: DeviceMDP, beta: Real) -> Update:
    """One iteration of an algorithm on its tables, with the rate β."""
    now = _held(algorithm, tables, read, mdp, beta)
    here = bootstraps(algorithm, now)
    seen = jax.tree.map(read, here)
    new = _backups(algorithm, now, seen, mdp, beta)
    # The new tables in front; the oldest copies fall off.
    after = {name: jnp.concatenate([new[name][None], tables[name][:-1]]) for name in tables}
    return Update(here, seen, new, after)


def iterate(
    scheme: Scheme, tables: Tables, read: Read, mdp: DeviceMDP, k: Array | int
) -> dict[str, Array]:
    """The tables after iteration k of a scheme."""
    return update(scheme.algorithm, tables, read, mdp, scheme.rate(k)).tables


def state_values(algorithm: Algorithm, read: Mapping[str, Any]) -> Array:
    """The estimate of v in what targets read or see: the first number of the value's target."""
    first = jax.tree.leaves(read[algorithm.value_table])[0]
    return algorithm.kind(algorithm.value_table).expectation(first)


def _held(algorithm: Algorithm, tables: Tables, read: Read, mdp: DeviceMDP, beta: Real) -> Tables:
    """The tables with the value after all evaluations of an iteration's policy but the last.

    The samples are held, too: m sweeps are (T̂_π)^m. None are as many as change q: γ^j falls to
    rounding after 40 / (1 − γ) of them at the latest.
    """
    if algorithm.tabular.sweeps == 1:
        return tables
    name = algorithm.value_table

    def with_value(q: Array) -> Tables:
        return {**tables, name: jnp.concatenate([q[None], tables[name][1:]])}

    def sweep(q: Array) -> Array:
        now = with_value(q)
        seen = jax.tree.map(read, bootstraps(algorithm, now, [name]))
        return _backups(algorithm, now, seen, mdp, beta)[name]

    q = tables[name][0]
    if algorithm.tabular.sweeps is not None:
        return with_value(jax.lax.fori_loop(1, algorithm.tabular.sweeps, lambda _, q: sweep(q), q))

    def moving(carry: Any) -> Array:
        _, change, size, n = carry
        return (change > 2.0**-51 * size) & (n < 40 / (1 - jnp.max(mdp.discount)))

    def again(carry: Any) -> Any:
        q, _, _, n = carry
        new = sweep(q)
        present = new > -jnp.inf
        change, size = (jnp.max(jnp.where(present, jnp.abs(x), 0.0)) for x in (new - q, new))
        return new, change, size, n + 1

    return with_value(jax.lax.while_loop(moving, again, (q, jnp.inf, 0.0, 0))[0])


def exactly(mdp: DeviceMDP) -> Read:
    """Read the expectation over the successors."""
    return _each_entry(lambda v: expected(mdp.successors, mdp.probabilities, v))


def from_samples(successors: Array) -> Read:
    """Read the mean over sampled successors, [m, N, A]; the mean target, as targets are affine."""
    return _each_entry(lambda v: jnp.mean(jax.vmap(take, in_axes=(None, 0))(v, successors), 0))


def _each_entry(read: Read) -> Read:
    """The same for values of several entries, [N, n] to [N, A, n]."""
    return lambda v: read(v) if v.ndim == 1 else jax.vmap(read, in_axes=-1, out_axes=-1)(v)


# Sampling ----------------------------------------------------------------------------------------


class Sampler(NamedTuple):
    """MDPs on the device, and what draws their successors."""

    mdp: DeviceMDP
    """One MDP, or the disjoint union of many."""
    limits: Array
    """The `thresholds` of each (s, a), int32 [N, A, B − 1]."""
    keys: Array
    """A key per member, [members]."""

    def read(self, k: Array, samples: int) -> Read:
        """How iteration k reads: the mean of this many samples, or with 0 the exact expectation."""
        if not samples:
            return exactly(self.mdp)
        return from_samples(sample(self.mdp, self.limits, self.keys, k, samples))

    def per_member(self, x: Array) -> Array:
        """[N, …] as [members, S, …]."""
        return x.reshape(self.keys.shape[0], -1, *x.shape[1:])


def sampler(mdps: FiniteMDP, keys: Array, copies: int = 1) -> Sampler:
    """An MDP or the MDPs of a batch, each ``copies`` times, with a key per copy (`member_keys`)."""
    device = on_device(mdps, copies)
    limits = thresholds(mdps).reshape(mdps.batch or 1, -1)
    limits = np.repeat(limits, copies, 0) if copies > 1 else limits
    shape = (*device.rewards.shape, mdps.branching - 1)
    return Sampler(device, jax.device_put(limits.reshape(shape)), keys)


def member_keys(seed: int, members: int, copies: int = 1) -> Array:
    """A key per member of a union, from (seed, MDP, copy) alone: independent of any chunking."""
    root = jax.random.key(seed)
    return jax.vmap(
        lambda i: jax.random.fold_in(jax.random.fold_in(root, i // copies), i % copies)
    )(jnp.arange(members * copies))


def sample(mdp: DeviceMDP, limits: Array, keys: Array, k: Array, samples: int) -> Array:
    """s' ~ P(·|s, a) for every (s, a), ``samples`` times, [m, N, A], at iteration k.

    The numbers depend on the member's key and k alone. They have 31 bits, which are compared as
    integers (twice as fast as doubles): a probability is met to within 2⁻³¹.
    """
    states, actions, branching = mdp.successors.shape
    members = keys.shape[0]
    shape = (samples, states // members, actions)

    def bits(key: Array) -> Array:
        return jax.random.bits(jax.random.fold_in(key, k), shape, jnp.uint32)

    number = (jax.vmap(bits, out_axes=1)(keys) >> 1).astype(jnp.int32)
    number = number.reshape(samples, states, actions)
    if branching > 32:
        slot = jnp.sum(number[..., None] > limits, -1)
        one = jax.vmap(lambda i: jnp.take_along_axis(mdp.successors, i[..., None], -1)[..., 0])
        return one(slot)
    chosen = jnp.broadcast_to(mdp.successors[..., 0], number.shape)
    for b in range(1, branching):
        chosen = jnp.where(number > limits[..., b - 1], mdp.successors[..., b], chosen)
    return chosen
