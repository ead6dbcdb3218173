"""More families of MDPs, for benchmarks and tests.

In an inventory states have different actions; a forest is what textbooks solve by hand. Where there
is a closed form, a docstring gives it and a test uses it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from momentum_rl.errors import UserError, check_count, check_fields, check_fraction, check_seed
from momentum_rl.mdp.checks import FIELDS
from momentum_rl.mdp.model import FiniteMDP, adopted
from momentum_rl.plumbing.sizes import require


@dataclass(frozen=True, kw_only=True)
class Family(ABC):
    """What all families have."""

    discount: float = 0.99
    """γ."""
    seed: int = 0
    """Seed of whatever is random in it."""

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def mdp(self) -> FiniteMDP:
        """The MDP."""

    def batch(self, count: int) -> FiniteMDP:
        """Members with seeds ``seed``, ``seed + 1``, …, as a batch."""
        check_count("count", count)
        each = [replace(self, seed=self.seed + i).mdp() for i in range(count)]
        return adopted(*(np.stack([getattr(mdp, name) for mdp in each]) for name in FIELDS))

    def adopt(self, *arrays: np.ndarray, **names: Any) -> FiniteMDP:
        """The MDP of successors, probabilities and rewards."""
        return adopted(*arrays, np.float64(self.discount), **names)

    def check(self, size: int, states: int, entries: int, **shares: float) -> None:
        """Sizes and probabilities, before anything is allocated: ``entries`` per state."""
        check_count("size", size)
        check_seed(self.seed)
        for name, share in shares.items():
            check_fraction(name, share)
        require(f"{states:,} states", memory=2 * states * entries * 12)


@dataclass(frozen=True, kw_only=True)
class Queue(Family):
    """Admission to a queue with room for --size customers.

    Naor (1969), in steps of time: a customer arrives with probability ``arrival`` and is turned
    away or let in, which earns ``reward``; one leaves with probability ``service``; each waiting
    costs ``waiting`` a step. A full queue can only turn away. A threshold is optimal.
    """

    size: int = 10
    """The most customers in the queue."""
    arrival: float = 0.4
    """The probability that a customer arrives in a step."""
    service: float = 0.5
    """The probability that one leaves."""
    reward: float = 5.0
    """Earned for each customer who is let in."""
    waiting: float = 0.1
    """The cost of each waiting customer, per step."""

    def mdp(self) -> FiniteMDP:
        """[size + 1, 2, 4]: turn away, let in."""
        self.check(self.size, self.size + 1, 8, arrival=self.arrival, service=self.service)
        n = np.arange(self.size + 1)
        come = np.array([[0, 0, 0, 0], [0, 1, 0, 1]])  # by action and outcome
        leave = np.array([0, 0, 1, 1])
        p = np.outer([1 - self.service, self.service], [1 - self.arrival, self.arrival]).ravel()
        # First one may leave, then one may come: a step never lets in and out the same customer.
        after = np.maximum(n[:, None, None] - leave, 0) + come
        rewards = -self.waiting * n[:, None] + [0.0, self.arrival * self.reward]
        rewards[-1, 1] = -np.inf
        return self.adopt(
            np.minimum(after, self.size),
            np.broadcast_to(p, after.shape).copy(),
            rewards,
            action_names=["turn away", "let in"],
        )


@dataclass(frozen=True, kw_only=True)
class Replacement(Family):
    """A machine that wears out in --size steps: keep it or replace it.

    Howard, "Dynamic Programming and Markov Processes" (1960), chapter 5; Rust (1987). At wear x it
    costs ``upkeep``·x to keep it, and it wears by one with probability ``wear``; it costs
    ``price`` to have a new one in the next step. Where wear is certain, replacing at age t is worth
    −(Σ_{i<t} γⁱ upkeep·i + γᵗ price)/(1 − γᵗ⁺¹) from new, and the best t is optimal.
    """

    size: int = 10
    """The steps in which a machine wears out."""
    upkeep: float = 1.0
    """The cost of a step, for each unit of wear."""
    price: float = 20.0
    """The price of a new machine."""
    wear: float = 0.8
    """The probability that it wears by one in a step."""

    def mdp(self) -> FiniteMDP:
        """[size + 1, 2, 2]: keep, replace."""
        self.check(self.size, self.size + 1, 4, wear=self.wear)
        x = np.arange(self.size + 1)
        successors = np.zeros((len(x), 2, 2), np.int32)
        successors[:, 0, 0], successors[:, 0, 1] = np.minimum(x + 1, self.size), x
        probabilities = np.empty(successors.shape)
        probabilities[:, 0] = self.wear, 1 - self.wear
        probabilities[:, 1] = 1.0, 0.0
        rewards = np.stack([-self.upkeep * x, np.full(len(x), -self.price)], 1)
        return self.adopt(successors, probabilities, rewards, action_names=["keep", "replace"])


@dataclass(frozen=True, kw_only=True)
class Pendulum(Family):
    """The pendulum of Gymnasium on a grid of --size angles × --size velocities.

    Its equations and its reward with torques −2, −1, 0, 1, 2; where a step ends between the cells
    of the grid it goes to the four around, weighted as in linear interpolation (Davies, 1997;
    Munos and Moore, 2002). The values of (θ, ω) and (−θ, −ω) are the same.
    """

    size: int = 51
    """Cells in each direction; an odd number has the upright position among them."""

    def mdp(self) -> FiniteMDP:
        """[size², 5, 4]."""
        self.check(self.size, self.size**2, 20)
        if self.size < 3:
            raise UserError(f"size: {self.size}, expected at least 3")
        n, limit, step = self.size, 8.0, 0.05
        # Angles go around, so that the last cell is one before −π again.
        angle = (np.arange(n) - n // 2) * (2 * np.pi / n)
        speed = np.linspace(-limit, limit, n)
        theta, omega = (x.reshape(-1, 1) for x in np.meshgrid(angle, speed, indexing="ij"))
        torque = np.arange(-2.0, 3.0)
        rewards = -(theta**2 + 0.1 * omega**2 + 0.001 * torque**2)
        after = np.clip(omega + step * (15.0 * np.sin(theta) + 3.0 * torque), -limit, limit)
        turned = theta + step * after
        i, above = _between(turned / (2 * np.pi / n) + n // 2)
        j, faster = _between((after + limit) / (2 * limit / (n - 1)))
        successors, probabilities = [], []
        for up in (0, 1):
            for quick in (0, 1):
                row, column = (i + up) % n, np.minimum(j + quick, n - 1)
                successors.append(row * n + column)
                probabilities.append(
                    np.where(up, above, 1 - above) * np.where(quick, faster, 1 - faster)
                )
        return self.adopt(
            np.stack(successors, -1),
            np.stack(probabilities, -1),
            rewards,
            action_names=[f"torque {t:+.0f}" for t in torque],
        )


def _between(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The whole number below, and how far above it x is."""
    below = np.floor(x)
    return below.astype(np.int64), x - below


