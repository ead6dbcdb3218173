"""Modules that are imported late: ours for speed, the user's only when the user names them.

Importing a module runs its code. So a name of the form MODULE:NAME, of an environment or of an
algorithm, is followed only if the module is trusted: named on the command line, or by a program.
"""

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from momentum_rl.errors import UserError, needing_agents


def module_of(name: str, what: str) -> str:
    """The module that a name of the form MODULE:NAME names; "" for a plain name.

    ``what`` says what it is the name of, in the line that refuses another form.

    >>> module_of("package.mazes:Maze-v0", "env"), module_of("CartPole-v1", "env")
    ('package.mazes', '')
    """
    module, colon, rest = name.partition(":")
    if not colon:
        return ""
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", module) or not rest or ":" in rest:
        raise UserError(f"{what}: {name!r}, expected a name of the form NAME or MODULE:NAME")
    return module


def import_trusted(module: str, trust: Collection[str], what: str) -> ModuleType:
    """A module, imported; one in the working directory too, after everything that is installed.

    Only while it is imported: else whatever a library looks for in vain would be found there later.
    ``what`` names it, in the line that refuses a module that is not in ``trust``.
    """
    if isinstance(trust, str):  # every part of a text is in it
        raise UserError(f"trust: {trust!r}, expected names of modules, such as ({trust!r},)")
    if module not in trust:
        raise UserError(
            f"{what} runs the code of the module {module!r}, which only a file asks for; "
            f"if you trust it, add --trust {module}"
        )
    here = str(Path.cwd())
    if added := here not in sys.path:
        sys.path.append(here)
    try:
        return import_module(module)
    except Exception as error:  # a module of the user's may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"{what}: the module {module!r} cannot be imported: {reason}") from None
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def lazy_attributes(package: str, homes: Mapping[str, Sequence[str]]) -> tuple[Any, Any]:
    """A package's ``__getattr__`` and ``__dir__``: names are imported when they are first used.

    ``homes`` lists the names of each module, which is named as in a relative import.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        with needing_agents(f"{package}.{name}"):
            if name in home_of:
                return getattr(import_module(home_of[name], package), name)
            if not name.startswith("_") and find_spec(f"{package}.{name}"):
                return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(vars(sys.modules[package])["__all__"])
