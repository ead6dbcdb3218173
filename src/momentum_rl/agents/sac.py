"""SAC and Momentum-SAC by their options; `soft_actor_critic.py` has the equations and the losses.

It is apart, so that reading options imports no networks.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from momentum_rl.core import targets  # noqa: F401  (the paper's algorithms are declared first)
from momentum_rl.core.options import Averaging, Options, Positive, on_networks
from momentum_rl.errors import UserError


@on_networks("sac", "SAC")
@dataclass(frozen=True)
class SAC(Options):
    """Soft actor-critic (Haarnoja et al. 2018), for continuous actions."""

    preset: ClassVar[str | None] = "sac"

    actor_rate: Positive | None = None
    """Step size of the actor (CleanRL: 0.0003); None: learning_rate, as the critics'."""
    temperature_rate: Positive | None = None
    """Step size of the temperature (CleanRL: 0.001); None: learning_rate."""
    temperature: Positive | None = None
    """α: the weight of the entropy; None: it is tuned so that the entropy is the target's."""
    target_entropy: float | None = None
    """The entropy that α is tuned for; None: entropy_each · d for actions of d numbers."""
    entropy_each: float = -1.0
    """The same for each number of an action (Dopamine: −0.5; the others: −1)."""
    reward_scale: Positive = 1.0
    """Learn from rewards times this; scores stay raw (Dopamine: 0.1; the others: 1)."""
    polyak: float | None = 0.005
    """The share of a critic that enters its lagged copy at every update; None: it is copied every
    sync_period steps."""
    log_std: Literal["clip", "tanh"] = "clip"
    """How ln σ of the policy is kept within its bounds (stable-baselines3: clip; CleanRL: tanh)."""
    log_std_min: float = -20.0
    """The least (stable-baselines3: −20; CleanRL: −5)."""
    log_std_max: float = 2.0
    """The largest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.polyak is not None and not 0 < self.polyak <= 1:
            raise UserError(f"polyak: {self.polyak!r}, expected a number in (0, 1] or None")
        if not self.log_std_min < self.log_std_max:
            raise UserError(
                f"log_std_min: {self.log_std_min}, expected less than log_std_max "
                f"({self.log_std_max})"
            )


@on_networks("momentum-sac", "Momentum-SAC")
@dataclass(frozen=True)
class MomentumSAC(Averaging, SAC):
    """Momentum in SAC: the actor improves against an average of what is evaluated."""

    shared_batch: bool = False
    """One minibatch for the critics and H instead of one each."""
    regularised: bool = False
    """With regularised evaluation: the target has the KL to the lagged actor too, weighted by
    λ = α β/(1 − β)."""
