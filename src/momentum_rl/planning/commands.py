"""`movi solve`: one MDP from a file, by a method or by a scheme of the paper.

Heavy parts are imported where they are used, so that the help needs none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import tyro
from tyro.conf import Positional, arg

from momentum_rl.errors import ToleranceMissed, UserError, check_count
from momentum_rl.plumbing.arguments import value_of

if TYPE_CHECKING:
    from momentum_rl.mdp.model import FiniteMDP
    from momentum_rl.mdp.solve.solution import Solution

File = Annotated[Path, arg(metavar="FILE")]
Number = Annotated[int | None, arg(metavar="N")]
Real = Annotated[float | None, arg(metavar="X")]
NOTICED = (
    1e-12  # beyond the rounding of a sum: probabilities in float32, or written with few digits
)


def _with_written_names(kind: Any) -> Any:
    """A scheme's options under the names that are written."""
    from momentum_rl.core.catalogue import WRITTEN

    hints = get_type_hints(kind, include_extras=True)
    renamed = [
        (name, Annotated[hints[name], arg(name=written)], field(default=getattr(kind, name)))
        for name, written in WRITTEN.items()
        if name in hints
    ]
    namespace = {"__doc__": kind.__doc__}
    return make_dataclass(kind.__name__, renamed, bases=(kind,), frozen=True, namespace=namespace)


@dataclass(frozen=True, kw_only=True)
class Solve:
    """Solve a finite MDP, by the method that suits it or by a scheme of the paper; certified.

    The scheme's own options are shown with its name: movi solve --scheme md-vi --help.
    If the tolerance was not reached, the answer is still printed and written; exit status 3.
    """

    file: Positional[File]
    """An .npz with successors [S, A, B], probabilities [S, A, B], rewards [S, A] and discount."""
    discount: Real = None
    """γ, in place of the file's. It may be 1 where all steps cost until a state that is never
    left."""
    minimise: bool = False
    """The rewards are costs: their sign is turned."""
    method: Literal["auto", "vi", "mpi", "pi", "ipi"] = "auto"
    """Value iteration, modified policy iteration, policy iteration, or inexact policy iteration (a
    Krylov method inside); auto looks at the problem and says what it chose."""
    scheme: Annotated[str | None, arg(metavar="NAME")] = None
    """A scheme of the paper or of its family instead, of those listed above, with its options after
    it or as in m-vi:tau=0.1 (default with --sampled or --iterations: avi)."""
    sampled: bool = False
    """Sample successors instead of taking expectations over them."""
    samples: int = 1
    """Samples per (s, a) and iteration, with --sampled (paper: 1)."""
    iterations: Number = None
    """At most this many iterations of a scheme (default: 10,000)."""
    horizon: Number = None
    """Solve for this many steps instead, by backward induction."""
    tolerance: Real = None
    """Stop when ‖q − q*‖∞ is proven to be at most this (default: 1e-6; --sampled: never)."""
    seed: int = 0
    """Seed of the samples."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write an .npz with q [S, A], policy ([S], or the probabilities [S, A] of a soft one), bound
    (the certificate) and tau (0: of q*)."""

    @classmethod
    def given(cls, arguments: Sequence[str]) -> "tuple[type[Solve], Solve]":
        """The command with the options of the scheme that is named, if one is."""
        name = value_of(arguments, "--scheme")
        if name is None:
            return cls, cls(file=tyro.MISSING)
        from momentum_rl.core.catalogue import TABLES, options_of
        from momentum_rl.core.options import TITLES

        named = options_of(name, (name.partition(":")[0],))  # a module that the user names
        kind = _with_written_names(type(named))
        options = kind(**vars(named))
        title = TITLES.get(name.partition(":")[0]) or named.title or name
        chosen = make_dataclass(
            cls.__name__,
            [("options", Annotated[kind, arg(name=title)], field(default=options))],
            bases=(cls,),
            frozen=True,
            namespace={"__doc__": f"{cls.__doc__}\nSchemes: {', '.join(TABLES)}."},
        )
        return chosen, chosen(file=tyro.MISSING, options=options)

    @classmethod
    def hint(cls, arguments: Sequence[str]) -> str:
        """The options that the scheme among these arguments has of its own."""
        from momentum_rl.core.catalogue import options_of, written_options

        name = value_of(arguments, "--scheme")
        if name is None:
            return "a scheme's own options need its name, as in --scheme md-vi"
        options = [
            f"--{option}"
            for option in written_options(type(options_of(name, (name.partition(":")[0],))))
        ]
        if not options:
            return f"{name} has none of its own"
        return f"{name}'s own are {', '.join(options)}"

    def execute(self) -> None:
        """Solve, print, write."""
        import numpy as np

        from momentum_rl.mdp.files import load_mdp, npz_to_write, write_arrays
        from momentum_rl.mdp.solve.solution import policy_value

        if self.out is not None and npz_to_write(self.out) == self.file.resolve():
            raise UserError(f"out: {self.out} is the MDP itself, expected another file")
        check_count("samples", self.samples)
        check_count("iterations", self.iterations)
        check_count("horizon", self.horizon)
        given = 0.0 if self.discount == 1 else self.discount  # which plays no part at 1
        mdp = load_mdp(self.file, discount=given, minimise=self.minimise)
        if self.horizon is not None or self.discount == 1:
            self._with_an_end(mdp)
            return
        solution = self._solution(mdp)
        worth = policy_value(mdp, solution)
        print(f"problem      {mdp}")
        print(self._how(solution))
        optimum, value = ("q^τ_*", "q^τ_π") if solution.tau else ("q*", "q_π")
        print(f"certificate  ‖q − {optimum}‖∞ ≤ {solution.bound:.3g}{_reached(solution)}")
        if solution.tau:
            print(f"optimum      {_bias(mdp, solution.tau)}")
        print(f"policy       mean value over states {worth.mean:.6g}", end="")
        print(f", ‖{optimum} − {value}‖∞ ≤ {worth.loss_bound:.3g}")
        if self.out is not None:
            write_arrays(
                self.out,
                {
                    "q": solution.q,
                    "policy": solution.policy,
                    "bound": np.array(solution.bound),
                    "tau": np.array(solution.tau),
                },
            )
            print(f"written      {self.out}")
        if solution.tolerance is not None and not solution.converged:
            raise ToleranceMissed(_missed(solution, self.sampled))

    def _with_an_end(self, mdp: "FiniteMDP") -> None:
        """A horizon, or total reward until absorption."""
        from momentum_rl.mdp.files import write_arrays
        from momentum_rl.mdp.solve.horizons import finite_horizon, total_reward

        if not self._by_method() or self.method != "auto":
            raise UserError("scheme: none and no method, expected with --horizon or --discount 1")
        shown = str(mdp) if self.discount != 1 else f"{str(mdp).removesuffix('0)')}1)"
        converged, tolerance = True, 1e-6 if self.tolerance is None else self.tolerance
        if self.horizon is not None:
            answer = finite_horizon(mdp, self.horizon, discount=self.discount)
            print(f"problem      {shown}")
            print(f"method       backward induction over {self.horizon:,} steps")
            print(f"policy       mean value over states {answer.v[0].mean():.6g}")
            arrays = {"v": answer.v, "policy": answer.policy}
        else:
            total = total_reward(mdp, tolerance=tolerance)
            finite, converged = total.v > float("-inf"), total.converged
            print(f"problem      {shown}")
            print(
                f"method       policy iteration, total reward; {finite.sum():,} states end surely"
            )
            print(f"certificate  ‖v − v*‖∞ ≤ {total.bound:.3g} there")
            print(f"policy       mean value over them {total.v[finite].mean():.6g}")
            arrays = {"v": total.v, "policy": total.policy}
        if self.out is not None:
            write_arrays(self.out, arrays)
            print(f"written      {self.out}")
        if not converged:
            raise ToleranceMissed(f"tolerance: {tolerance:g}, reached {total.bound:.2g}")

    def _by_method(self) -> bool:
        return self.scheme is None and not self.sampled and self.iterations is None

    def _solution(self, mdp: "FiniteMDP") -> "Solution":
        if self._by_method():
            # Without the schemes' compiled engine: a small problem then needs no JAX at all.
            from momentum_rl.mdp.solve.solution import solution

            return solution(mdp, method=self.method, tolerance=self.tolerance)
        from momentum_rl.planning.solver import solve
        from momentum_rl.plumbing.sizes import require

        if self.sampled:
            cells = mdp.states * mdp.actions
            require(f"{self.samples:,} samples of each (s, a)", memory=16 * self.samples * cells)
        return solve(
            mdp,
            getattr(self, "options", self.scheme),
            method=self.method,
            sampled=self.sampled,
            samples=self.samples,
            iterations=10_000 if self.iterations is None else self.iterations,
            tolerance=self.tolerance,
            seed=self.seed,
            progress=True,
        )

    def _how(self, solution: "Solution") -> str:
        many = f"{solution.iterations:,} iterations"
        if not self._by_method():
            exactly = f"sampled, m = {self.samples}, seed {self.seed}" if self.sampled else "exact"
            return f"scheme       {solution.scheme} ({exactly}), {many}"
        chosen = f" (auto: {solution.why})" if self.method == "auto" else ""
        evaluated = f", {solution.evaluations:,} policies evaluated" if solution.evaluations else ""
        return f"method       {solution.scheme}{chosen}, {many}{evaluated}"