@dataclass(frozen=True, kw_only=True)
class Epidemic(Family):
    """An epidemic among --size people who fall ill and recover (SIS), with measures against it.

    Kermack and McKendrick's SIS model as a chain (Allen, 2008): of N people i are ill; in a step
    one more falls ill with probability infection·(1 − measure)·i (N − i)/N², one recovers with
    probability recovery·i/N. Illness costs i/N a step, a measure m costs ``price``·m. Without
    infection v(i) = −(i/N)/(1 − γ (1 − recovery/N)).
    """

    size: int = 100
    """The number of people."""
    infection: float = 0.6
    """How easily people fall ill."""
    recovery: float = 0.4
    """How easily they recover."""
    price: float = 0.2
    """The cost of the strongest measure, per step."""
    measures: int = 3
    """Measures of strength 0, …, 0.9, evenly spaced."""

    def mdp(self) -> FiniteMDP:
        """[size + 1, measures, 3]."""
        check_count("measures", self.measures)
        shares = {"infection": self.infection, "recovery": self.recovery}
        self.check(self.size, self.size + 1, 3 * self.measures, **shares)
        ill = np.arange(self.size + 1)
        strength = np.linspace(0, 0.9, self.measures)
        more = np.outer(self.infection * ill * (self.size - ill) / self.size**2, 1 - strength)
        fewer = np.broadcast_to((self.recovery * ill / self.size)[:, None], more.shape)
        if (more + fewer).max() > 1:
            raise UserError("infection: too much with this recovery, expected at most 1 in all")
        around = np.stack([np.minimum(ill + 1, self.size), np.maximum(ill - 1, 0), ill], 1)
        return self.adopt(
            np.repeat(around[:, None], self.measures, 1),
            np.stack([more, fewer, 1 - more - fewer], -1),
            -(ill / self.size)[:, None] - self.price * strength,
            action_names=[f"measure {m:.2g}" for m in strength],
        )


