"""The transition: what environments give, replays store and learners regress on."""

from typing import Generic, NamedTuple, TypeVar

Leaf = TypeVar("Leaf")  # an array of NumPy's or of JAX's; or what stands for it, such as its shape


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