def _bias(mdp: "FiniteMDP", tau: float) -> str:
    """Which optimum it is, and how far it may be from that of the MDP itself."""
    from momentum_rl.mdp.solve.regularised import entropy_bias

    return (
        f"q^τ_* has τ = {tau:g} times the policy's entropy in its reward: "
        f"‖q^τ_* − q*‖∞ ≤ τ ln A / (1 − γ) = {float(entropy_bias(mdp, tau)):.3g}"
    )


def _reached(solution: "Solution") -> str:
    if solution.tolerance is None:
        return ""
    word = "reached" if solution.converged else "NOT reached"
    return f" (tolerance {solution.tolerance:g} {word})"


def _limit(mdp: "FiniteMDP") -> str:
    """What keeps a certificate from being smaller."""
    if mdp.missed > NOTICED:
        return f"probabilities that miss 1 by {mdp.missed:.1e}"
    return "rewards and values of this size"


def _missed(solution: "Solution", sampled: bool) -> str:
    """Why the tolerance was not reached, and what would help."""
    assert solution.tolerance is not None
    if solution.tolerance < solution.floor:
        less = f"with {_limit(solution.mdp)} float64 proves hardly less"
        return f"tolerance: {solution.tolerance:g}, reached {solution.bound:.2g}: {less}"
    line = f"tolerance: {solution.tolerance:g}, not reached in {solution.iterations:,} iterations"
    if sampled:
        return f"{line}; --samples averages more, and without --sampled there is no noise"
    return (
        line
        if solution.scheme not in ("movi", "sql", "dpp")
        else f"{line}; --scheme avi needs the fewest"
    )
