"""The command line: parse, call, print. Heavy parts are imported where they are used."""

import contextlib
import io
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import Positional, arg

from movi.arguments import value_of
from movi.errors import Interrupted, ToleranceMissed, UserError, check_count, one_line
from movi.signals import listening
from movi.version import __version__

if TYPE_CHECKING:
    from movi.mdp.model import FiniteMDP
    from movi.mdp.solutions import Solution

File = Annotated[Path, arg(metavar="FILE")]
Number = Annotated[int | None, arg(metavar="N")]
Real = Annotated[float | None, arg(metavar="X")]


@dataclass(frozen=True)
class Solve:
    """Solve a finite MDP, by the method that suits it or by a scheme of the paper; certified.

    The scheme's own options are shown with its name: movi solve --scheme md-vi --help.
    Exit status 3 if the tolerance was not reached: the answer is printed and written all the same.
    """

    file: Positional[File]
    """An .npz with successors [S, A, B], probabilities [S, A, B], rewards [S, A] and discount; or a
    .umb (Storm, PRISM, Modest), a .tra (PRISM, rewards beside it) or a .petsc (madupite)."""
    discount: Real = None
    """γ where the file has none, or another than the file's; 1 where all steps cost until a state
    that is never left."""
    reward: Annotated[str | None, arg(metavar="NAME")] = None
    """Which rewards, where a .umb has several."""
    minimise: bool = False
    """The rewards are costs: values are then minus the costs."""
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
    devices: Number = None
    """Value iteration on so many devices: GPUs, or CPU devices of this process."""
    cluster: Annotated[str | None, arg(metavar="HOST:PORT/I/N")] = None
    """Process I of N on several hosts, with --devices for those of all; process 0 prints."""
    horizon: Number = None
    """Solve for so many steps instead, by backward induction."""
    tolerance: Real = None
    """Stop when ‖q − q*‖∞ is proven to be at most this (default: 1e-6; --sampled: never)."""
    seed: int = 0
    """Of the samples."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write an .npz with q [S, A], policy ([S], or the probabilities [S, A] of a soft one), bound
    (the certificate) and tau (0: of q*)."""

    @classmethod
    def given(cls, arguments: Sequence[str]) -> "tuple[type[Solve], Solve]":
        """The command with the options of the scheme that is named, if one is."""
        name = value_of(arguments, "--scheme")
        if name is None:
            return cls, cls(file=tyro.MISSING)
        from movi.planning.options import SCHEMES
        from movi.planning.schemes import options_of

        own = options_of(name)
        chosen = make_dataclass(
            cls.__name__,
            [("options", type(own), field(default=own))],
            bases=(cls,),
            frozen=True,
            namespace={"__doc__": f"{cls.__doc__}\nSchemes: {', '.join(SCHEMES)}."},
        )
        return chosen, chosen(file=tyro.MISSING, options=own)

    @classmethod
    def hint(cls, arguments: Sequence[str]) -> str:
        """The options that the scheme among these arguments has of its own."""
        from movi.planning.schemes import option_names, options_of

        name = value_of(arguments, "--scheme")
        if name is None:
            return "a scheme's own options need its name, as in --scheme md-vi"
        own = [f"--{option}" for option in option_names(type(options_of(name)))]
        return f"{name}'s own are {', '.join(own)}" if own else f"{name} has none of its own"

    def execute(self) -> None:
        """Solve, print, write."""
        import numpy as np

        from movi.files import file_to_write
        from movi.mdp.files import write_arrays
        from movi.mdp.formats import load_mdp
        from movi.mdp.solutions import TOLERANCE, policy_value, rounding_floor

        if self.out is not None:
            file_to_write(self.out)
        check_count("samples", self.samples)
        check_count("iterations", 1 if self.iterations is None else self.iterations)
        check_count("horizon", 1 if self.horizon is None else self.horizon)
        given = 0.0 if self.discount == 1 else self.discount  # which plays no part at 1
        mdp = load_mdp(self.file, discount=given, reward=self.reward, minimise=self.minimise)
        if self.horizon is not None or self.discount == 1:
            self._with_an_end(mdp)
            return
        if mdp.batch is None and not (self.sampled and self.tolerance is None):
            tolerance = TOLERANCE if self.tolerance is None else self.tolerance
            if 0 < tolerance < (floor := rounding_floor(mdp)):
                said = _out_of_reach(tolerance, floor)
                print(f"movi: {said}; solving as near as it can", file=sys.stderr)
        first = self._join()
        solution = self._solution(mdp)
        if not first:
            return
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

    def _join(self) -> bool:
        """Several devices, before JAX is used; whether this process is the one that prints."""
        if self.devices is None:
            if self.cluster is not None:
                raise UserError("cluster: without --devices, expected how many there are in all")
            return True
        check_count("devices", self.devices)
        if self.cluster is not None:
            from movi.mdp.sharding import join

            return join(self.cluster) == 0
        os.environ.setdefault("JAX_NUM_CPU_DEVICES", str(self.devices))
        return True

    def _with_an_end(self, mdp: "FiniteMDP") -> None:
        """A horizon, or total reward until absorption."""
        from movi.mdp.episodes import finite_horizon, total_reward
        from movi.mdp.files import write_arrays

        if self.scheme is not None or self.sampled or self.method != "auto":
            raise UserError("scheme: none and no method, expected with --horizon or --discount 1")
        print(f"problem      {mdp}")
        if self.horizon is not None:
            answer = finite_horizon(mdp, self.horizon, discount=self.discount)
            print(f"method       backward induction over {self.horizon:,} steps")
            print(f"policy       mean value over states {answer.v[0].mean():.6g}")
            arrays = {"v": answer.v, "policy": answer.policy}
        else:
            total = total_reward(mdp, tolerance=1e-6 if self.tolerance is None else self.tolerance)
            finite = total.v > float("-inf")
            print(
                f"method       policy iteration, total reward; {finite.sum():,} states end surely"
            )
            print(f"certificate  ‖v − v*‖∞ ≤ {total.bound:.3g} there")
            print(f"policy       mean value over them {total.v[finite].mean():.6g}")
            arrays = {"v": total.v, "policy": total.policy}
        if self.out is not None:
            write_arrays(self.out, arrays)
            print(f"written      {self.out}")

    def _by_method(self) -> bool:
        return self.scheme is None and not self.sampled and self.iterations is None

    def _solution(self, mdp: "FiniteMDP") -> "Solution":
        if self._by_method():
            # Without the schemes' compiled engine: a small problem then needs no JAX at all.
            from movi.mdp.solutions import solution

            return solution(mdp, method=self.method, tolerance=self.tolerance, devices=self.devices)
        if self.devices is not None:
            raise UserError("devices: with a scheme, expected none: --devices is value iteration")
        from movi.planning import solve
        from movi.sizes import require

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
    """Which optimum it is, and how far it is from that of the MDP itself."""
    from movi.mdp.regularised import entropy_bias

    return (
        f"q^τ_* has τ = {tau:g} times the policy's entropy in its reward: "
        f"‖q^τ_* − q*‖∞ ≤ τ ln A / (1 − γ) = {float(entropy_bias(mdp, tau)):.3g}"
    )


