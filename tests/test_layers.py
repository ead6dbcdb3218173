"""The layers: imports go down, and no two files import each other."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import momentum_rl

SOURCE = Path(momentum_rl.__file__).parent
GROUND = {"errors", "plumbing", "spaces", "version"}
"""What every layer may import."""
STAIRS = {
    "core": set(),
    "mdp": {"core"},
    "planning": {"mdp"},
    "agents": {"core"},
    "envs": {"mdp"},  # a finite MDP is an environment
    "replay": {"core"},
    "runs": {"agents"},  # a config holds the options of its algorithm
    "training": {"agents", "envs", "replay", "runs"},
    "sweeps": {"training"},
    "report": {"runs", "planning"},
    "cli": {"sweeps", "report"},
    "__main__": {"cli"},
}
"""The layers that each may import, and what those may."""


@cache
def below(name):
    """All the layers that a layer may import, and itself."""
    return {name}.union(*(below(step) for step in STAIRS.get(name, ())))


def module(path):
    """The name of a file's module; a package's is that of its directory."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module(path): path for path in sorted(SOURCE.rglob("*.py"))}


@cache
def imports(name):
    """The modules of `movi` that a module imports, wherever the import stands, with its line."""
    found = []
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{FILES[name]}:{node.lineno}: a relative import"
            for alias in node.names:
                own = f"{node.module}.{alias.name}"
                found.append((own if own in FILES else node.module, node.lineno))
    return [(there, line) for there, line in found if there.split(".")[0] == "momentum_rl"]


def layer(name):
    return name.split(".")[1] if "." in name else "momentum_rl"


@pytest.mark.parametrize("name", [name for name in FILES if name != "momentum_rl"])
def test_imports_go_one_way(name):
    here = layer(name)
    allowed = GROUND if here in GROUND else GROUND | below(here)
    wrong = [
        f"line {line}: {there}" for there, line in imports(name) if layer(there) not in allowed
    ]
    assert not wrong, f"{here} may not import these: {wrong}"


def test_every_file_is_in_a_layer():
    assert {layer(name) for name in FILES} - {"momentum_rl"} <= GROUND | set(STAIRS)


def test_no_two_files_import_each_other_however_many_stand_between():
    graph = {name: {there for there, _ in imports(name)} - {name} for name in FILES}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError, naming the files
    assert order.index("momentum_rl.errors") < order.index("momentum_rl.cli")


def modules_after(code):
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return {name.split(".")[0] for name in result.stdout.split()}


HEAVY = {"jax", "jaxlib", "numpy", "scipy", "chex", "altair", "gymnasium", "rich", "tyro"}


def test_importing_movi_imports_nothing_heavy():
    assert not modules_after("import momentum_rl") & HEAVY


def test_importing_the_command_line_imports_no_arrays_and_no_figures():
    heavy = {"jax", "jaxlib", "scipy", "chex", "altair", "gymnasium"}
    assert not modules_after("import momentum_rl.cli") & heavy


def test_a_name_of_the_package_is_imported_when_it_is_first_used():
    tables = modules_after("import momentum_rl; momentum_rl.garnet")
    assert "numpy" in tables
    assert "jax" not in tables
    assert {"jax", "numpy"} <= modules_after("import momentum_rl; momentum_rl.solve")


@pytest.mark.parametrize("name", momentum_rl.__all__)
def test_every_public_name_resolves(name):
    assert getattr(momentum_rl, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = momentum_rl.nonsense
