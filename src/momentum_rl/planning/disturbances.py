"""Errors that a scheme on tables is given: ε_k of its value, and η_k of its average.

An approximation makes errors that sampling does not. Here they are given, or drawn:

    q_k = T_{π_k} q_{k−1} + ε_k,    h_k = β_k h_{k−1} + (1 − β_k) q_k + η_k,    h_0 = q_0 + η_0.

ε_k is added to the rewards of iteration k: in every scheme a target adds the reward once, so the
errors are those of q for AVI and MoVI and those of ψ for SQL and DPP, as the theory has them.

Drawn errors have a size σ and a correlation c from one iteration to the next,
e_k = c e_{k−1} + √(1 − c²) σ z_k: independent ones have c = 0, a bias is the same in every
iteration, c = 1.

>>> Errors.read("ar1:0.1:0.9")
Errors(size=0.1, correlation=0.9, heavy=False)
>>> Errors.read("uniform:1")
Traceback (most recent call last):
momentum_rl.errors.UserError: errors: 'uniform:1', expected gaussian:SIZE, bias:SIZE, ...
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.core.values import NUMBER
from momentum_rl.errors import UserError
from momentum_rl.mdp.checks import check_shape, floats
from momentum_rl.planning.engine import Read, Sampler, Scheme, Update, update

KINDS = "gaussian:SIZE, bias:SIZE, heavy-tailed:SIZE or ar1:SIZE:CORRELATION"
_PURPOSE = np.uint32(2**32 - 1)  # no iteration: draws of errors share no key with samples


@dataclass(frozen=True)
class Errors:
    """Errors that are drawn, independently for each (s, a)."""

    size: float
    """σ: the standard deviation, or the scale of heavy-tailed ones."""
    correlation: float = 0.0
    """From one iteration to the next; 1 is a bias."""
    heavy: bool = False
    """Student's t with 1.5 degrees of freedom, which has a mean and no variance."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.size) and self.size >= 0 and 0 <= self.correlation <= 1):
            raise UserError(f"errors: {self}, expected a size ≥ 0 and a correlation in [0, 1]")

    @classmethod
    def read(cls, text: str, name: str = "errors") -> "Errors":
        """What a text such as ``gaussian:0.1`` means; ``name`` is what it is given as."""
        kind, *parts = text.split(":")
        try:
            numbers = [float(part) for part in parts]
            if kind == "ar1":
                size, correlation = numbers
                return cls(size, correlation)
            (size,) = numbers
            made = {
                "gaussian": cls(size),
                "bias": cls(size, 1.0),
                "heavy-tailed": cls(size, 0, True),
            }
            return made[kind]
        except (ValueError, KeyError):
            raise UserError(f"{name}: {text!r}, expected {KINDS}") from None

    def drawn(self, key: Array, shape: tuple[int, ...], before: Array, first: Array) -> Array:
        """The next errors, given those before; ``first`` where there are none before."""
        z = jax.random.t(key, 1.5, shape) if self.heavy else jax.random.normal(key, shape)
        c = jnp.where(first, 0.0, self.correlation)
        return c * before + jnp.sqrt(1 - c**2) * self.size * z


Given = str | Errors | np.ndarray | Callable[[Any, Mapping[str, Array]], Array] | None
"""Errors as a caller gives them: a text or ``Errors``, drawn; an array [K, M, S, A] of ε_1..ε_K,
or [K + 1, M, S, A] of η_0..η_K; or a function of k and of the tables [M, S, A] before, by name, in
JAX. None is no errors."""


@partial(jax.tree_util.register_dataclass, data_fields=("values",), meta_fields=("how",))
@dataclass(frozen=True)
class Source:
    """Where the errors of one table come from."""

    how: Errors | Callable[[Any, Mapping[str, Array]], Array] | None
    """How they are made; None if ``values`` has them."""
    values: Array | np.ndarray | None
    """[iterations, N, A], or None."""


Carried = tuple[Array | None, Array | None]  # ε_k and η_k, where there are any


class Disturbances(NamedTuple):
    """The errors of a run."""

    value: Source | None = None
    average: Source | None = None