def _reached(solution: "Solution") -> str:
    if solution.tolerance is None:
        return ""
    word = "reached" if solution.converged else "NOT reached"
    return f" (tolerance {solution.tolerance:g} {word})"


def _missed(solution: "Solution", sampled: bool) -> str:
    """Why the tolerance was not reached, and what would help."""
    assert solution.tolerance is not None
    if solution.tolerance < solution.floor:
        return f"{_out_of_reach(solution.tolerance, solution.floor)}; reached {solution.bound:.2g}"
    line = f"tolerance: {solution.tolerance:g}, not reached in {solution.iterations:,} iterations"
    if solution.needed is None:
        line += "; the bound falls no further" if solution.iterations > 3 else ""
    else:
        line += f"; about {solution.needed:,} would be needed (--iterations)"
    if sampled:
        return f"{line}; --samples averages more, and without --sampled there is no noise"
    return (
        line
        if solution.scheme not in ("movi", "sql", "dpp")
        else f"{line}; --scheme avi needs the fewest"
    )


def _out_of_reach(tolerance: float, floor: float) -> str:
    return (
        f"tolerance: {tolerance:g}, expected at least {4 * floor:.2g}: with rewards and values "
        "of this size float64 can prove no less"
    )


@dataclass(frozen=True, kw_only=True)
class Garnet:
    """Generate a Garnet, the random MDP of the paper, into a file that `movi solve` reads."""

    out: Annotated[Path, arg(metavar="FILE")]
    """The .npz to write."""
    states: int = 30
    """N_S (paper: 30)."""
    actions: int = 4
    """N_A (paper: 4)."""
    branching: int = 4
    """N_B, distinct successors of each (s, a) (paper: 4)."""
    discount: float = 0.9
    """γ (the paper does not say)."""
    seed: int = 0
    """The same seed gives the same MDP."""

    def execute(self) -> None:
        """Generate and write."""
        from movi.files import file_to_write
        from movi.mdp import garnet, save_mdp

        file_to_write(self.out)
        mdp = garnet(
            self.states, self.actions, self.branching, discount=self.discount, seed=self.seed
        )
        save_mdp(mdp, self.out)
        print(f"written      {self.out}: {mdp}")


