"""Families of MDPs: the paper's Garnets, which mix in a few steps, and mazes, which mix slowly.

A family is a frozen dataclass with ``mdp()``; `FAMILIES` has them by the names that
`movi mdp NAME` takes.

>>> Maze(size=4, discount=0.9).mdp()
FiniteMDP(16 states, 4 actions, 3 successors, discount 0.9)
"""

from dataclasses import dataclass, replace

import numpy as np

from momentum_rl.errors import (
    UserError,
    check_count,
    check_fields,
    check_fraction,
    check_seed,
    door,
)
from momentum_rl.mdp.arrays import aligned
from momentum_rl.mdp.checks import FIELDS
from momentum_rl.mdp.model import FiniteMDP, adopted
from momentum_rl.plumbing.sizes import require

_AT_ONCE = 1 << 17  # rows of a Garnet drawn at a time: part of what a seed means, never to change


@dataclass(frozen=True, kw_only=True)
class Garnet:
    """The random MDP of the paper."""

    states: int = 30
    """N_S (paper: 30)."""
    actions: int = 4
    """N_A (paper: 4)."""
    branching: int = 4
    """N_B, distinct successors of each (s, a) (paper: 4)."""
    discount: float = 0.9
    """γ (the paper does not say)."""
    seed: int = 0
    """The seed."""

    def mdp(self) -> FiniteMDP:
        """[states, actions, branching]; see :func:`garnet`."""
        return garnet(**vars(self))

    def batch(self, count: int) -> FiniteMDP:
        """Members of one seed, as the paper's experiments have them."""
        return garnet(**vars(self), count=count)


@door
def garnet(
    states: int = 30,
    actions: int = 4,
    branching: int = 4,
    *,
    discount: float = 0.9,
    seed: int = 0,
    count: int | None = None,
) -> FiniteMDP:
    """A Garnet(N_S, N_A, N_B), or ``count`` of them.

    For every (s, a), N_B distinct successors uniformly without replacement, with the N_B spacings
    of N_B − 1 sorted uniforms as probabilities; rewards uniform in (−1, 1), one per *state*.

    MDP i of a batch depends on (seed, i) alone, so a larger batch begins with the smaller one.

    >>> garnet(30, 4, 4, seed=1, count=100)
    FiniteMDP(100 × 30 states, 4 actions, 4 successors, discount 0.9)
    """
    sizes = {"states": states, "actions": actions, "branching": branching, "count": count}
    for name, value in sizes.items():
        check_count(name, value)
    if branching > states:
        raise UserError(f"branching: {branching}, expected at most the number of states, {states}")
    check_seed(seed)
    members = 1 if count is None else count
    cells = members * states * actions
    # Validating them takes as much again as the arrays themselves.
    require(f"{cells:,} pairs (s, a)", memory=2 * cells * (12 * branching + 8))
    shape = (members, states * actions, branching)
    successors, probabilities = aligned(shape, np.int32), aligned(shape, np.float64)
    rewards = aligned((members, states, actions), np.float64)
    for i in range(members):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,)))
        for begin in range(0, states * actions, _AT_ONCE):
            rows = slice(begin, begin + _AT_ONCE)
            _draw_rows(rng, states, successors[i, rows], probabilities[i, rows])
        rewards[i] = rng.uniform(-1, 1, (states, 1))
    lead = () if count is None else (count,)
    return adopted(
        successors.reshape(*lead, states, actions, branching),
        probabilities.reshape(*lead, states, actions, branching),
        rewards.reshape(*lead, states, actions),
        np.full(lead, discount),
    )


def _draw_rows(
    rng: np.random.Generator, states: int, successors: np.ndarray, probabilities: np.ndarray
) -> None:
    """Draw rows in place."""
    rows, branching = successors.shape
    # Floyd's algorithm on all rows at once: a uniform subset without rejection. Its order is not
    # uniform, which is no matter: the spacings assigned to it below are exchangeable.
    for slot, last in enumerate(range(states - branching, states)):
        pick = np.floor(rng.random(rows) * (last + 1)).astype(np.int32)
        taken = (successors[:, :slot] == pick[:, None]).any(1)
        successors[:, slot] = np.where(taken, last, pick)
    cuts = rng.random((rows, branching - 1))
    cuts.sort(axis=1)
    probabilities[:] = np.diff(cuts, axis=1, prepend=0.0, append=1.0)


@dataclass(frozen=True, kw_only=True)
class Maze:
    """A maze on a slippery square of --size × --size cells, with walls at random.

    Russell and Norvig, "Artificial Intelligence", chapter 17: up, right, down or left; a step goes
    where it was meant with probability 1 − slip and to either side with slip / 2; a step into a
    wall stays. Every step costs 1 until the last cell, which is not left. A wall is
    a state that nothing leads to. Without slip and walls v = −(1 − γᵈ)/(1 − γ), d the number of
    steps to the last cell.
    """

    size: int = 10
    """Cells in each direction."""
    walls: float = 0.3
    """The share of cells that are walls."""
    slip: float = 0.2
    """The probability that a step goes sideways."""
    discount: float = 0.99
    """γ."""
    seed: int = 0
    """Seed of the walls."""

    def __post_init__(self) -> None:
        check_fields(self)

    def mdp(self) -> FiniteMDP:
        """[size², 4, 3]."""
        check_count("size", self.size)
        check_seed(self.seed)
        check_fraction("walls", self.walls)
        check_fraction("slip", self.slip)
        require(f"{self.size**2:,} states", memory=2 * self.size**2 * 12 * 12)
        n, cells = self.size, self.size**2
        blocked = np.random.default_rng(self.seed).random((n, n)) < self.walls
        blocked[0, 0] = blocked[-1, -1] = False
        here = np.arange(cells, dtype=np.int32)
        to = np.empty((cells, 4), np.int32)
        for a, (down, right) in enumerate(((-1, 0), (0, 1), (1, 0), (0, -1))):
            i, j = here // n + down, here % n + right
            passable = (i >= 0) & (i < n) & (j >= 0) & (j < n)
            passable[passable] = ~blocked[i[passable], j[passable]]
            to[:, a] = np.where(passable, i * n + j, here)
        successors = np.stack([to, np.roll(to, 1, 1), np.roll(to, -1, 1)], 2)
        probabilities = np.empty(successors.shape)
        probabilities[:] = 1 - self.slip, self.slip / 2, self.slip / 2
        rewards = np.full(to.shape, -1.0)
        successors[-1], rewards[-1] = cells - 1, 0.0
        names = ["up", "right", "down", "left"]
        gamma = np.float64(self.discount)
        return adopted(successors, probabilities, rewards, gamma, action_names=names)

    def batch(self, count: int) -> FiniteMDP:
        """Mazes with seeds ``seed``, ``seed + 1``, …, as a batch."""
        check_count("count", count)
        each = [replace(self, seed=self.seed + i).mdp() for i in range(count)]
        return adopted(*(np.stack([getattr(mdp, name) for mdp in each]) for name in FIELDS))


FAMILIES: dict[str, type[Garnet] | type[Maze]] = {"garnet": Garnet, "maze": Maze}
