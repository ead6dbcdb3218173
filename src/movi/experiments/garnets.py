"""The paper's experiments on Garnets (Section 7.1), with its numbers as defaults."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from movi.experiments.results import check_directory, record, write_table

if TYPE_CHECKING:
    from movi.mdp import FiniteMDP


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
    """Of the Garnets and of the samples."""

    def garnets(self) -> "FiniteMDP":
        """The MDPs."""
        from movi.mdp import garnet

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
        check_directory(self.out)
        began = time.perf_counter()
        columns = self.columns(progress=progress)
        name = type(self).__name__.lower()
        made_by = record(f"movi garnets {name}", self, time.perf_counter() - began)
        return write_table(self.out, name, columns, made_by)


@dataclass(frozen=True, kw_only=True)
class Compare(Garnets):
    """AVI, MoVI, SQL and DPP on random MDPs: ‖q* − q_{π_k}‖ at every iteration k."""

    iterations: int = 10_000
    """K, iterations of each scheme (paper: 10,000)."""
    samples: int = 1
    """Samples per (s, a) and iteration (paper: 1); 0 takes exact expectations."""
    schemes: tuple[str, ...] = ("avi", "movi", "sql", "dpp")
    """Which schemes, of avi, movi, sql, dpp."""

    def columns(self, *, progress: bool = False) -> dict[str, np.ndarray]:
        """Mean and standard deviation over the MDPs, for every scheme and iteration."""
        from movi.planning import compare

        result = compare(
            self.garnets(),
            self.schemes,
            iterations=self.iterations,
            samples=self.samples,
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
    """The check of Assumption 1: ε̄_{l,N} against the number N of restarts."""

    iteration: int = 10
    """j, the iteration whose error is followed (the paper does not say)."""
    lengths: tuple[int, ...] = (0, 1, 2, 5, 10)
    """The values of l, how many kernels the error is multiplied by (the paper does not say)."""
    restarts: int = 200
    """N goes from 1 to this (paper: 200)."""

    def columns(self, *, progress: bool = False) -> dict[str, np.ndarray]:
        """Mean and standard deviation over the MDPs, for every l and N."""
        from movi.planning.assumption import assumption_check

        estimates = assumption_check(
            self.garnets(),
            iteration=self.iteration,
            lengths=self.lengths,
            restarts=self.restarts,
            seed=self.seed,
            progress=progress,
        )
        return {
            "l": np.repeat(self.lengths, self.restarts),
            "n": np.tile(np.arange(1, self.restarts + 1), len(self.lengths)),
            "mean": estimates.mean(-1).ravel(),
            "std": estimates.std(-1).ravel(),
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
        from movi.planning.ledger import losses_and_bounds

        return losses_and_bounds(
            self.garnets(),
            self.iterations,
            seed=self.seed,
            delta=self.delta,
            constant_betas=self.constant_betas,
            progress=progress,
        )
