"""What environments, agents and replays give each other: observations, actions, transitions.

And what a training loop asks of an environment and of a replay.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np

from momentum_rl.errors import UserError

Leaf = TypeVar("Leaf")  # an array of NumPy's or of JAX's; or what stands for it, such as its shape


@dataclass(frozen=True)
class ObservationSpace:
    """One observation: an array, or one of a finite number of categories."""

    shape: tuple[int, ...]
    """The array's shape; () for a category."""
    dtype: str
    """The array's own dtype, in which it is stored: uint8 images stay uint8."""
    categories: int | None = None
    """The number of categories, or None for an array."""
    start: int = 0
    """The first category's number."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))

    def zeros(self, *leading: int) -> np.ndarray:
        """Observations of the right shape and dtype; the value of each is ``start``."""
        return np.full((*leading, *self.shape), self.start, dtype=self.dtype)

    def checked(self, seen: Any, what: str, env: str = "", step: int = 0) -> np.ndarray:
        """Numbers in the space's dtype, but for rounding the same; UserError if one cannot be.

        With an environment's name, ``seen`` [m, ...] is of its steps from number ``step`` on.
        """
        try:
            cast = array = np.asarray(seen)
        except ValueError:  # lists of different lengths
            cast = array = np.asarray([str(seen)])
        dtype = np.dtype(self.dtype)
        # Floats are no integers: pixels in [0, 1] would all be 0.
        if array.dtype.kind not in ("biu" if dtype.kind in "iu" else "biuf"):
            right = np.zeros(array.shape, bool)
        else:
            if array.dtype != dtype:
                with np.errstate(all="ignore"):
                    cast = array.astype(dtype)
            right = np.isfinite(cast) if dtype.kind == "f" else cast == array
            if self.categories is not None:
                right &= (cast >= self.start) & (cast < self.start + self.categories)
        if right.all():
            return cast
        at = tuple(np.argwhere(~right)[0].tolist())
        where = f"env: {env}, step {step + at[0]}: {what}" if env else f"{what}:"
        expected = f"a {'finite ' * (dtype.kind == 'f')}{dtype} number"
        if self.categories is not None:
            expected = f"a category in {self.start}..{self.start + self.categories - 1}"
        raise UserError(f"{where} {array[at]}, expected {expected}")


FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Box:
    """Actions that are arrays of bounded numbers.

    Agents act by vectors in [−1, 1], one number for each entry; the environment's own actions are
    these, rescaled to its bounds and reshaped.
    """

    low: tuple[float, ...]
    """The least of each entry, in the array's order."""
    high: tuple[float, ...]
    """The largest."""
    shape: tuple[int, ...]
    """The shape of the environment's own actions."""
    dtype: str = "float32"
    """Their own dtype, of floats."""

    def __post_init__(self) -> None:
        for name in ("low", "high", "shape"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.dtype not in FLOATS:
            raise UserError(f"actions: of {self.dtype}, expected one of {', '.join(FLOATS)}")
        if min(self.shape, default=1) < 1:
            raise UserError(f"actions: of the shape {self.shape}, expected at least one number")
        size = math.prod(self.shape)
        if not size == len(self.low) == len(self.high):
            raise UserError(
                f"actions: {len(self.low)} and {len(self.high)} bounds, expected {size} each "
                f"for the shape {self.shape}"
            )
        for low, high in zip(self.low, self.high):
            if not -math.inf < low < high < math.inf:
                raise UserError(
                    f"actions: from {low} to {high}, expected finite bounds, low < high"
                )

    @property
    def size(self) -> int:
        """Numbers in an action."""
        return len(self.low)

    def rescaled(self, xp: Any, actions: Any) -> Any:
        """Actions [..., size] in [−1, 1] (clipped) as the environment's own, within its bounds.

        >>> box = Box((0.0, -2.0), (1.0, 2.0), (2,))
        >>> box.rescaled(np, np.array([[-1.0, 0.5], [1.0, 3.0]])).tolist()
        [[0.0, 1.0], [1.0, 2.0]]
        """
        dtype = np.result_type(self.dtype, np.float32)  # bounds of float64 are not those of float32
        low, high = xp.asarray(self.low, dtype), xp.asarray(self.high, dtype)
        share = (xp.clip(xp.asarray(actions, dtype), -1, 1) + 1) / 2
        # Both ends are met exactly: a sum of shares is, low + share · (high − low) is not. Between
        # them rounding may go beyond one.
        rescaled = xp.clip((1 - share) * low + share * high, low, high)
        return rescaled.reshape((*rescaled.shape[:-1], *self.shape)).astype(self.dtype)


class ActionFormat(NamedTuple):
    """An action as replays and learners see it: counted from 0, or a vector in [−1, 1]."""

    dtype: str = "int32"
    shape: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of one."""
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


NUMBERED = ActionFormat()


@dataclass(frozen=True)
class Spaces:
    """The observations and the actions of an environment.

    >>> spaces = Spaces(ObservationSpace((4,), "float32"), actions=2)
    >>> spaces.to_json()["observation"]["shape"]
    (4,)
    """

    observation: ObservationSpace
    """What is seen."""
    actions: int | Box
    """The number of actions, which the agents number from 0; or what arrays they are."""
    first_action: int = 0
    """The environment's own number of action 0."""

    @property
    def action(self) -> ActionFormat:
        """The format of an action as agents see it."""
        if isinstance(self.actions, Box):
            return ActionFormat("float32", (self.actions.size,))
        return NUMBERED

    @property
    def numbered(self) -> int:
        """The number of actions, where they are discrete."""
        if isinstance(self.actions, Box):
            raise UserError("env: has Box actions, expected Discrete ones")
        return self.actions

    def own(self, actions: Any) -> np.ndarray:
        """The agents' actions [...] as the environment's own.

        >>> Spaces(ObservationSpace((4,), "float32"), 2, first_action=5).own([0, 1]).tolist()
        [5, 6]
        """
        if isinstance(self.actions, Box):
            return self.actions.rescaled(np, actions)
        return np.asarray(actions, np.int64) + self.first_action

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON's types."""
        return asdict(self)


class Transition(NamedTuple, Generic[Leaf]):
    """(s, a, r, discount, s'), one or with leading axes."""

    observation: Leaf
    """s, in its own dtype."""
    action: Leaf
    """a, counted from 0; or a vector in [−1, 1]."""
    reward: Leaf
    """r, as the environment gives it."""
    discount: Leaf
    """γ, or 0 when s' is terminal. There is no "done": a truncated step keeps γ."""
    next_observation: Leaf
    """s'; at the end of an episode the final observation, never the reset's."""


class NStep(NamedTuple):
    """How far the transitions that a replay gives reach: n steps, as many as are in the episode.

    With m = n, or fewer where the episode ends before (s_t is the first of the window's states):

        (s_t, a_t, Σ_{i<m} γ^i r_{t+i}, γ^m or 0 if s_{t+m} is terminal, s_{t+m})
    """

    steps: int = 1
    """n; with 1 a replay gives the transitions as they are stored."""
    num_envs: int = 1
    """Environments whose transitions come in turn, one of each at the most."""
    reward_clip: float | None = None
    """With n > 1, clips every reward to ± this before it is summed."""

    @property
    def incomplete(self) -> int:
        """How many of the newest transitions are not sampled yet: their s_{t+n} may be missing."""
        return (self.steps - 1) * self.num_envs


ONE_STEP = NStep()


# Environments -------------------------------------------------------------------------------------

ATARI = "ALE/"
"""How the ids of Atari games begin."""
LONGEST = 100_000
"""Steps of an episode of MinAtar or of an evaluation, so that a perfect player's ends too."""
LARGEST_REWARD = float(np.finfo(np.float32).max)
"""Learners have no larger numbers."""


class Outcome(NamedTuple):
    """What one step of n environments gave; every array has the leading axis n.

    The stream of one environment whose episode ends at t2 and resets to u0:

        step:              1     2     3
        next_observation:  t1    t2    u1      s' of the transition stored
        observation:       t1    u0    u1      what the next action is for
        ended:             -    yes    -
    """

    observation: np.ndarray
    """What to act on next."""
    next_observation: np.ndarray
    """What the step led to, at an episode's end the final observation."""
    reward: np.ndarray
    """The reward, as the environment gave it."""
    terminated: np.ndarray
    """Whether s' is terminal."""
    truncated: np.ndarray
    """Whether the episode was cut at s'."""


class Environment(Protocol):
    """n environments that step together and reset themselves: every step is a decision in each."""

    spaces: Spaces
    num_envs: int

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Starts an episode in each, with its own seed; the observations [n, ...]."""

    def step(self, actions: np.ndarray) -> Outcome:
        """Takes the actions [n], counted from 0; or [n, d] in [−1, 1]."""

    def close(self) -> None:
        """Frees what they hold."""


class Restorable(Environment, Protocol):
    """Environments whose run can be checkpointed in mid-episode."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """All that ``restore`` needs, taken between two steps."""

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> np.ndarray:
        """Continues from a snapshot, exactly; what to act on next, [n, ...]."""


def is_restorable(environment: Environment) -> TypeGuard[Restorable]:
    """Whether a run on these environments can be checkpointed."""
    return hasattr(environment, "snapshot") and hasattr(environment, "restore")


def check_rewards(rewards: np.ndarray, clip: float | None, env: str, step: int) -> None:
    """Raises unless those of an environment's steps from number ``step`` on can be learned from."""
    most = LARGEST_REWARD if clip is None else np.inf
    for i, reward in enumerate(np.asarray(rewards, float).ravel().tolist()):
        if not abs(reward) <= most:
            step_of = f"env: {env}, step {step + i}: reward {reward}"
            raise UserError(f"{step_of}, expected a finite float32 number")


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal in shape, dtype and every bit."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def is_atari(env_id: str) -> bool:
    """Whether this is the id of an Atari game.

    >>> is_atari("ALE/Pong-v5"), is_atari("CartPole-v1")
    (True, False)
    """
    return env_id.startswith(ATARI)


def is_gymnax(env_id: str) -> bool:
    """Whether an id means an environment that gymnax has.

    >>> is_gymnax("MinAtar/Breakout"), is_gymnax("MinAtar/Breakout-v1"), is_gymnax("CartPole-v1")
    (True, False, False)
    """
    if env_id.startswith("gymnax/"):
        return True
    # MinAtar's own package registers ids that end in -v0 and -v1 with Gymnasium.
    return env_id.startswith("MinAtar/") and not re.search(r"-v\d+$", env_id)


# Replays ------------------------------------------------------------------------------------------


class Replay(Protocol):
    """A bounded store of transitions, oldest forgotten first, sampled uniformly.

    A checkpoint does not copy its files: it holds a snapshot that refers to them. The files have
    slack: what a snapshot refers to stays in them for a while, and ``headroom`` says for how long.
    """

    run: str
    """What tells the files from another run's; a snapshot has it."""

    def __len__(self) -> int:
        """How many transitions can be sampled."""

    def add(self, env: int, transition: Transition, ended: bool) -> None:
        """Stores the next transition of an environment; ``ended`` if its episode ends there."""

    def sample(self, bits: np.ndarray) -> Transition:
        """One transition for each random uint32, with the same leading axes."""

    def snapshot(self) -> dict[str, Any]:
        """The replay's state, of JSON types; what it refers to is on the disk when this returns."""

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Goes back to a snapshot; ``Damaged`` if the files are not as they were then."""

    def headroom(self, snapshot: Mapping[str, Any]) -> int:
        """How many more transitions can surely be added before a snapshot is overwritten."""