@dataclass(frozen=True, kw_only=True)
class Inventory(Family):
    """An inventory of up to --size units, filled up by lots; sales beyond the stock are lost.

    Puterman, "Markov Decision Processes", section 3.2. With x in stock, 0, 1, … lots are ordered,
    as many as fit; demand is uniform on 0, …, demand; each unit sold earns the price, each unit
    bought costs ``unit``, each unit left costs ``holding``, and each order ``setup`` more. A state
    has the actions that fit. Without a setup cost, with lots of one unit and as many as one likes,
    the best is to order up to the least y with P(demand ≤ y) ≥ (price − unit)/(price + holding −
    γ unit); then v(x) = unit·x + g(y)/(1 − γ) for x ≤ y, with g(y) = price·E min(D, y) − unit·y −
    (holding − γ unit) E(y − D)⁺ (Karlin, 1958). With one, an (s, S) policy is best (Scarf, 1960).
    """

    size: int = 10
    """The most units in stock."""
    lot: int = 1
    """Units in a lot."""
    orders: int = 4
    """The largest number of lots in an order."""
    demand: int = 4
    """The largest demand."""
    price: float = 4.0
    """Earned for each unit sold."""
    unit: float = 2.0
    """The cost of a unit."""
    setup: float = 3.0
    """The cost of an order, whatever its size."""
    holding: float = 0.1
    """The cost of each unit left at the end of a period."""

    def mdp(self) -> FiniteMDP:
        """[size + 1, orders + 1, demand + 1]: as many lots as fit."""
        for name, least in (("lot", 1), ("demand", 1), ("orders", 0)):
            check_count(name, getattr(self, name), least)
        self.check(self.size, self.size + 1, (self.orders + 1) * (self.demand + 2))
        stock = np.arange(self.size + 1)
        counts = np.minimum((self.size - stock) // self.lot, self.orders) + 1
        lots = np.arange(counts.max())
        held = stock[:, None] + lots * self.lot
        demands = np.arange(self.demand + 1)
        left = np.maximum(held[..., None] - demands, 0)
        sold = np.minimum(held[..., None], demands).mean(-1)
        rewards = self.price * sold - self.holding * left.mean(-1)
        rewards -= self.unit * lots * self.lot + self.setup * (lots > 0)
        rewards[lots >= counts[:, None]] = -np.inf
        return self.adopt(left, np.full(left.shape, 1 / len(demands)), rewards)


@dataclass(frozen=True, kw_only=True)
class Forest(Family):
    """A forest of --size ages: wait or cut.

    Possingham and Tuck (1997), as in MDPToolbox: it grows by one age, or burns down with
    probability ``fire``; waiting in the oldest age earns ``old``, cutting there ``timber`` and 1
    at the ages between. With three ages, γ = .9 and the defaults v = (26.244, 29.484, 33.484).
    """

    size: int = 3
    """The number of ages."""
    fire: float = 0.1
    """The probability that the forest burns in a step."""
    old: float = 4.0
    """Earned for waiting in the oldest age."""
    timber: float = 2.0
    """Earned for cutting in the oldest age."""

    def mdp(self) -> FiniteMDP:
        """[size, 2, 2]: wait, cut."""
        self.check(self.size, self.size, 4, fire=self.fire)
        if self.size < 2:
            raise UserError(f"size: {self.size}, expected at least 2 ages")
        age = np.arange(self.size)
        successors = np.zeros((self.size, 2, 2), np.int32)
        successors[:, 0, 1] = np.minimum(age + 1, self.size - 1)
        probabilities = np.empty(successors.shape)
        probabilities[:, 0] = self.fire, 1 - self.fire
        probabilities[:, 1] = 1.0, 0.0
        rewards = np.zeros((self.size, 2))
        rewards[1:, 1] = 1.0
        rewards[-1] = self.old, self.timber
        return self.adopt(successors, probabilities, rewards, action_names=["wait", "cut"])


FAMILIES: dict[str, type[Family]] = {
    "queue": Queue,
    "replacement": Replacement,
    "pendulum": Pendulum,
    "epidemic": Epidemic,
    "inventory": Inventory,
    "forest": Forest,
}
