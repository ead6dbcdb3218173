"""The schemes on tables, each as a dataclass of its options.

Its fields are the options, on the command line (`movi solve FILE --scheme m-vi --alpha 0.9`), in a
scheme's label (``m-vi:alpha=0.9:tau=0.03``) and in Python. Its ``scheme()`` makes what they mean:
the algorithm and the schedule of β. `docs/family.md` has the equations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec

from momentum_rl.core import family
from momentum_rl.core.schedules import Constant, Mean, Schedule
from momentum_rl.core.targets import AVI, MOVI, SQL, Algorithm, dynamic_policy_programming
from momentum_rl.errors import check_fields
from momentum_rl.planning.engine import Scheme

Real = Annotated[float, arg(metavar="X")]
Evaluation = Literal["regularised", "plain"]
Sweeps = Annotated[
    int | None,
    PrimitiveConstructorSpec(  # tyro alone would want a capital letter: None
        nargs=1,
        metavar="M|none",
        instance_from_str=lambda words: None if words[0].lower() == "none" else int(words[0]),
        is_instance=lambda value: value is None or type(value) is int,
        str_from_instance=lambda value: [str(value).lower()],
    ),
]


@dataclass(frozen=True)
class Options:
    """What a scheme lets its user choose: nothing, here."""

    title: ClassVar[str] = ""
    """The scheme's name in figures and tables."""
    takes_beta: ClassVar[bool] = False
    """Whether a caller may give it another schedule of β."""
    made_by: ClassVar[Callable[..., Algorithm]]
    """Makes its algorithm from the options, by their names."""

    def __post_init__(self) -> None:
        """Checks every field, as making the scheme does."""
        check_fields(self)
        self.scheme()

    def algorithm(self) -> Algorithm:
        """The algorithm that these options mean."""
        return type(self).made_by(**vars(self))

    def schedule(self) -> Schedule:
        """β_k; k/(k+1) unless the options say otherwise."""
        return Mean()

    def scheme(self, beta: Schedule | None = None) -> Scheme:
        """The algorithm with its schedule."""
        own = beta if self.takes_beta and beta is not None else self.schedule()
        return Scheme(self.algorithm(), own)


@dataclass(frozen=True)
class AVIOptions(Options):
    """Approximate value iteration (eq:avi)."""

    title: ClassVar[str] = "AVI"
    made_by = staticmethod(lambda: AVI)


@dataclass(frozen=True)
class MoVIOptions(Options):
    """Momentum value iteration (eq:movi)."""

    title: ClassVar[str] = "MoVI"
    takes_beta: ClassVar[bool] = True
    made_by = staticmethod(lambda beta: MOVI)

    beta: Annotated[float | None, arg(metavar="X")] = None
    """A constant β, which makes h a moving average; None: β_k = k/(k+1), the mean."""

    def schedule(self) -> Schedule:
        """The mean, or the constant."""
        return Mean() if self.beta is None else Constant(self.beta)


@dataclass(frozen=True)
class SQLOptions(Options):
    """Speedy Q-learning (eq:sql-q)."""

    title: ClassVar[str] = "SQL"
    takes_beta: ClassVar[bool] = True
    made_by = staticmethod(lambda: SQL)


@dataclass(frozen=True)
class DPPOptions(Options):
    """Dynamic policy programming (eq:psi-dpp)."""

    title: ClassVar[str] = "DPP"
    made_by = staticmethod(dynamic_policy_programming)

    eta: Annotated[float | None, arg(metavar="X")] = None
    """η: the inverse temperature of the policy; None: the greedy limit (the paper's)."""
    form: Literal["log-sum-exp", "boltzmann"] = "log-sum-exp"
    """With η: the log-sum-exp form, or ⟨softmax(ηψ), ψ⟩, which Azar et al. (2012) analyse."""


@dataclass(frozen=True)
class Regularised(Options):
    """λ, τ and whether the evaluation is regularised."""

    lam: Annotated[float, arg(name="lambda", metavar="X")] = 0.01
    """λ: the weight of the KL divergence to the policy before."""
    tau: Real = 0.0
    """τ: the weight of the entropy."""
    evaluation: Evaluation = "regularised"
    """Whether the evaluation has the two terms of the greedy step as well, or is plain."""

    def algorithm(self) -> Algorithm:
        """MD-VI(λ, τ) or DA-VI(λ, τ)."""
        regularised = self.evaluation == "regularised"
        return type(self).made_by(self.lam, self.tau, regularised=regularised)