@dataclass(frozen=True)
class Report:
    """Turn a directory of results into one self-contained HTML page, and figures for papers."""

    directory: Positional[Annotated[Path, arg(metavar="DIR")]]
    """What the `movi garnets …` commands wrote, and what `movi train` and `movi sweep` did anywhere
    below it."""
    out: Annotated[Path | None, arg(metavar="PAGE")] = None
    """The page; figures go beside it (default: DIR/report.html)."""
    reference: Annotated[tuple[Path, ...], arg(metavar="FILE …")] = ()
    """Published curves to lay over those of Atari games: Dopamine's JSON (one file per game), or a
    CSV with game, variant, run, iteration, train_return."""
    game: Annotated[str | None, arg(metavar="NAME")] = None
    """The game that is drawn large (default: SpaceInvaders, as in the paper; else the first)."""
    format: tuple[Literal["pdf", "png", "svg"], ...] = ("pdf", "png", "svg")
    """What the figures are written as."""

    def execute(self) -> None:
        """Write the page and say where it is."""
        from movi.reports import write_report

        page = write_report(
            self.directory,
            self.out,
            references=self.reference,
            game=self.game,
            formats=self.format,
            notify=lambda line: print(f"movi: {one_line(line)}", file=sys.stderr),
        )
        print(f"report       {page}")


# Each command is a frozen dataclass with a docstring, documented fields and `execute()`; it is
# imported when it is called, so that no command pays for another.
COMMANDS = {
    "solve": "movi.cli:Solve",
    "garnet": "movi.cli:Garnet",
    "mdp maze": "movi.mdp.commands:Maze",
    "mdp inventory": "movi.mdp.commands:Inventory",
    "mdp queue": "movi.mdp.commands:Queue",
    "mdp replacement": "movi.mdp.commands:Replacement",
    "mdp forest": "movi.mdp.commands:Forest",
    "mdp pendulum": "movi.mdp.commands:Pendulum",
    "mdp epidemic": "movi.mdp.commands:Epidemic",
    "simulate": "movi.mdp.commands:Simulate",
    "convert": "movi.mdp.commands:Convert",
    "garnets compare": "movi.planning.experiments:Compare",
    "garnets assumption": "movi.planning.experiments:Assumption",
    "garnets bounds": "movi.planning.experiments:Bounds",
    "garnets family": "movi.planning.experiments:Family",
    "train": "movi.training.commands:Train",
    "resume": "movi.training.commands:Resume",
    "evaluate": "movi.training.commands:Evaluate",
    "record": "movi.training.commands:Record",
    "export": "movi.training.commands:Export",
    "sweep": "movi.sweeps.commands:RunSweep",
    "status": "movi.sweeps.commands:ShowStatus",
    "report": "movi.cli:Report",
}


def command(words: str) -> Any:
    """The dataclass of a command."""
    module, _, name = COMMANDS[words].partition(":")
    return getattr(import_module(module), name)


