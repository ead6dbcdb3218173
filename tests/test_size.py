"""No function and no list of parameters of the package outgrows a reader."""

import ast
from pathlib import Path

import pytest

import momentum_rl

SOURCE = Path(momentum_rl.__file__).parent
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}
LINES_OF_A_FUNCTION = 80
PARAMETERS = 8
MANY_PARAMETERS = {
    "planning/comparison.py:compare_schemes",  # as the next
    "planning/solver.py:solve",  # a front door: everything beyond the MDP is by keyword
    "training/train.py:train",  # likewise
    "training/train.py:train_seeds",
}
"""Functions that may have more parameters."""


def functions(name):
    """Every function of a file, by its place and name."""
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{name}:{node.name}", node


@pytest.mark.parametrize("name", FILES)
def test_functions_are_short_and_take_few_parameters(name):
    for place, node in functions(name):
        lines = node.end_lineno - node.lineno + 1
        assert lines <= LINES_OF_A_FUNCTION, (place, lines)
        own = node.args
        named = [*own.posonlyargs, *own.args, *own.kwonlyargs]
        count = len([one for one in named if one.arg not in ("self", "cls")])
        # The constructor of a dataclass takes its fields, however many there are.
        assert node.name == "__init__" or place in MANY_PARAMETERS or count <= PARAMETERS, (
            place,
            count,
        )
