"""The transition: what environments give, replays store and learners regress on."""

from typing import Any, NamedTuple

Array = Any  # a NumPy array, a JAX array or a tracer


class Transition(NamedTuple):
    """(s, a, r, discount, s'), one or with leading axes.

    Attributes:
      observation: s, in its own dtype.
      action: a, counted from 0.
      reward: r, as the environment gives it.
      discount: γ, or 0 when s' is terminal. There is no "done": a truncated step keeps γ.
      next_observation: s'; at the end of an episode the final observation, never the reset's.
    """

    observation: Array
    action: Array
    reward: Array
    discount: Array
    next_observation: Array
