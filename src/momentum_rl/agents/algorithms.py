"""The deep algorithms, each as a dataclass of its options.

Its fields are the options: on the command line, in ``config.json`` and in a sweep's matrix. Its
``algorithm()`` makes the algorithm that they mean.

| name | networks | regresses to | acts on |
|---|---|---|---|
| dqn | q | r + γ max Q⁻(s') | q |
| double-dqn | q | r + γ Q⁻(s', argmax Q(s')) | q |
| munchausen-dqn | q | r + α τ ln π(a|s) + γ ⟨π, Q⁻ − τ ln π⟩(s'), π = softmax(Q⁻/τ) | q |
| momentum-… | q, h | the same with the policy of H⁻; β H⁻(s, a) + (1 − β)(the same) | h |
| c51, qr-dqn | q, of distributions | r + γ Z⁻(s', argmax of the mean of Z⁻(s')) | q |
| deep-sql | q, two lagged copies | SQL's update (appendix) | q |
| deep-dpp | q | Q⁻(s, a) + r + γ m Q⁻(s') − m Q⁻(s), m the maximum or softer | q |
| sac | q (two critics), actor, temperature | r + γ (min Q⁻(s', a') − α ln π(a'|s')) | actor |
| momentum-sac | the same and h, which the actor climbs | β H⁻(s, a) + (1 − β)(the same) | actor |
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from momentum_rl.agents.options import Averaging, Options, check_integer
from momentum_rl.errors import UserError, check_fraction, check_positive
from momentum_rl.plumbing.modules import LazyModule

if TYPE_CHECKING:
    from momentum_rl.agents import method, sac
    from momentum_rl.agents.method import Loss, Method
    from momentum_rl.core import targets, values
    from momentum_rl.core.targets import Algorithm
else:  # reading a config imports no networks
    targets, values = LazyModule("momentum_rl.core.targets"), LazyModule("momentum_rl.core.values")
    method, sac = LazyModule("momentum_rl.agents.method"), LazyModule("momentum_rl.agents.sac")


@dataclass(frozen=True)
class DQN(Options):
    """Deep Q-Network."""

    title: ClassVar[str] = "DQN"

    def algorithm(self) -> "Algorithm":
        """AVI with a network for the table."""
        return targets.AVI


@dataclass(frozen=True)
class DoubleDQN(Options):
    """Double DQN (van Hasselt et al. 2016)."""

    title: ClassVar[str] = "Double DQN"

    def algorithm(self) -> "Algorithm":
        """DQN whose targets take the action from the online network."""
        return targets.double(targets.AVI)


@dataclass(frozen=True)
class MunchausenDQN(Options):
    """Munchausen-DQN (Vieillard, Pietquin, Geist 2020)."""

    title: ClassVar[str] = "Munchausen-DQN"

    alpha: float = 0.9
    """α: the weight of the log-policy that is added to the reward."""
    tau: float = 0.03
    """τ: the temperature of the softmax policy."""
    floor: float = -1.0
    """l₀: the log-policy, times τ, is clipped from below at this."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("alpha", self.alpha)
        check_positive("tau", self.tau)
        if not -float("inf") < self.floor <= 0:
            raise UserError(f"floor: {self.floor!r}, expected a finite number of at most 0")

    def algorithm(self) -> "Algorithm":
        """M-VI(α, τ) with a network for the table."""
        return targets.munchausen(self.alpha, self.tau, self.floor)


@dataclass(frozen=True)
class Momentum(Averaging):
    """Options that momentum adds to those of another algorithm."""

    shared_batch: bool = False
    """One minibatch for both networks instead of one each (paper: one each)."""
    tie: bool = False
    """H begins as a copy of Q and shares its minibatch (paper: neither). With β = 0 it then stays
    Q's equal: what differs from the algorithm without momentum is the average's work alone."""
    h_target: Literal["sample", "network"] = "sample"
    """What H averages. sample: the fresh target of Q (paper); network: the value Q(s, a) of the
    online network ("Leverage the Average", appendix E.2)."""

    def algorithm(self) -> "Algorithm":
        """``momentum`` of the other algorithm."""
        return targets.momentum(super().algorithm(), h_target=self.h_target)

    def method(self, loss: "Loss", reward_clip: float | None) -> "Method":
        """How networks learn it."""
        return method.regression(
            self.algorithm(),
            loss=loss,
            shared_batch=self.shared_batch,
            tie=self.tie,
            reward_clip=reward_clip,
        )


@dataclass(frozen=True)
class MomentumDQN(Momentum, DQN):
    """Momentum-DQN, the paper's."""

    title: ClassVar[str] = "Momentum-DQN"


@dataclass(frozen=True)
class MomentumDoubleDQN(Momentum, DoubleDQN):
    """``momentum`` of Double DQN."""

    title: ClassVar[str] = "Momentum Double DQN"


@dataclass(frozen=True)
class MomentumMunchausenDQN(Momentum, MunchausenDQN):
    """``momentum`` of Munchausen-DQN."""

    title: ClassVar[str] = "Momentum Munchausen-DQN"


