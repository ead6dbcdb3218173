"""What a value is: a number, a distribution on fixed atoms, or quantiles.

Targets are written with four operations, and so are written once for every kind. A value is an
array [..., *shape]; ``shape`` is () for a number and (n,) for the other two.

    ``expectation(x)``               its mean, [...]: what a policy compares
    ``backup(r, discount, x)``       the value of r + γ X
    ``mixture(beta, x, y)``          β x + (1 − β) y
    ``distance(output, y, loss)``    how far a network's output is from the target y, [...]

A table holds values; a network gives *outputs*, of which ``read`` makes values: logits become
probabilities, everything else is taken as it is. A target is never an output.

``read`` and ``distance`` are for the networks of this package; the other three, of which targets
are made, are for arrays of JAX, NumPy and PyTorch alike.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from momentum_rl.core.arrays import Array, constant, library, product
from momentum_rl.core.soft import Real
from momentum_rl.errors import UserError
from momentum_rl.plumbing.reading import checked

Loss = Callable[[Array], Array]  # of an error, elementwise


class ValueKind(Protocol):
    """A kind of value; see the module's text."""

    affine: ClassVar[bool]
    """Whether the value of a mixture of successors is the mean of their values, as the exact update
    of a table needs it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The trailing axes of a value."""

    def zero(self) -> np.ndarray:
        """The value of nothing: 0 for sure."""

    def read(self, output: Any) -> Array:
        """The value that a network's output means."""

    def expectation(self, x: Array) -> Array:
        """The mean."""

    def backup(self, r: Real, discount: Real, x: Array) -> Array:
        """The value of r + γ X."""

    def mixture(self, beta: Real, x: Array, y: Array) -> Array:
        """β x + (1 − β) y."""

    def distance(self, output: Array, y: Array, loss: Loss) -> Array:
        """How far a network's output is from a target."""


class _Entries:
    """Values that a network gives as they are, and that are backed up entry by entry."""

    def read(self, output: Any) -> Array:
        """The output is the value."""
        return output

    def backup(self, r: Real, discount: Real, x: Array) -> Array:
        """r + γ x, entry by entry."""
        return r + discount * x

    def mixture(self, beta: Real, x: Array, y: Array) -> Array:
        """β x + (1 − β) y, entry by entry."""
        return beta * x + (1 - beta) * y


@dataclass(frozen=True)
class Number(_Entries):
    """One number: the expected return."""

    affine: ClassVar[bool] = True
    shape: ClassVar[tuple[int, ...]] = ()

    def zero(self) -> np.ndarray:
        """0."""
        return np.zeros(())

    def expectation(self, x: Array) -> Array:
        """Itself."""
        return x

    def distance(self, output: Array, y: Array, loss: Loss) -> Array:
        """The loss of the error."""
        return loss(output - y)


