"""The paper's experiments on Garnets (Section 7.1), with its numbers as defaults."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from momentum_rl.errors import MissingExtra, UserError, check_count
from momentum_rl.planning.bounds import table_text
from momentum_rl.plumbing.files import directory_to_write, write_aside, writing
from momentum_rl.plumbing.reading import as_json
from momentum_rl.plumbing.versions import NUMERIC, installed
from momentum_rl.version import __version__

if TYPE_CHECKING:
    from momentum_rl.mdp.model import FiniteMDP
    from paper.tables.family import Row


PRODUCTS = (
    ("printed", "j+1", "printed", "fixed_printed"),
    ("assumed", "j+1", "assumed", "fixed_assumed"),
    ("assumed", "j", "one_more", "fixed_assumed"),
)
"""The columns ``reading`` and ``lowest`` of ``assumption.csv``, and where their numbers are."""
PROGRAM = "python -m paper"
TOGETHER = 5_000
"""Restarts, of as many MDPs as that makes, that are in memory at once: 0.7 GB on Garnets."""


@dataclass(frozen=True, kw_only=True)
class Garnets(ABC):
    """The random MDPs of an experiment, and where its results go."""

    out: Path
    """Directory for the tables (.csv), what made them (.json) and the figures."""
    mdps: int = 100
    """Garnets (paper: 100)."""
    states: int = 30
    """N_S, states of a Garnet (paper: 30)."""
    actions: int = 4
    """N_A, actions (paper: 4)."""
    branching: int = 4
    """N_B, successors of each (s, a) (paper: 4)."""
    discount: float = 0.9
    """γ (the paper does not say)."""
    seed: int = 0
    """Seed of the Garnets and of the samples."""

    def garnets(self) -> "FiniteMDP":
        """The MDPs."""
        from momentum_rl.mdp.families import garnet

        return garnet(
            self.states,
            self.actions,
            self.branching,
            discount=self.discount,
            seed=self.seed,
            count=self.mdps,
        )

    @abstractmethod
    def columns(self, *, progress: bool = False) -> dict[str, np.ndarray]:
        """The experiment itself: the columns of its table."""

    def compute(self, *, progress: bool = False) -> Path:
        """Run the experiment and write its table; the path of the .csv."""
        directory_to_write(self.out)
        began = time.perf_counter()
        columns = self.columns(progress=progress)
        return write_table(self.out, self.table, columns, self._record(time.perf_counter() - began))

    def execute(self) -> None:
        """Compute the experiment, write and draw it, and say what is judged and described."""
        from momentum_rl.report.figure import check_drawing
        from paper.report import draw

        left_out = None
        try:
            check_drawing()
        except MissingExtra as missing:
            left_out = missing
            print(f"figures      left out: {missing}")
        path = self.compute(progress=True)
        print(f"written      {path}")
        if left_out is None:
            draw(path.parent, self.table)

    def _record(self, seconds: float) -> dict[str, Any]:
        """What made a table."""
        settings = {name: value for name, value in asdict(self).items() if name != "out"}
        return {
            "command": command_line(self),
            "config": settings,
            "seed": self.seed,
            "version": __version__,
            "versions": installed(NUMERIC),
            "seconds": round(seconds, 1),
        }

    @property
    def table(self) -> str:
        """The name of its table."""
        return type(self).__name__.lower()


@dataclass(frozen=True, kw_only=True)
class Compare(Garnets):
    """AVI, MoVI, SQL and DPP on random MDPs: ‖q* − q_{π_k}‖ at every iteration k."""

    iterations: int = 10_000
    """K, iterations of each scheme (the paper does not say; a figure's file name has 10000)."""
    samples: int = 1
    """Samples per (s, a) and iteration (paper: 1); 0 takes exact expectations."""
    errors: str | None = None
    """ε_k beside those of sampling, the same for all schemes (paper: none): gaussian:SIZE,
    bias:SIZE, heavy-tailed:SIZE or ar1:SIZE:CORRELATION."""
    average_errors: str | None = None
    """η_k, errors of the average of the schemes that have one (paper: none), in the same words."""
    schemes: tuple[str, ...] = ("avi", "movi", "sql", "dpp")
    """Which schemes, of avi, movi, sql, dpp, md-vi, da-vi, m-vi, cvi, advantage-learning, politex,
    softened-lspi, mpi and anc-vi; with options, if not the default: md-vi:lambda=0.1:tau=0.01. One
    with an entropy in its evaluation is judged by the optimum and the values that have it, too."""
    family: Literal["garnet", "maze"] = "garnet"
    """Another family of MDPs than Garnets, of --size; --states, --actions and --branching are the
    Garnets' alone."""
    size: int = 10
    """The size of a member of that family: see movi mdp NAME --help."""

    def garnets(self) -> "FiniteMDP":
        """The MDPs: Garnets, or members of the family with seeds from --seed on."""
        from momentum_rl.mdp.families import FAMILIES

        if self.family == "garnet":
            return super().garnets()
        chosen: Any = FAMILIES[self.family]
        return chosen(size=self.size, discount=self.discount, seed=self.seed).batch(self.mdps)

    @property
    def table(self) -> str:
        """The name of its table."""
        return "compare" if self.family == "garnet" else f"compare_{self.family}"

    def columns(self, *, progress: bool = False) -> dict[str, np.ndarray]:
        """Mean and standard deviation over the MDPs, for every scheme and iteration."""
        from momentum_rl.planning.comparison import compare_schemes

        result = compare_schemes(
            self.garnets(),
            self.schemes,
            iterations=self.iterations,
            samples=self.samples,
            errors=self.errors,
            average_errors=self.average_errors,
            seed=self.seed,
            progress=progress,
        )
        return {
            "scheme": np.repeat(result.schemes, self.iterations),
            "iteration": np.tile(np.arange(1, self.iterations + 1), len(result.schemes)),
            "l1_mean": result.l1.mean(-1).ravel(),
            "l1_std": result.l1.std(-1).ravel(),
            "sup_mean": result.sup.mean(-1).ravel(),
            "sup_std": result.sup.std(-1).ravel(),
        }


@dataclass(frozen=True, kw_only=True)
class Assumption(Garnets):
    """The check of Assumption 1: ε̄_{l,N} against the number N of restarts, in two readings.

    As printed (Section 7.1), MoVI is restarted from q_j and h_j; as assumed (Assumption 1), from
    q_{j−1} and h_{j−1}, so that iteration j and its error are repeated too.
    """

    iterations: tuple[int, ...] = (10, 100, 1000)
    """The values of j, the iteration whose error is followed (the paper does not say)."""
    lengths: tuple[int, ...] = (0, 1, 2, 5, 10)
    """The values of l, how many kernels the error is multiplied by (the paper does not say)."""
    restarts: int = 200
    """N goes from 1 to this (paper: 200)."""
    further: int = 0
    """As printed, at the first j, N goes on to this if it is more: 200 restarts do not tell a small
    limit from none."""

    def columns(self, *, progress: bool = False) -> dict[str, np.ndarray]:
        """Mean and standard deviation over the MDPs, for every reading, j, l and N.

        ``reading`` is printed or assumed. ``lowest`` is the last kernel of the product: j+1 for
        P_{j+l:j+1} ε_j, j for P_{j+l:j} ε_j. ``settled`` is the share of the MDPs on which the mean
        that is estimated is proven to be zero.
        """
        from paper.tables.assumption import assumption_check

        if not self.iterations:
            raise UserError("iterations: none, expected at least one j")
        for j in self.iterations:
            check_count("iterations", j)
        check_count("further", self.further, 0)
        garnets, checks = self.garnets(), {}
        for j in dict.fromkeys(self.iterations):
            restarts = max(self.restarts, self.further if j == self.iterations[0] else 0)
            checks[j] = assumption_check(
                garnets,
                iteration=j,
                lengths=self.lengths,
                restarts=restarts,
                seed=self.seed,
                batch=max(1, TOGETHER // max(1, restarts)),
                progress=progress,
            )
        rest = None, self.restarts, self.restarts  # as printed to the end
        groups = [
            (reading, lowest, j, length, estimates[:most], proven.mean())
            for (reading, lowest, name, fixed), most in zip(PRODUCTS, rest)
            for j, check in checks.items()
            for length, estimates, proven in zip(
                self.lengths, getattr(check, name), getattr(check, fixed)
            )
        ]
        rows = [len(group[4]) for group in groups]
        return {
            "reading": np.repeat([group[0] for group in groups], rows),
            "lowest": np.repeat([group[1] for group in groups], rows),
            "j": np.repeat([group[2] for group in groups], rows),
            "l": np.repeat([group[3] for group in groups], rows),
            "n": np.concatenate([np.arange(1, count + 1) for count in rows]),
            "mean": np.concatenate([group[4].mean(-1) for group in groups]),
            "std": np.concatenate([group[4].std(-1) for group in groups]),
            "settled": np.repeat([group[5] for group in groups], rows),
        }


@dataclass(frozen=True, kw_only=True)
class Bounds(Garnets):
    """The loss of every iteration beside each of the paper's bounds on it."""

    iterations: int = 500
    """K, iterations of each scheme; E'_{k,j} costs K·min(K, log 1e-8 / log γ) products."""
    delta: float = 0.1
    """δ of Proposition 1, which holds with probability 1 − δ."""
    constant_betas: tuple[float, ...] = (0.5, 0.9)
    """MoVI with these constant β, beside β_k = k/(k+1)."""

    def columns(self, *, progress: bool = False) -> dict[str, np.ndarray]:
        """Means over the MDPs of losses and bounds, for every iteration."""
        from paper.tables.ledger import losses_and_bounds

        return losses_and_bounds(
            self.garnets(),
            self.iterations,
            seed=self.seed,
            delta=self.delta,
            constant_betas=self.constant_betas,
            progress=progress,
        )


@dataclass(frozen=True, kw_only=True)
class Family(Garnets):
    """Regularised value iteration over a grid of KL and entropy weights ("Leverage the Average").

    The study of that paper's appendix D, with rewards uniform in (0, 1) at a tenth of the states:
    sampled MD-VI(λ, τ) with and without regularised evaluation, AVI, SQL and MoVI beside it.
    """

    discount: float = 0.9
    """γ (that paper: 0.9)."""
    iterations: int = 800
    """K, iterations of each scheme (that paper: 800)."""
    lambdas: tuple[float, ...] = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
    """Values of λ, the weight of the KL divergence."""
    taus: tuple[float, ...] = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    """Values of τ, the weight of the entropy (that paper: 0, and 0.001)."""

    def columns(self, *, progress: bool = False) -> dict[str, np.ndarray]:
        """Over the MDPs: mean and deviation of the relative error; loss, bound, where it holds."""
        from paper.tables.family import sparse_rewards, study

        mdps = sparse_rewards(self.garnets(), self.seed)
        at, rows = study(
            mdps, self.lambdas, self.taus, self.iterations, seed=self.seed, progress=progress
        )

        def each(name: str) -> np.ndarray:
            return np.repeat([getattr(row, name) for row in rows], len(at))

        def joined(values: "Callable[[Row], np.ndarray]") -> np.ndarray:
            return np.concatenate([values(row) for row in rows])

        return {
            "scheme": each("scheme"),
            "evaluation": each("evaluation"),
            "lambda": each("lam"),
            "tau": each("tau"),
            "iteration": np.tile(at, len(rows)),
            "error_mean": joined(lambda row: row.relative.mean(-1)),
            "error_std": joined(lambda row: row.relative.std(-1)),
            "loss_sup": joined(lambda row: row.sup.mean(-1)),
            "bound": joined(lambda row: row.bound.mean(-1)),
            "holds": joined(lambda row: (row.sup <= row.bound * (1 + 1e-9) + 1e-9).mean(-1)),
        }


@dataclass(frozen=True, kw_only=True)
class Averaging(Garnets):
    """Beyond the paper: the loss of MoVI whose average has errors of its own, by β.

    On Garnets at γ .9, .95 and .99, on Garnets with sparse rewards and on mazes. σ_q is the
    standard deviation of q about its mean in a run with an exact average.
    """

    mdps: int = 24
    """MDPs of each kind."""
    discount: float = 0.9
    """γ of the sparse Garnets and of the mazes."""
    discounts: tuple[float, ...] = (0.9, 0.95, 0.99)
    """γ of the Garnets, that of the others among them."""
    iterations: int = 1_500
    """K, iterations of each schedule."""
    settled: int = 900
    """The iterations after this one are judged."""
    ratios: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3, 0.5)
    """Sizes of the errors of h, as shares σ_η/σ_q."""
    betas: tuple[float, ...] = (
        *(0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88),
        *(0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 0.99),
    )
    """Constant β to compare with."""
    seed: int = 1
    """Seed of the MDPs, of the samples and of the errors."""

    def columns(self, *, progress: bool = False) -> dict[str, np.ndarray]:
        """Mean losses over the iterations from ``from`` to ``to``, by problem and schedule."""
        from momentum_rl.plumbing.progress import display
        from paper.tables.averaging import losses_by_beta, problems

        rows = []
        if self.discount not in self.discounts:
            raise UserError(f"discounts: {self.discounts}, expected {self.discount} among them")
        garnets = {gamma: replace(self, discount=gamma).garnets() for gamma in self.discounts}
        chosen = problems(garnets, self.discount, self.seed)
        with display("problems", len(chosen), show=progress) as shown:
            for name, mdps in chosen.items():
                for row in losses_by_beta(
                    mdps, self.betas, self.ratios, self.iterations, self.settled, seed=self.seed
                ):
                    rows.append({"problem": name, **row})
                shown.advance()
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def command_line(experiment: Garnets) -> str:
    """The complete command of an experiment, every number spelled out, but for where it writes."""
    parts = [f"{PROGRAM} {type(experiment).__name__.lower()}"]
    for field in fields(experiment):
        value = getattr(experiment, field.name)
        text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        parts.append(f"--{field.name.replace('_', '-')} {'DIR' if field.name == 'out' else text}")
    return " ".join(parts)


def write_table(
    directory: Path, name: str, columns: Mapping[str, Sequence[Any] | np.ndarray], made_by: Any
) -> Path:
    """Write ``name.csv`` and ``name.json``, each aside and then renamed into place."""
    path = directory / f"{name}.csv"
    with writing(path):
        directory.mkdir(parents=True, exist_ok=True)
        write_aside(directory / f"{name}.json", as_json(made_by, indent=2) + "\n")
        write_aside(path, table_text(columns))
    return path
