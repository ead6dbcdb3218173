"""`movi bounds`: MoVI on one's own MDP, its loss beside Theorem 1, term by term.

Heavy parts are imported where they are used, so that the help needs none of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from momentum_rl.errors import UserError
from momentum_rl.plumbing.files import file_to_write, write_aside, writing

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """MoVI's loss on a finite MDP beside Theorem 1, for any β and with errors of the average.

    Columns: iteration n; beta, of the average that its policy is read from (0 at first); and sup
    norms: loss of that policy; theorem_1, the largest entry of the bound; supremum, the next six
    added up, over 1 − γ. On the upper side drift of q, noise of q, errors of h; on the lower side
    what is left of the start, noise, errors of h.
    """

    file: Positional[Annotated[Path, arg(metavar="FILE")]]
    """An .npz with an MDP, as for movi solve."""
    beta: Annotated[float | None, arg(metavar="X")] = None
    """A constant β (default: β_k = k/(k+1))."""
    beta_max: Annotated[float | None, arg(metavar="X")] = None
    """The largest β_k."""
    iterations: int = 500
    """K."""
    samples: int = 1
    """Samples per (s, a) and iteration; 0 takes exact expectations."""
    errors: Annotated[str | None, arg(metavar="KIND:SIZE")] = None
    """ε_k beside those of sampling: gaussian:SIZE, bias:SIZE, heavy-tailed:SIZE or
    ar1:SIZE:CORRELATION."""
    average_errors: Annotated[str | None, arg(metavar="KIND:SIZE")] = None
    """η_k, errors of the average, in the same words."""
    seed: int = 0
    """Seed of samples and errors."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write all iterations as a .csv."""

    def execute(self) -> None:
        """Run, print some iterations, write all."""
        from momentum_rl.core.targets import MomentumValueIteration
        from momentum_rl.mdp.files import load_mdp
        from momentum_rl.planning.engine import scheme
        from momentum_rl.planning.theory import beside_theorem_1, trace

        if self.out is not None and file_to_write(self.out) == self.file.resolve():
            raise UserError(f"out: {self.out} is the MDP itself, expected another file")
        options = MomentumValueIteration(beta=self.beta, beta_max=self.beta_max)
        mdp = load_mdp(self.file)
        run = trace(
            mdp.as_batch(),
            scheme(options),
            self.iterations,
            seed=self.seed,
            samples=self.samples,
            errors=self.errors,
            average_errors=self.average_errors,
        )
        columns = beside_theorem_1(mdp.as_batch(), run)
        print(f"problem      {mdp}")
        print(" ".join(f"{name:>13}" for name in columns))
        for row in zip(*(column[_shown(self.iterations)] for column in columns.values())):
            print(" ".join(f"{x:>13.4g}" for x in row))
        if self.out is not None:
            with writing(self.out):
                write_aside(self.out, table_text(columns))
            print(f"written      {self.out}")


def _shown(iterations: int) -> "list[int]":
    """The rows of iterations 1, 2, 5, 10, …, and of the last."""
    marks = [m * 10**e for e in range(12) for m in (1, 2, 5)]
    return [n - 1 for n in marks if n < iterations] + [iterations - 1]


def table_text(columns: "Mapping[str, Sequence[Any] | np.ndarray]") -> str:
    """A table of columns as CSV; numbers with ten digits."""
    rows = zip(*(_texts(column) for column in columns.values()))
    return "\n".join([",".join(columns), *(",".join(row) for row in rows)]) + "\n"


def _texts(column: "Sequence[Any] | np.ndarray") -> list[str]:
    import numpy as np

    array = np.asarray(column)
    if array.dtype.kind == "f":
        return [f"{x:.10g}" for x in array.tolist()]
    return [str(x) for x in array.tolist()]
