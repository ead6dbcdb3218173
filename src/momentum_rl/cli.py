"""The command line: a table of commands and an entry point."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from momentum_rl.errors import Interrupted, ToleranceMissed, UserError, needing_agents, one_line
from momentum_rl.plumbing.signals import listening, raised
from momentum_rl.version import __version__

# Each command is a frozen dataclass with a docstring, documented fields and `execute()`; it is
# imported when it is called, so that no command pays for another.
COMMANDS = {
    "solve": "momentum_rl.planning.commands:Solve",
    "bounds": "momentum_rl.planning.bounds:Bounds",
    "mdp": "momentum_rl.mdp.commands:Make",
    "train": "momentum_rl.training.commands:Train",
    "resume": "momentum_rl.training.commands:Resume",
    "evaluate": "momentum_rl.training.commands:Evaluate",
    "record": "momentum_rl.training.commands:Record",
    "export": "momentum_rl.training.commands:Export",
    "sweep": "momentum_rl.sweeps.commands:RunSweep",
    "status": "momentum_rl.sweeps.commands:ShowStatus",
    "compare": "momentum_rl.report.commands:Compare",
    "report": "momentum_rl.report.commands:Report",
}


def command(name: str, commands: Mapping[str, str] = COMMANDS) -> Any:
    """The dataclass of a command."""
    module, _, of_class = commands[name].partition(":")
    return getattr(import_module(module), of_class)


def overview(commands: Mapping[str, str] = COMMANDS, program: str = "movi") -> str:
    """What `movi --help` prints: every command with its first line."""
    width = max(map(len, commands))
    title = "Momentum in Reinforcement Learning: MoVI and Momentum-DQN."
    lines = [f"usage: {program} COMMAND …", "", title, ""]
    for name in commands:
        first_line = command(name, commands).__doc__.splitlines()[0]
        lines.append(f"  {program} {name:{width}}  {first_line}")
    last = f"{program} COMMAND --help tells all options; {program} --version."
    return "\n".join([*lines, "", last])


def parse(
    arguments: Sequence[str], commands: Mapping[str, str] = COMMANDS, program: str = "movi"
) -> tuple[str, Any]:
    """A command's name, and the command with its options; a mistake is one line (UserError)."""
    name = arguments[0] if arguments else "nothing"
    if name not in commands:
        if {"-h", "--help"}.intersection(arguments):
            print(overview(commands, program))
            sys.exit(0)
        raise UserError(f"command: {name!r}, expected one of {', '.join(commands)}")
    from momentum_rl.plumbing.arguments import with_options  # after the streams are open

    return name, with_options(command(name, commands), arguments[1:], f"{program} {name}")


def main(
    argv: Sequence[str] | None = None,
    commands: Mapping[str, str] = COMMANDS,
    program: str = "movi",
) -> int:
    """Entry point of ``movi``, or of another program with commands of its own; the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = ""
    try:
        with listening():
            if arguments == ["--version"]:
                print(f"movi {__version__}")
            else:
                name, chosen = parse(arguments, commands, program)
                with needing_agents(name):
                    chosen.execute()
            sys.stdout.flush()
    except UserError as error:
        return _end(str(error), 2)
    except ToleranceMissed as missed:
        return _end(str(missed), 3)
    except Interrupted as stop:
        return _end(str(stop), 128 + stop.signal)
    except KeyboardInterrupt as stop:  # with the signal's number, if it was another than SIGINT
        return _end("interrupted", 128 + next(iter(stop.args), signal.SIGINT))
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:  # the system's word about a path: too long, no permission, a full disk
        named = f"{error.filename}: " if error.filename else ""
        return _end(f"{named}{error.strerror or error}", 2)
    except MemoryError:
        return _end(f"{name}: not enough memory", 2)
    except Exception:
        if (number := raised()) is None:
            raise
        return _end("interrupted", 128 + number)
    return 0


def _end(line: str, status: int) -> int:
    print(f"movi: {one_line(line)}", file=sys.stderr)
    return status


def program() -> int:
    """``movi`` as a process of its own, which a signal ends at any moment; the exit status."""
    _open_streams()
    status = main()
    if status > 128:  # by a signal: compiled code may still run, and would crash in a tear-down
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
    return status


def _open_streams() -> None:
    """Makes the three standard streams ones that anything can be written to.

    The number of one that is closed would be that of the next file to be opened, into which the
    libraries' messages would then go. A character that a terminal does not have is spelled out.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
