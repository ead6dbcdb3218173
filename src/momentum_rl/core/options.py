"""How an algorithm is declared: a frozen dataclass of its options, beside its target.

    @on_tables("dpp", "DPP")
    @on_networks("deep-dpp", "Deep DPP")
    @dataclass(frozen=True)
    class DynamicPolicyProgramming(Options):
        ...

A field is an option: its type says which values it takes, its default is the published one, and
the text beneath it is the help. ``algorithm()`` makes the algorithm that the options mean. The
command line, ``config.json``, sweeps, the labels of schemes and the docs read all this from here.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    get_args,
    get_type_hints,
)

from momentum_rl.core.schedules import (
    Capped,
    Constant,
    Heuristic,
    Mean,
    RateUpdates,
    Schedule,
)
from momentum_rl.errors import UserError, check_fields

if TYPE_CHECKING:
    from momentum_rl.core.algorithm import Algorithm

WRITTEN = {"lam": "lambda"}
"""Options whose written name is a word of Python's, which no field can have."""
LARGEST_STEP = 2**31 - 1  # steps are int32 in compiled code


@dataclass(frozen=True)
class Range:
    """Which numbers an option takes: a mark on its type."""

    words: str
    holds: Callable[[Any], bool]


Share = Annotated[float, Range("a number in [0, 1]", lambda x: 0 <= x <= 1)]
BelowOne = Annotated[float, Range("a number in [0, 1)", lambda x: 0 <= x < 1)]
Positive = Annotated[float, Range("a number above 0", lambda x: 0 < x < math.inf)]
NotNegative = Annotated[float, Range("a number of at least 0", lambda x: 0 <= x < 1e300)]
NotPositive = Annotated[float, Range("a finite number of at most 0", lambda x: -math.inf < x <= 0)]


def integer_from(least: int) -> Range:
    """An integer that compiled code can count with."""
    return Range(
        f"an integer from {least} to {LARGEST_STEP}",
        lambda x: type(x) is int and least <= x <= LARGEST_STEP,
    )


Natural = Annotated[int, integer_from(0)]
Count = Annotated[int, integer_from(1)]


@dataclass(frozen=True)
class Options:
    """What an algorithm lets its user choose: nothing, here."""

    title: ClassVar[str] = ""
    """The algorithm's name in figures and tables, where no declaration gives it."""
    preset: ClassVar[str | None] = None
    """The preset of a run that names none; None: that of its environment."""
    takes_beta: ClassVar[bool] = False
    """Whether a scheme on tables may be given another schedule of β."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_ranges(self)

    def algorithm(self) -> "Algorithm":
        """The algorithm that these options mean."""
        raise NotImplementedError

    def schedule(self) -> Schedule:
        """β_k of the scheme on tables."""
        return Mean()

    def beta_of(self, steps: int) -> Schedule | None:
        """β as a function of the agent step, in a run of so many; None for an algorithm without."""
        return None

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON's types."""
        return asdict(self)


def check_ranges(of: Any) -> None:
    """The numbers in a dataclass: finite, and in the range that the field's type is marked with."""
    hints = get_type_hints(type(of), include_extras=True)
    for field in fields(of):
        value, mark = getattr(of, field.name), next(_marks(hints[field.name]), None)
        name = WRITTEN.get(field.name, field.name)
        if value is not None and mark is not None and not _holds(mark, value):
            raise UserError(f"{name}: {value!r}, expected {mark.words}")
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{name}: {value!r}, expected a finite number")


def _holds(mark: Range, value: Any) -> bool:
    try:
        return mark.holds(value)
    except (TypeError, ValueError):  # a text, an array
        return False


def _marks(hint: Any) -> Iterator[Range]:
    for part in (*getattr(hint, "__metadata__", ()), *get_args(hint)):
        yield from (part,) if isinstance(part, Range) else _marks(part)


@cache
def algorithm_of(options: Options) -> "Algorithm":
    """The algorithm of some options; equal options have the same, for which code is compiled."""
    return options.algorithm()


@dataclass(frozen=True)
class Averaging(Options):
    """The options of β, which every algorithm with a mixture rate has on networks."""

    beta_schedule: Literal["rate-updates", "constant", "heuristic", "mean"] = "rate-updates"
    """β_k. rate-updates: n/(n+1) with n = ⌊k/κ⌋ (paper); constant: β; heuristic: 0.1 n, at most 0.9
    (appendix); mean: k/(k+1)."""
    kappa: Count | None = None
    """κ: agent steps between two changes of β (paper: 2,500,000); None: a twentieth of the run, as
    2,500,000 is of Dopamine's 50,000,000."""
    beta: BelowOne = 0.5
    """β of the constant schedule (appendix: 0.1, 0.5, 0.9)."""
    beta_max: BelowOne | None = None
    """The largest β, whatever the schedule; None: no limit (paper). A network's average has errors
    of its own, which pile up as β tends to 1."""

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
        return capped(schedules[self.beta_schedule], self.beta_max)


def capped(schedule: Schedule, most: float | None) -> Schedule:
    """The schedule, with a largest β if there is one."""
    return schedule if most is None else Capped(schedule, most)


TABLES: dict[str, type[Options]] = {}
"""The schemes on tables, by name."""
NETWORKS: dict[str, type[Options]] = {}
"""The algorithms with networks, by name."""
TITLES: dict[str, str] = {}
"""What they are called in figures and tables, by name."""
Declared = TypeVar("Declared", bound=type[Options])


def on_tables(name: str, title: str, **defaults: Any) -> Callable[[Declared], Declared]:
    """Declares a scheme on tables; ``defaults`` are those of options that differ there."""

    def declare(kind: Declared) -> Declared:
        TITLES[name], TABLES[name] = title, combined(kind, **defaults) if defaults else kind
        return kind

    return declare


def on_networks(name: str, title: str) -> Callable[[Declared], Declared]:
    """Declares an algorithm with networks; one that has a β has the options of its schedule."""

    def declare(kind: Declared) -> Declared:
        TITLES[name], NETWORKS[name] = title, kind
        if kind.algorithm is not Options.algorithm and kind().algorithm().uses_beta:
            NETWORKS[name] = combined(Averaging, kind)
        return kind

    return declare


def combined(*kinds: type[Options], **defaults: Any) -> type[Options]:
    """The options of the last kind, with those of the others, or with other defaults."""
    kind = kinds[-1]
    hints = get_type_hints(kind, include_extras=True)
    body = {"__doc__": kind.__doc__, "__module__": kind.__module__, **defaults}
    body["__annotations__"] = {name: hints[name] for name in defaults}
    return dataclass(frozen=True)(type(kind.__name__, kinds, body))


def default_kappa(steps: int) -> int:
    """κ where the options name none: a twentieth of the run."""
    return max(1, steps // 20)


@dataclass(frozen=True)
class Unknown(Options):
    """The options of an algorithm that is not known here, as a file has them."""

    items: tuple[tuple[str, str], ...] = ()
    """Names, and values as texts of JSON."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Unknown":
        """These values, of JSON's types."""
        return cls(tuple((name, json.dumps(values[name])) for name in sorted(values)))

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON's types."""
        return {name: json.loads(text) for name, text in self.items}
