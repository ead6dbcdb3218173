"""The page about the architecture is true: every file and function that it names is there."""

import ast
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
SCIENCE = {"algorithm", "family", "schedules", "soft", "targets", "values"}
"""What the picture shows as one room, called targets."""


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


def test_every_room_is_described():
    rooms = {room for room in STAIRS if (SOURCE / room).is_dir()}
    assert rooms
    assert not [room for room in rooms if f"| `{room}` |" not in PAGE]


def drawing():
    path = ROOT / "docs" / "figures" / "rooms.py"
    spec = importlib.util.spec_from_file_location("rooms", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, path


def closure(steps):
    """Everything that each room stands on, however far below."""

    def below(room):
        return set().union(*({step} | below(step) for step in steps.get(room, ())))

    return {room: below(room) - {room} for room in steps}


def stairs():
    """The stairs that the tests allow, with the algorithms as one room."""
    together = {}
    for room, steps in STAIRS.items():
        if room != "__main__":
            own = together.setdefault("targets" if room in SCIENCE else room, set())
            own.update("targets" if step in SCIENCE else step for step in steps)
    together["targets"].discard("targets")
    return together


def test_the_stairs_in_words_are_those_that_are_allowed():
    (words,) = re.findall(r"`(targets → [^`]*)`", PAGE)
    said = {room: set() for room in stairs()}
    for chain in " ".join(words.split()).split("; "):
        for lower, upper in pairwise(part.split(", ") for part in chain.split(" → ")):
            for room in upper:
                said[room].update(lower)
    assert closure(said) == closure(stairs())


def test_the_picture_shows_the_stairs_and_is_the_one_that_its_script_draws():
    module, path = drawing()
    drawn = {room: set(module.STANDS_ON.get(room, ())) for room in module.ROOMS}
    assert closure(drawn) == closure(stairs())
    assert path.with_suffix(".svg").read_text() == module.picture()
    assert {word.strip(" …") for word in module.GROUND.partition(":")[2].split(",")} - {
        ""
    } <= GROUND
