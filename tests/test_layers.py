import ast
import subprocess
import sys
from pathlib import Path

import pytest

import movi

SOURCE = Path(movi.__file__).parent
GROUND = {
    "arguments",
    "compilation",
    "errors",
    "files",
    "modules",
    "progress",
    "reading",
    "signals",
    "sizes",
    "spaces",
    "transitions",
    "trees",
    "version",
    "versions",
}
TABLES = {"targets", "family", "values", "schedules", "mdp", "planning"}
NETWORKS = {"targets", "values", "schedules", "agents", "envs", "replay", "runs", "training"}
MAY_IMPORT = {
    "arguments": set(),
    "compilation": set(),
    "errors": set(),
    "files": set(),
    "modules": set(),
    "reading": set(),
    "signals": set(),
    "sizes": set(),
    "spaces": set(),
    "transitions": set(),
    "trees": set(),
    "progress": set(),
    "version": set(),
    "versions": set(),
    "values": set(),
    "targets": {"values"},
    "family": {"targets"},
    "schedules": set(),
    "mdp": {"targets", "values", "schedules"},
    "planning": {"targets", "family", "values", "schedules", "mdp"},
    "agents": {"targets", "values", "schedules"},
    "envs": set(),
    "replay": set(),
    "runs": {"targets", "values", "schedules", "agents"},
    "training": NETWORKS - {"training"},
    "experiments": TABLES | NETWORKS,
    "reports": TABLES | NETWORKS - {"training"} | {"experiments"},
    "sweeps": TABLES | NETWORKS | {"experiments"},
    "cli": TABLES | NETWORKS | {"experiments", "reports", "sweeps"},
    "__main__": {"cli"},
}
FILES = sorted(set(SOURCE.rglob("*.py")) - {SOURCE / "__init__.py"})


def room(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_rooms(path):
    """The rooms of `movi` that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            if node.module == "movi":
                names = [f"movi.{alias.name}" for alias in node.names]
            else:
                names = [node.module]
        for name in names:
            parts = name.split(".")
            if parts[0] == "movi":
                yield parts[1] if len(parts) > 1 else "movi", node.lineno


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    here = room(path)
    allowed = MAY_IMPORT[here] | GROUND | {here}
    wrong = [
        f"line {line}: {there}" for there, line in imported_rooms(path) if there not in allowed
    ]
    assert not wrong, f"{here} is below these: {wrong}"


def test_the_stairs_have_no_loop():
    done = set(GROUND)
    while len(done) < len(MAY_IMPORT):
        ready = {r for r, below in MAY_IMPORT.items() if r not in done and below <= done}
        assert ready
        done |= ready


def modules_after(code):
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return {name.split(".")[0] for name in result.stdout.split()}


HEAVY = {"jax", "jaxlib", "numpy", "scipy", "chex", "altair", "gymnasium", "rich", "tyro"}


def test_importing_movi_imports_nothing_heavy():
    assert not modules_after("import movi") & HEAVY


def test_importing_the_command_line_imports_no_arrays_and_no_figures():
    heavy = {"jax", "jaxlib", "scipy", "chex", "altair", "gymnasium"}
    assert not modules_after("import movi.cli") & heavy


def test_a_name_of_the_package_is_imported_when_it_is_first_used():
    assert {"jax", "numpy"} <= modules_after("import movi; movi.garnet")


@pytest.mark.parametrize("name", movi.__all__)
def test_every_public_name_resolves(name):
    assert getattr(movi, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = movi.nonsense