@dataclass(frozen=True)
class MDVIOptions(Regularised):
    """Mirror-descent value iteration: each policy is made from the one before."""

    title: ClassVar[str] = "MD-VI"
    made_by = staticmethod(family.mirror_descent)


@dataclass(frozen=True)
class DAVIOptions(Regularised):
    """Dual-averaging value iteration: the policy is made from the sum of the values."""

    title: ClassVar[str] = "DA-VI"
    made_by = staticmethod(family.dual_averaging)


@dataclass(frozen=True)
class MVIOptions(Options):
    """Munchausen value iteration (Vieillard, Pietquin, Geist 2020)."""

    title: ClassVar[str] = "M-VI"
    made_by = staticmethod(family.munchausen_value_iteration)

    alpha: Real = 0.9
    """α: the weight of the log-policy that is added to the reward."""
    tau: Real = 0.03
    """τ: the temperature of the policy."""


@dataclass(frozen=True)
class CVIOptions(Options):
    """Conservative value iteration (Kozuno, Uchibe, Doya 2019)."""

    title: ClassVar[str] = "CVI"
    made_by = staticmethod(family.conservative_value_iteration)

    alpha: Real = 0.9
    """α: how much of the gap between actions is kept; 1 is DPP."""
    eta: Real = 30.0
    """β' of that paper: the inverse temperature of the policy."""


@dataclass(frozen=True)
class ALOptions(Options):
    """Advantage learning (Baird 1999; Bellemare et al. 2016)."""

    title: ClassVar[str] = "AL"
    made_by = staticmethod(family.advantage_learning)

    alpha: Real = 0.9
    """α: how much of the gap between actions is kept; 1 is the greedy DPP, 0 is AVI."""


@dataclass(frozen=True)
class PolitexOptions(Options):
    """Politex (Abbasi-Yadkori et al. 2019), discounted."""

    title: ClassVar[str] = "Politex"
    made_by = staticmethod(family.politex)

    lam: Annotated[float, arg(name="lambda", metavar="X")] = 0.01
    """λ: the policy is softmax(Σ q / λ)."""
    sweeps: Sweeps = None
    """Evaluations of each policy, q ← (T_π)^m q; none: exactly."""


@dataclass(frozen=True)
class SoftenedLSPIOptions(Options):
    """Softened LSPI (Pérolat et al. 2016) with one player."""

    title: ClassVar[str] = "Softened LSPI"
    made_by = staticmethod(lambda beta, sweeps: family.softened_policy_iteration(sweeps))

    beta: Real = 0.9
    """β of the moving average h, for which the policy is greedy."""
    sweeps: Sweeps = None
    """Evaluations of each policy, q ← (T_π)^m q; none: exactly."""

    def schedule(self) -> Schedule:
        """The constant."""
        return Constant(self.beta)


@dataclass(frozen=True)
class MPIOptions(Options):
    """Modified policy iteration (Puterman and Shin 1978)."""

    title: ClassVar[str] = "MPI"
    made_by = staticmethod(family.modified_policy_iteration)

    sweeps: Sweeps = 5
    """m: evaluations of each policy; 1 is value iteration, none policy iteration."""

    def schedule(self) -> Schedule:
        """h is q itself."""
        return Constant(0.0)


@dataclass(frozen=True)
class AncVIOptions(Options):
    """Anchored value iteration (Lee and Ryu 2023)."""

    title: ClassVar[str] = "Anc-VI"
    made_by = staticmethod(family.anchored)

    anchor: Literal["optimal", "harmonic"] = "optimal"
    """The anchor's weight: 1/Σ γ^{−2i} (optimal), or 1/(k+1), the exact limit of DA-VI."""


SCHEMES: dict[str, type[Options]] = {
    "avi": AVIOptions,
    "movi": MoVIOptions,
    "sql": SQLOptions,
    "dpp": DPPOptions,
    "md-vi": MDVIOptions,
    "da-vi": DAVIOptions,
    "m-vi": MVIOptions,
    "cvi": CVIOptions,
    "advantage-learning": ALOptions,
    "politex": PolitexOptions,
    "softened-lspi": SoftenedLSPIOptions,
    "mpi": MPIOptions,
    "anc-vi": AncVIOptions,
}
"""Every scheme by its name."""