@dataclass(frozen=True)
class Categorical(_Entries):
    """Probabilities of n atoms, evenly spaced from ``low`` to ``high`` (Bellemare et al. 2017).

    >>> two = Categorical(0.0, 4.0, 5)
    >>> two.backup(1.0, 0.5, np.array([0.0, 0.0, 0.0, 1.0, 0.0])).tolist()  # 1 + 0.5 · 3 = 2.5
    [0.0, 0.0, 0.5, 0.5, 0.0]
    """

    low: float
    """The first atom."""
    high: float
    """The last."""
    n: int = 51
    """How many there are."""
    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not -np.inf < self.low < self.high < np.inf:
            raise UserError(f"atoms: from {self.low} to {self.high}, expected low < high")
        if self.n < 2:
            raise UserError(f"atoms: {self.n}, expected at least 2")

    @property
    def shape(self) -> tuple[int, ...]:
        """One probability for each atom."""
        return (self.n,)

    @property
    def atoms(self) -> np.ndarray:
        """z, [n]."""
        return np.linspace(self.low, self.high, self.n)

    def zero(self) -> np.ndarray:
        """All mass at 0, split between the atoms beside it."""
        return np.asarray(_triangles(np.zeros(1), self)[:, 0])

    def read(self, output: Any) -> Array:
        """The probabilities of logits."""
        import jax

        return jax.nn.softmax(output)

    def expectation(self, x: Array) -> Array:
        """⟨z, x⟩."""
        return product(x, constant(self.atoms, x))

    def backup(self, r: Real, discount: Real, x: Array) -> Array:
        """Φ(r + γ z; x): each atom's mass, moved and split between the two atoms beside it.

        Mass that leaves the support goes to its end; ``clipped`` says how much.
        """
        return product(_triangles(r + discount * constant(self.atoms, x), self), x)

    def clipped(self, r: Real, discount: Real, x: Array) -> Array:
        """The share of the mass of r + γ X that is outside the support."""
        xp, moved = library(x), r + discount * constant(self.atoms, x)
        slack = 1e-4 * (self.high - self.low) / (self.n - 1)  # an atom that rounding moved is in
        return xp.sum(xp.where((moved < self.low - slack) | (moved > self.high + slack), x, 0))

    def distance(self, output: Array, y: Array, loss: Loss) -> Array:
        """The cross-entropy −Σ y ln softmax(output); ``loss`` is for numbers and not used."""
        del loss
        import jax

        return -(y * jax.nn.log_softmax(output)).sum(-1)


def _triangles(points: Any, value: Categorical) -> Array:
    """[n, m]: the share of each of m points that each of n atoms takes; columns sum to 1."""
    width = (value.high - value.low) / (value.n - 1)
    xp, atoms = library(points), constant(np.arange(value.n), points)
    places = (xp.clip(points, value.low, value.high) - value.low) / width
    return xp.clip(1 - abs(places[None, :] - atoms[:, None]), 0, None)


@dataclass(frozen=True)
class Quantile(_Entries):
    """The quantiles at the midpoints (i + ½)/n of the levels (Dabney et al. 2018)."""

    n: int = 200
    """How many there are."""
    affine: ClassVar[bool] = False  # a mixture's quantiles are not the mean of the quantiles

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UserError(f"quantiles: {self.n}, expected at least 1")

    @property
    def shape(self) -> tuple[int, ...]:
        """One number for each level."""
        return (self.n,)

    def zero(self) -> np.ndarray:
        """0 at every level."""
        return np.zeros(self.n)

    def expectation(self, x: Array) -> Array:
        """Their mean."""
        return library(x).mean(x, axis=-1)

    def distance(self, output: Array, y: Array, loss: Loss) -> Array:
        """Σ_i mean_j |τ_i − 1{y_j < output_i}| Huber(y_j − output_i): quantile regression.

        Another ``loss`` would make something else of quantiles: it is for numbers and not used.
        """
        del loss
        import jax
        import jax.numpy as jnp

        levels = (np.arange(self.n) + 0.5) / self.n
        errors = y[..., None, :] - output[..., :, None]
        weights = jnp.abs(levels.astype(output.dtype)[:, None] - (errors < 0))
        small = jnp.minimum(jnp.abs(errors), 1)
        huber = small * (jnp.abs(errors) - small / 2)
        return jnp.sum(jnp.mean(jax.lax.stop_gradient(weights) * huber, -1), -1)


NUMBER = Number()

KINDS: dict[str, type[Any]] = {"number": Number, "categorical": Categorical, "quantile": Quantile}


def to_json(value: Any) -> dict[str, Any]:
    """A kind of value as data of JSON's types.

    >>> from_json(to_json(Categorical(-10.0, 10.0))) == Categorical(-10.0, 10.0, 51)
    True
    """
    name = next(name for name, kind in KINDS.items() if isinstance(value, kind))
    return {"kind": name, **asdict(value)}


def from_json(data: dict[str, Any], name: str = "value") -> Any:
    """The inverse of ``to_json``, whatever the data are."""
    kind = KINDS.get(str(data.get("kind")))
    if kind is None:
        raise UserError(f"{name}: {data.get('kind')!r}, expected one of {', '.join(KINDS)}")
    return checked(data, kind, name)
