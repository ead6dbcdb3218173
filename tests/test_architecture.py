"""The page about the architecture is true: every file and function that it names is there."""

import ast
import doctest
import importlib.util
import re
from itertools import pairwise
from pathlib import Path

import momentum_rl
from tests.test_layers import GROUND, STAIRS

ROOT = Path(__file__).parents[1]
SOURCE = Path(momentum_rl.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE)))


def defined(body, prefix=""):
    """The qualified names of what a body of code defines."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield f"{prefix}{node.name}"
            yield from defined(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not prefix:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_every_function_and_class_that_is_named_exists():
    assert len(NAMED) > 30
    missing = [
        f"{file}:{name}"
        for file, name in NAMED
        if name not in set(defined(ast.parse((SOURCE / file).read_text()).body))
    ]
    assert not missing


def test_every_file_that_is_named_exists():
    files = set(re.findall(r"`((?:[\w]+/)*\w+\.py)\b", PAGE))
    assert files
    assert not [name for name in files if not any((top / name).exists() for top in (SOURCE, ROOT))]


def test_every_layer_is_described():
    layers = {layer for layer in STAIRS if (SOURCE / layer).is_dir()}
    assert layers
    assert not [layer for layer in layers if f"| `{layer}` |" not in PAGE]


def test_its_code_runs():
    found = doctest.testfile(str(ROOT / "docs" / "architecture.md"), module_relative=False)
    assert found.attempted > 15
    assert found.failed == 0


def closure(steps):
    """Everything that each layer may import, however far below."""

    def below(layer):
        return set().union(*({step} | below(step) for step in steps.get(layer, ())))

    return {layer: below(layer) - {layer} for layer in steps}


ALLOWED = {layer: steps for layer, steps in STAIRS.items() if layer != "__main__"}


def test_the_layers_in_words_are_those_that_are_allowed():
    (words,) = re.findall(r"`(core → [^`]*)`", PAGE)
    told = {layer: set() for layer in ALLOWED}
    for chain in " ".join(words.split()).split("; "):
        for lower, upper in pairwise(part.split(", ") for part in chain.split(" → ")):
            for layer in upper:
                told[layer].update(lower)
    assert closure(told) == closure(ALLOWED)


def test_the_picture_shows_the_layers_and_is_the_one_that_its_script_draws():
    path = ROOT / "docs" / "figures" / "layers.py"
    spec = importlib.util.spec_from_file_location("layers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = {layer: set(module.IMPORTS.get(layer, ())) for layer in module.LAYERS}
    assert closure(drawn) == closure(ALLOWED)
    assert path.with_suffix(".svg").read_text() == module.picture()
    assert set(module.GROUND.partition(": ")[2].split(", ")) == GROUND