@dataclass(frozen=True)
class C51(Options):
    """C51 (Bellemare et al. 2017): the distribution of returns on fixed atoms."""

    title: ClassVar[str] = "C51"

    atoms: int = 51
    """Atoms, evenly spaced (Dopamine: 51 on Atari, 201 on CartPole)."""
    v_min: float = -10.0
    """The first atom (Dopamine: −10 on Atari, −100 on small environments)."""
    v_max: float = 10.0
    """The last (Dopamine: 10 and 100). Returns beyond count as these, and the share of their
    probability is logged as clipped_q."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("atoms", self.atoms, 2)
        if not self.v_min < self.v_max:
            raise UserError(f"v_min: {self.v_min}, expected less than v_max ({self.v_max})")

    def algorithm(self) -> "Algorithm":
        """AVI on distributions, with a network for the table."""
        return targets.distributional(values.Categorical(self.v_min, self.v_max, self.atoms))


@dataclass(frozen=True)
class QRDQN(Options):
    """QR-DQN (Dabney et al. 2018), with everything else as DQN has it."""

    title: ClassVar[str] = "QR-DQN"

    quantiles: int = 200
    """Quantiles (Dabney et al. and Dopamine: 200)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("quantiles", self.quantiles, 1)

    def algorithm(self) -> "Algorithm":
        """AVI on quantiles, with a network for the table."""
        return targets.distributional(values.Quantile(self.quantiles))


@dataclass(frozen=True)
class DistributionalMomentum(Momentum):
    """Options that momentum adds to those of an algorithm on distributions."""

    h_value: Literal["same", "number"] = "same"
    """What H is. same: a distribution as Q is, the mixture β H⁻ + (1 − β) y; number: the average of
    the means, which tells whether H's distribution matters."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tie and self.h_value == "number":
            raise UserError("tie: H is a number and Q is not, expected --h-value same")

    def algorithm(self) -> "Algorithm":
        """``momentum`` of the other algorithm."""
        other = super(Momentum, self).algorithm()
        return targets.momentum(other, h_target=self.h_target, h_value=self.h_value)


@dataclass(frozen=True)
class MomentumC51(DistributionalMomentum, C51):
    """``momentum`` of C51."""

    title: ClassVar[str] = "Momentum-C51"


@dataclass(frozen=True)
class MomentumQRDQN(DistributionalMomentum, QRDQN):
    """``momentum`` of QR-DQN."""

    title: ClassVar[str] = "Momentum QR-DQN"


@dataclass(frozen=True)
class DeepSQL(Averaging):
    """Deep SQL (appendix)."""

    title: ClassVar[str] = "Deep SQL"

    sign: Literal["sql", "printed"] = "sql"
    """The last term: with Speedy Q-learning's sign, or with the one that the appendix prints."""

    def algorithm(self) -> "Algorithm":
        """SQL with a network for the table."""
        return targets.speedy_q_learning(self.sign)


@dataclass(frozen=True)
class DeepDPP(Options):
    """Deep DPP (appendix)."""

    title: ClassVar[str] = "Deep DPP"

    eta: float | None = None
    """η: the inverse temperature of the policy; None: the greedy limit (the paper's)."""
    form: Literal["log-sum-exp", "boltzmann"] = "log-sum-exp"
    """With η: the log-sum-exp form (Tsurumine et al. 2019), or the form with ⟨π, ψ⟩ that Azar et
    al. (2012) analyse."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eta is not None:
            check_positive("eta", self.eta)

    def algorithm(self) -> "Algorithm":
        """DPP with a network for the table."""
        return targets.dynamic_policy_programming(self.eta, self.form)


@dataclass(frozen=True)
class SAC(Options):
    """Soft actor-critic (Haarnoja et al. 2018), for continuous actions."""

    title: ClassVar[str] = "SAC"
    preset: ClassVar[str | None] = "sac"

    actor_rate: float | None = None
    """Step size of the actor (CleanRL: 0.0003); None: learning_rate, as the critics'."""
    temperature_rate: float | None = None
    """Step size of the temperature (CleanRL: 0.001); None: learning_rate."""
    temperature: float | None = None
    """α: the weight of the entropy; None: it is tuned so that the entropy is the target's."""
    target_entropy: float | None = None
    """The entropy that α is tuned for; None: entropy_each · d for actions of d numbers."""
    entropy_each: float = -1.0
    """The same for each number of an action (Dopamine: −0.5; the others: −1)."""
    reward_scale: float = 1.0
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
        for name in ("actor_rate", "temperature_rate", "temperature", "reward_scale"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if self.polyak is not None and not 0 < self.polyak <= 1:
            raise UserError(f"polyak: {self.polyak!r}, expected a number in (0, 1] or None")
        if not self.log_std_min < self.log_std_max:
            raise UserError(
                f"log_std_min: {self.log_std_min}, expected less than log_std_max "
                f"({self.log_std_max})"
            )

    def method(self, loss: "Loss", reward_clip: float | None) -> "Method":
        """How networks learn it."""
        return self._soft("sac", None, loss, reward_clip)

    def _soft(
        self, name: str, momentum: "sac.Averaged | None", loss: "Loss", reward_clip: float | None
    ) -> "Method":
        rates = {"actor": self.actor_rate, "temperature": self.temperature_rate}
        return sac.soft_actor_critic(
            name,
            sac.Settings(
                self.temperature,
                self.target_entropy,
                self.entropy_each,
                self.reward_scale,
                self.polyak,
                self.log_std,
                self.log_std_min,
                self.log_std_max,
            ),
            momentum=momentum,
            loss=loss,
            reward_clip=reward_clip,
            rates={network: rate for network, rate in rates.items() if rate is not None},
        )


@dataclass(frozen=True)
class MomentumSAC(Averaging, SAC):
    """Momentum in SAC: the actor improves against an average of what is evaluated."""

    title: ClassVar[str] = "Momentum-SAC"

    shared_batch: bool = False
    """One minibatch for the critics and H instead of one each."""
    regularised: bool = False
    """With regularised evaluation: the target has the KL to the lagged actor too, weighted by
    λ = α β/(1 − β)."""

    def method(self, loss: "Loss", reward_clip: float | None) -> "Method":
        """How networks learn it."""
        momentum = sac.Averaged(self.shared_batch, self.regularised)
        return self._soft("momentum-sac", momentum, loss, reward_clip)
