"""The deep algorithms, each as a dataclass of its options.

Its fields are the options: on the command line, in ``config.json`` and in a sweep's matrix. Its
``algorithm()`` makes the algorithm that they mean.

| name | networks | regresses to | acts on |
|---|---|---|---|
| dqn | q | r + γ max Q⁻(s') | q |
| double-dqn | q | r + γ Q⁻(s', argmax Q(s')) | q |
| munchausen-dqn | q | r + α τ ln π(a|s) + γ ⟨π, Q⁻ − τ ln π⟩(s'), π = softmax(Q⁻/τ) | q |
| momentum-… | q, h | the same with the policy of H⁻; β H⁻(s, a) + (1 − β)(the same) | h |
| deep-sql | q, two lagged copies | SQL's update (appendix) | q |
| deep-dpp | q | Q⁻(s, a) + r + γ m Q⁻(s') − m Q⁻(s), m the maximum or softer | q |
"""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args, get_origin

from movi.errors import UserError, check_fraction, check_positive
from movi.schedules import Constant, Heuristic, Mean, RateUpdates, Schedule

if TYPE_CHECKING:
    from movi.agents.method import Loss, Method
    from movi.targets import Algorithm

LARGEST_STEP = 2**31 - 1  # steps are int32 in compiled code


@dataclass(frozen=True)
class Options:
    """What an algorithm lets its user choose: nothing, here."""

    title: ClassVar[str] = ""
    """The algorithm's name in figures and tables."""

    def __post_init__(self) -> None:
        """Checks every field."""
        check_fields(self)

    def algorithm(self) -> "Algorithm":
        """The algorithm that these options mean."""
        raise NotImplementedError

    def method(self, loss: "Loss", reward_clip: float | None) -> "Method":
        """How networks learn it."""
        from movi.agents.method import regression

        return regression(self.algorithm(), loss=loss, reward_clip=reward_clip)

    def beta_of(self, steps: int) -> Schedule | None:
        """β as a function of the agent step, in a run of so many; None for an algorithm without."""
        return None

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON's types."""
        return asdict(self)


def check_fields(of: Any) -> None:
    """The simple checks of a dataclass of settings: truth values, numbers, words."""
    for field in fields(of):
        known, value = get_args(field.type), getattr(of, field.name)
        if field.type is bool and not isinstance(value, bool):
            raise UserError(f"{field.name}: {value!r}, expected true or false")
        if field.type is float and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise UserError(f"{field.name}: {value!r}, expected a number")
        if get_origin(field.type) is Literal and value not in known:
            expected = ", ".join(known)
            raise UserError(f"{field.name}: {value!r}, expected one of {expected}")


def check_integer(name: str, value: Any, least: int) -> None:
    """An integer that compiled code can count with."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_STEP:
        raise UserError(f"{name}: {value!r}, expected an integer from {least} to {LARGEST_STEP}")


@dataclass(frozen=True)
class Averaging(Options):
    """Options of algorithms with a mixture rate β."""

    beta_schedule: Literal["rate-updates", "constant", "heuristic", "mean"] = "rate-updates"
    """β_k. rate-updates: n/(n+1) with n = ⌊k/κ⌋ (paper); constant: β; heuristic: 0.1 n, at most 0.9
    (appendix); mean: k/(k+1)."""
    kappa: int | None = None
    """κ: agent steps between two changes of β (paper: 2,500,000); None: a twentieth of the run, as
    2,500,000 is of Dopamine's 50,000,000."""
    beta: float = 0.5
    """β of the constant schedule (appendix: 0.1, 0.5, 0.9)."""

    def __post_init__(self) -> None:
        """Checks every field."""
        super().__post_init__()
        if self.kappa is not None:
            check_integer("kappa", self.kappa, 1)
        if not 0 <= self.beta < 1:
            raise UserError(f"beta: {self.beta!r}, expected a number in [0, 1)")

    @property
    def counts(self) -> bool:
        """Whether β changes every κ steps."""
        return self.beta_schedule in ("rate-updates", "heuristic")

    def beta_of(self, steps: int) -> Schedule:
        """β as a function of the agent step, in a run of so many."""
        kappa = default_kappa(steps) if self.kappa is None else self.kappa
        schedules: dict[str, Schedule] = {
            "rate-updates": RateUpdates(kappa),
            "constant": Constant(self.beta),
            "heuristic": Heuristic(kappa),
            "mean": Mean(),
        }
        return schedules[self.beta_schedule]


def default_kappa(steps: int) -> int:
    """κ where the options name none: a twentieth of the run."""
    return max(1, steps // 20)


@dataclass(frozen=True)
class DQN(Options):
    """Deep Q-Network."""

    title: ClassVar[str] = "DQN"

    def algorithm(self) -> "Algorithm":
        """AVI with a network for the table."""
        from movi.targets import AVI

        return AVI


@dataclass(frozen=True)
class DoubleDQN(Options):
    """Double DQN (van Hasselt et al. 2016)."""

    title: ClassVar[str] = "Double DQN"

    def algorithm(self) -> "Algorithm":
        """DQN whose targets take the action from the online network."""
        from movi.targets import AVI, double

        return double(AVI)


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
        """Checks every field."""
        super().__post_init__()
        check_fraction("alpha", self.alpha)
        check_positive("tau", self.tau)
        if not self.floor <= 0:
            raise UserError(f"floor: {self.floor!r}, expected a number of at most 0")

    def algorithm(self) -> "Algorithm":
        """M-VI(α, τ) with a network for the table."""
        from movi.targets import munchausen

        return munchausen(self.alpha, self.tau, self.floor)


@dataclass(frozen=True)
class Momentum(Averaging):
    """Options that momentum adds to those of another algorithm."""

    shared_batch: bool = False
    """One minibatch for both networks instead of one each (paper: one each)."""
    h_target: Literal["sample", "network"] = "sample"
    """What H averages. sample: the fresh target of Q (paper); network: the value Q(s, a) of the
    online network ("Leverage the Average", appendix E.2)."""

    def algorithm(self) -> "Algorithm":
        """``momentum`` of the other algorithm."""
        from movi.targets import momentum

        return momentum(super().algorithm(), h_target=self.h_target)

    def method(self, loss: "Loss", reward_clip: float | None) -> "Method":
        """How networks learn it."""
        from movi.agents.method import regression

        return regression(
            self.algorithm(), loss=loss, shared_batch=self.shared_batch, reward_clip=reward_clip
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
class DeepSQL(Averaging):
    """Deep SQL (appendix)."""

    title: ClassVar[str] = "Deep SQL"

    sign: Literal["sql", "printed"] = "sql"
    """The last term: with Speedy Q-learning's sign, or with the one that the appendix prints."""

    def algorithm(self) -> "Algorithm":
        """SQL with a network for the table."""
        from movi.targets import speedy_q_learning

        return speedy_q_learning(self.sign)


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
        """Checks every field."""
        super().__post_init__()
        if self.eta is not None:
            check_positive("eta", self.eta)

    def algorithm(self) -> "Algorithm":
        """DPP with a network for the table."""
        from movi.targets import dynamic_policy_programming

        return dynamic_policy_programming(self.eta, self.form)


@dataclass(frozen=True)
class Unknown(Options):
    """The options of an algorithm that is not registered here, as a file has them."""

    items: tuple[tuple[str, Any], ...] = ()
    """Names and values of JSON's types."""

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON's types."""
        return {name: list(value) if type(value) is tuple else value for name, value in self.items}
