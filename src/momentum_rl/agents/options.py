"""What every algorithm's dataclass of options is: checked, and of JSON's types."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from momentum_rl.core.schedules import Constant, Heuristic, Mean, RateUpdates, Schedule
from momentum_rl.errors import UserError, check_fields

if TYPE_CHECKING:
    from momentum_rl.agents.method import Loss, Method
    from momentum_rl.core.targets import Algorithm

LARGEST_STEP = 2**31 - 1  # steps are int32 in compiled code


@dataclass(frozen=True)
class Options:
    """What an algorithm lets its user choose: nothing, here."""

    title: ClassVar[str] = ""
    """The algorithm's name in figures and tables."""
    preset: ClassVar[str | None] = None
    """The preset of a run that names none; None: that of its environment."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name, value in asdict(self).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise UserError(f"{name}: {value!r}, expected a finite number")

    def algorithm(self) -> "Algorithm":
        """The algorithm that these options mean."""
        raise NotImplementedError

    def method(self, loss: "Loss", reward_clip: float | None) -> "Method":
        """How networks learn it."""
        from momentum_rl.agents.method import regression

        return regression(self.algorithm(), loss=loss, reward_clip=reward_clip)

    def beta_of(self, steps: int) -> Schedule | None:
        """β as a function of the agent step, in a run of so many; None for an algorithm without."""
        return None

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON's types."""
        return asdict(self)


def check_integer(name: str, value: Any, least: int) -> None:
    """An integer that compiled code can count with."""
    if type(value) is not int or not least <= value <= LARGEST_STEP:
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
class Unknown(Options):
    """The options of an algorithm that is not registered here, as a file has them."""

    items: tuple[tuple[str, str], ...] = ()
    """Names, and values as texts of JSON."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Unknown":
        """These values, of JSON's types."""
        return cls(tuple((name, json.dumps(values[name])) for name in sorted(values)))

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON's types."""
        return {name: json.loads(text) for name, text in self.items}
