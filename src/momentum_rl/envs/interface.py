"""What a training loop asks of n environments that step together."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np

from momentum_rl.errors import UserError
from momentum_rl.spaces import Spaces

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
    valid: np.ndarray
    """False where the step was no decision: a reset that took a step of its own."""


class Environment(Protocol):
    """n environments that step together and reset themselves."""

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
    """Whether a run on these environments can be checkpointed.

    They say so themselves by a ``restorable`` of False where a wrapper cannot do it for all.
    """
    both = hasattr(environment, "snapshot") and hasattr(environment, "restore")
    return both and bool(getattr(environment, "restorable", True))


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
