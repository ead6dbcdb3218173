"""The paper's experiments on Garnets (Section 7.1), with its numbers as defaults."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from movi.experiments.results import check_directory, record, write_table

if TYPE_CHECKING:
    from movi.mdp import FiniteMDP


@dataclass(frozen=True, kw_only=True)
class Compare:
    """AVI, MoVI, SQL and DPP on random MDPs: ‖q* − q_{π_k}‖ at every iteration k."""

    out: Path
    """Directory for compare.csv, compare.json and the figures."""
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
    iterations: int = 10_000
    """K, iterations of each scheme (paper: 10,000)."""
    samples: int = 1
    """Samples per (s, a) and iteration (paper: 1); 0 takes exact expectations."""
    seed: int = 0
    """Of the Garnets and of the samples."""
    schemes: tuple[str, ...] = ("avi", "movi", "sql", "dpp")
    """Which schemes, of avi, movi, sql, dpp."""

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

    def run(self) -> None:
        """Compute, write, draw, and say where it is."""
        print(f"written      {self.compute(progress=True)}")

    def compute(self, *, progress: bool = False) -> Path:
        """Write the table: mean and standard deviation over the MDPs."""
        from movi.planning import compare

        check_directory(self.out)
        began = time.perf_counter()
        result = compare(
            self.garnets(),
            self.schemes,
            iterations=self.iterations,
            samples=self.samples,
            seed=self.seed,
            progress=progress,
        )
        columns = {
            "scheme": np.repeat(result.schemes, self.iterations),
            "iteration": np.tile(np.arange(1, self.iterations + 1), len(result.schemes)),
            "l1_mean": result.l1.mean(-1).ravel(),
            "l1_std": result.l1.std(-1).ravel(),
            "sup_mean": result.sup.mean(-1).ravel(),
            "sup_std": result.sup.std(-1).ravel(),
        }
        made_by = record("movi garnets compare", self, time.perf_counter() - began)
        return write_table(self.out, "compare", columns, made_by)