def disturbances(
    mdps: Any, iterations: int, errors: Given = None, average_errors: Given = None
) -> Disturbances:
    """The errors that are asked for, checked, for a run on a batch of MDPs."""
    shape = mdps.as_batch().rewards.shape
    return Disturbances(
        _source("errors", errors, (iterations, *shape)),
        _source("average_errors", average_errors, (iterations + 1, *shape)),
    )


def _source(name: str, given: Given, shape: tuple[int, ...]) -> Source | None:
    if given is None:
        return None
    if isinstance(given, str):
        given = Errors.read(given, name)
    if isinstance(given, Errors) or callable(given):
        return Source(given, None)
    values = floats(name, given)
    check_shape(name, values, shape)
    if not np.isfinite(values).all():
        raise UserError(f"{name}: not all finite, expected finite numbers")
    return Source(None, values.reshape(shape[0], -1, shape[-1]))


def check_average(schemes: tuple[Scheme, ...], given: Given) -> None:
    """Raises if no scheme has an average for the errors that are given."""
    if given is not None and not any(averages(one) for one in schemes):
        names = ", ".join(one.algorithm.name for one in schemes)
        raise UserError(f"average_errors: {names}, expected a scheme with an average, such as movi")


def averages(scheme: Scheme) -> bool:
    """Whether the policy of a scheme is read from an average, a table of numbers."""
    algorithm = scheme.algorithm
    name = algorithm.preference
    return name != algorithm.value_table and algorithm.kind(name) == NUMBER


def disturbed_start(
    scheme: Scheme, tables: dict[str, Array], mdps: Sampler, errors: Disturbances
) -> tuple[dict[str, Array], Carried]:
    """The tables with η_0 in the average, and what is carried on."""
    shape = mdps.mdp.rewards.shape
    value, average = None if errors.value is None else jnp.zeros(shape), None
    if errors.average is not None and averages(scheme):
        average = _now(errors.average, 1, mdps, tables, jnp.zeros(shape), jnp.asarray(0), 0)
        tables = _averaged(scheme, tables, average)
    return tables, (value, average)


def disturbed_update(
    scheme: Scheme,
    tables: dict[str, Array],
    read: Read,
    mdps: Sampler,
    k: Array,
    errors: Disturbances,
    before: Carried,
) -> tuple[Update, Carried]:
    """Iteration k with its errors; and what is carried on, (ε_k, η_k)."""
    (value, average), mdp = before, mdps.mdp
    if errors.value is not None and value is not None:
        value = _now(errors.value, 0, mdps, tables, value, k, 1)
        mdp = mdp._replace(rewards=mdp.rewards + value)
    done = update(scheme.algorithm, tables, read, mdp, scheme.rate(k))
    if errors.average is not None and average is not None:
        average = _now(errors.average, 1, mdps, tables, average, k, 0)
        done = done._replace(tables=_averaged(scheme, done.tables, average))
    return done, (value, average)


def _averaged(scheme: Scheme, tables: dict[str, Array], errors: Array) -> dict[str, Array]:
    name = scheme.algorithm.preference
    return {**tables, name: tables[name].at[0].add(errors)}


def _now(
    source: Source,
    purpose: int,
    mdps: Sampler,
    tables: Mapping[str, Array],
    before: Array,
    k: Array,
    first: int,
) -> Array:
    """The errors of iteration k, [N, A]; the first ones are those of iteration ``first``."""
    if source.values is not None:
        return jnp.asarray(source.values)[k - first]
    if isinstance(source.how, Errors):
        drawn = source.how.drawn

        def of_member(key: Array, before: Array) -> Array:
            key = jax.random.fold_in(jax.random.fold_in(key, _PURPOSE - purpose), k)
            return drawn(key, before.shape, before, k == first)

        return jax.vmap(of_member)(mdps.keys, mdps.per_member(before)).reshape(before.shape)
    assert source.how is not None
    now = source.how(k, {name: mdps.per_member(table[0]) for name, table in tables.items()})
    expected = mdps.per_member(before).shape
    if jnp.shape(now) != expected:
        raise UserError(f"errors: a function's {jnp.shape(now)}, expected an array {expected}")
    return jnp.asarray(now, float).reshape(before.shape)