def overview(prefix: str = "") -> str:
    """What `movi --help` prints: every command with its first line."""
    width = max(map(len, COMMANDS))
    lines = [f"usage: movi {prefix or 'COMMAND'} …", ""]
    if not prefix:
        lines[1:] = ["", "Momentum in Reinforcement Learning: MoVI and Momentum-DQN.", ""]
    for words in COMMANDS:
        if words.startswith(prefix):
            lines.append(f"  movi {words:{width}}  {command(words).__doc__.splitlines()[0]}")
    return "\n".join([*lines, "", "movi COMMAND --help tells all options; movi --version."])


def parse(arguments: Sequence[str]) -> tuple[str, Any]:
    """A command's words, and the command with its options; a mistake is one line (UserError)."""
    matches = [w for w in COMMANDS if list(arguments[: len(w.split())]) == w.split()]
    if not matches:
        groups = [w for w in COMMANDS if w.startswith(f"{arguments[0]} ")] if arguments else []
        if set(arguments[len(groups) > 0 :]) & {"-h", "--help"} or (groups and len(arguments) == 1):
            print(overview(f"{arguments[0]} " if groups else ""))
            sys.exit(0)
        given = " ".join(arguments[: 2 if groups else 1]) or "nothing"
        raise UserError(f"command: {given!r}, expected one of {', '.join(groups or COMMANDS)}")
    words = matches[0]
    chosen, rest = command(words), list(arguments[len(words.split()) :])
    defaults = {}
    if hasattr(chosen, "given"):  # a command whose options depend on its words
        chosen, defaults["default"] = chosen.given(rest)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return words, tyro.cli(
                chosen,
                prog=f"movi {words}",
                args=rest,
                **defaults,
                config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        line = _one_line(said.getvalue())
        if line.startswith("Unrecognized") and hasattr(chosen, "hint"):
            line += f"; {chosen.hint(rest)}"
        raise UserError(f"{line} (see movi {words} --help)") from None


def _one_line(box: str) -> str:
    """What tyro's box says: its text up to the first rule, and the option it suggests.

    Where the terminal has no lines to draw with, the box is of ``-``, ``|`` and ``+``.
    """
    lines = [line.strip("│╭╮╰╯|+ ") for line in box.splitlines()[1:-1]]
    lines = ["" if re.fullmatch(r"[─-]+", line) else line for line in lines]
    said = "\n".join(lines).strip().partition("\n\n")[0]
    text = re.sub(r" Got errors:.*", "", " ".join(said.split()))
    text = re.sub(r"^Error parsing \w+: (?=\w+: )", "", text)
    meant = re.search(r"Perhaps you meant:?\s+(--[\w-]+)", " ".join(lines))
    return f"{text}; did you mean {meant[1]}?" if meant else text


def perform(chosen: Any) -> None:
    """Run a command; an experiment is computed, written, drawn, and judged or described."""
    if not hasattr(chosen, "compute"):
        chosen.execute()
        return
    from movi.reports import draw

    path = chosen.compute(progress=True)
    print(f"written      {path}")
    files, remarks = draw(path.parent, chosen.made_by)
    print(f"figures      {', '.join(sorted({str(file.with_suffix('')) for file in files}))}")
    for said in remarks:
        print(f"\n{said.heading}\n  {said.seen}")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``movi``; the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    words = ""
    try:
        with listening():
            if arguments == ["--version"]:
                print(f"movi {__version__}")
            else:
                words, chosen = parse(arguments)
                perform(chosen)
            sys.stdout.flush()
    except UserError as error:
        return _end(str(error), 2)
    except ToleranceMissed as missed:
        return _end(str(missed), 3)
    except Interrupted as stop:
        return _end(str(stop), 128 + stop.signal)
    except KeyboardInterrupt:
        return _end("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:  # the system's word about a path: too long, no permission, a full disk
        named = f"{error.filename}: " if error.filename else ""
        return _end(f"{named}{error.strerror or error}", 2)
    except MemoryError:
        return _end(f"{words}: not enough memory", 2)
    return 0


def _end(line: str, status: int) -> int:
    print(f"movi: {one_line(line)}", file=sys.stderr)
    return status
