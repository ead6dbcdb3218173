"""Malformed inputs by the thousand: valid files and command lines, changed by a seeded generator.

A case is a function of (kind, seed, number) alone, so that one that fails can be done again. Cases
run in this process, through ``cli.main``: what would escape it as a traceback does so here.
"""

import copy
import io
import json
import random
import resource
import shutil
import struct
import sys
import time
import warnings
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields
from pathlib import Path

import gymnasium as gym
import numpy as np
import scipy.sparse as sparse

import momentum_rl
from momentum_rl.agents.registry import known, names
from momentum_rl.cli import COMMANDS, main
from momentum_rl.core.catalogue import TABLES
from momentum_rl.core.schedules import Constant, Epsilon, Smoothing
from momentum_rl.core.targets import AVI
from momentum_rl.errors import ToleranceMissed, UserError
from momentum_rl.mdp.checks import FIELDS
from momentum_rl.mdp.solve.exact import Optimum
from momentum_rl.mdp.solve.solution import Solution, rounding_floor
from momentum_rl.planning.engine import scheme
from tests.oracles import optimal_q

ODD = [
    None,
    True,
    -1,
    0,
    1,
    2.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    2**31,
    2**63,
    10**400,
    "",
    "x" * 5000,
    "\0",
    "a\nb\x1b[2J",
    "../../escaped",
    "/escaped",
    "evilmod:X-v0",
    "this:X-v0",
    "a:b:c",
    "CartPole-v99",
    "nan",
    "1e999",
    [],
    {},
    [[]],
    ["a", 1, None],
    {"format": 1},
    {"a": {"b": [1, {"c": None}]}},
]
WORDS = ["", "-1", "0", "1.5", "nan", "inf", "-inf", "1e400", str(2**31), str(2**63), str(10**30)]
WORDS += ["x", "../../escaped/x", "/dev/null", "/dev/full", "a" * 300, "β=½", "evilmod:X-v0", "--"]
WORDS += ["[]", "{}", "true", "None", "'", '"', "\\", "\t", "%s%n", "this:X-v0", ".", "..", "~"]
UNWRITABLE = ["/dev/null", "/dev/full", "a" * 300, "evilmod.py/x"]
CANARIES = {"this", "antigravity", "evilmod"}
LONGEST = 30.0
MEMORY = 2 * 2**30


def odd(rng):
    """A value that is hardly ever expected; a copy, for what is in it may be changed next."""
    return copy.deepcopy(rng.choice(ODD))


def deep(rng):
    """A value within many others."""
    value = rng.choice([1, "x", None])
    for _ in range(rng.choice([5, 31, 33, 500])):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def paths(data, here=()):
    """Every place in a tree of JSON."""
    yield here
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from paths(data[key], (*here, key))


def changed_tree(data, rng):
    """A tree of JSON with a few places changed."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        *there, last = rng.choice([path for path in paths(data) if path] or [("format",)])
        place = data
        for key in there:
            place = place[key]
        what = rng.random()
        if what < 0.15 and isinstance(place, dict):
            place.pop(last, None)
        elif what < 0.25 and isinstance(place, dict):
            place[rng.choice(["more", "__class__", "", "format", "\0"])] = odd(rng)
        elif what < 0.3:
            place[last] = deep(rng)
        elif what < 0.4 and isinstance(place[last], int | float):
            large = abs(place[last]) > 1e300  # an integer that no float holds
            factor = rng.choice([-1, 2, 10**12, 0 if large else 1e-300])
            place[last] = place[last] * factor + rng.choice([0, 1])
        else:
            place[last] = odd(rng)
        if not isinstance(data, dict | list):
            break
    return data


def changed_bytes(content, rng):
    """Bytes with bits flipped, cut, doubled or filled."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if not content:
            break
        at = rng.randrange(len(content))
        what = rng.random()
        if what < 0.45:
            content[at] ^= 1 << rng.randrange(8)
        elif what < 0.6:
            del content[at:]
        elif what < 0.7:
            content[at : at + rng.randrange(1, 50)] = b""
        elif what < 0.85:
            content[at:at] = rng.choice(
                [b"\0", b"\xff" * 9, b"[" * 5000, b"{", b'"', b"1e999", b","]
            )
        else:
            size = rng.randrange(1, 64)
            content[at : at + size] = rng.randbytes(size)
    return bytes(content)


def changed_json(text, rng):
    """A text of JSON, changed as a tree or as bytes."""
    if rng.random() < 0.75:
        try:
            return json.dumps(changed_tree(json.loads(text), rng)).encode()
        except RecursionError:
            return b"[" * 100_000
    return changed_bytes(text.encode(), rng)


def changed_rows(text, rng):
    """JSON lines, one of them changed."""
    rows = text.splitlines()
    at = rng.randrange(len(rows))
    rows[at] = changed_json(rows[at], rng).decode(errors="replace")
    if rng.random() < 0.2:
        rng.shuffle(rows)
    return ("\n".join(rows) + "\n" * rng.randrange(2)).encode()


def changed_safetensors(content, rng):
    """A safetensors file: its bytes, its header, or the description in it."""
    what = rng.random()
    if what < 0.3:
        return changed_bytes(content, rng)
    (size,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    if what < 0.8:
        about = changed_json(header["__metadata__"]["movi"], rng)
        header["__metadata__"]["movi"] = about.decode(errors="replace")
    elif what < 0.9:
        array = np.frombuffer(data[: len(data) // 4 * 4], "<f4").copy()
        array[rng.randrange(array.size)] = rng.choice([np.nan, np.inf, 1e38])
        data = array.tobytes()
    else:
        header = changed_tree(header, rng)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def forged(saved, rng):
    """A checkpoint whose checksum is right and whose content need not make sense."""
    arrays, state = dict(saved.arrays), saved.state
    if rng.random() < 0.6:
        state = changed_tree(state, rng)
    if rng.random() < 0.6:
        name = rng.choice(sorted(arrays))
        array = arrays.pop(name)
        what = rng.random()
        if what < 0.3:
            arrays[name] = array.astype(rng.choice(["<f8", "<i8", "|u1", "|b1", "<f4", "<u8"]))
        elif what < 0.5:
            arrays[name] = rng.choice([array[None], array.reshape(-1), array.reshape(-1)[:0]])
        elif what < 0.8 and array.size:
            arrays[name] = array.copy()
            value = np.float64(rng.choice([-1, 0, 77, 2**31 - 1, np.nan]))
            with np.errstate(invalid="ignore"):
                arrays[name].reshape(-1)[rng.randrange(array.size)] = value.astype(array.dtype)
    return saved._replace(arrays=arrays, state=state)


def changed_npz(content, rng):
    """An .npz: its bytes, an array's header, or an array."""
    if rng.random() < 0.4:
        return changed_bytes(content, rng)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    if rng.random() < 0.5:
        members[name] = changed_bytes(members[name][:128], rng) + members[name][128:]
    else:
        array = np.load(io.BytesIO(members[name]))
        if rng.random() < 0.5 and array.size:
            array = array.astype(rng.choice([array.dtype, "<f4", "<i8", "<c16", "|b1", "<U3"]))
            value = rng.choice([-1, 0, 2**31 - 1, 1, 77])
            array.reshape(-1)[rng.randrange(array.size)] = value
        else:
            nothing = array.reshape(-1)[:0]
            array = rng.choice([array[None], array.reshape(-1), nothing, array.T, array * 0])
        whole = io.BytesIO()
        np.save(whole, array)
        members[name] = whole.getvalue()
    whole = io.BytesIO()
    kinds = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    with zipfile.ZipFile(whole, "w", rng.choice(kinds)) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    packed = whole.getvalue()
    return changed_bytes(packed, rng) if rng.random() < 0.3 else packed


def changed_csv(text, rng):
    """A table with some of its values changed, or its bytes."""
    if rng.random() < 0.3:
        return changed_bytes(text.encode(), rng)
    rows = [line.split(",") for line in text.splitlines()]
    for _ in range(rng.choice([1, 1, 3])):
        row = rng.choice(rows)
        if rng.random() < 0.2:
            row.append("1")
        elif row:
            row[rng.randrange(len(row))] = rng.choice(WORDS)
    return "\n".join(",".join(row) for row in rows).encode()


def changed_toml(text, rng):
    """A text of TOML with a value changed, or its bytes."""
    if rng.random() < 0.3:
        return changed_bytes(text.encode(), rng)
    lines = text.splitlines()
    at = rng.randrange(len(lines))
    key = lines[at].partition(" =")[0]
    try:
        dumped = json.dumps(rng.choice([*ODD, deep(rng)]))
        value = rng.choice([dumped, "inf", "nan", "1979-05-27", "0x" + "f" * 40])
    except RecursionError:
        value = "[" * 5000
    lines[at] = f"{key} = {value}"
    return "\n".join(lines).encode()


class Place:
    """A working directory with things of value around it, which a case must leave alone."""

    def __init__(self, root: Path) -> None:
        self.peak = peak()  # before the first case
        self.root = root
        self.work = root / "a" / "work"
        self.work.mkdir(parents=True)
        (root / "a" / "precious").write_text("mine")
        (self.work / "evilmod.py").write_text(f"open({str(root / 'mark')!r}, 'w')\n")

    def seen(self) -> dict[Path, tuple[int, int]]:
        """Every file but what is in ``out``, by its size and time."""
        return {
            path: (path.lstat().st_size, path.lstat().st_mtime_ns)
            for path in self.root.rglob("*")
            if not path.is_dir() and not path.is_relative_to(self.work / "out")
        }

    def clear(self, before: dict[Path, tuple[int, int]]) -> None:
        """Removes what a case wrote."""
        shutil.rmtree(self.work / "out", ignore_errors=True)
        for path in self.seen().keys() - before.keys():
            path.unlink()
        (self.work / "out").mkdir()


def outcome(words: list[str]) -> tuple[int, str]:
    """Calls ``movi``; its exit status and what it said to the standard error."""
    said, told = io.StringIO(), io.StringIO()
    with redirect_stderr(said), redirect_stdout(told):
        try:
            status = main(words)
        except SystemExit as stop:  # what --help does
            status = int(stop.code or 0)
    return status, said.getvalue()


def read(reader) -> tuple[int, str]:
    """Calls a reader, as ``main`` would; its exit status and what it said."""
    try:
        reader()
    except UserError as error:
        return 2, f"movi: {error}\n"
    return 0, ""


def check(place: Place, name: str, words: list[str], *, anywhere: bool = False) -> bool:
    """Calls ``movi``, and asserts what holds of every case; whether it was refused.

    A command line that names a place to write may write ``anywhere`` in its working directory, but
    change nothing that is there.
    """
    command = words[0] if words else ""
    before, modules = place.seen(), set(sys.modules)
    began = time.monotonic()
    status, said = outcome(words)
    seconds = time.monotonic() - began
    # 3: `solve` tells that its answer has not reached the tolerance.
    assert status in (0, 2) or (status, command) == (3, "solve"), (name, status, said)
    assert "Traceback" not in said, (name, said)
    # Then it may have told that at once, too.
    assert status == 0 or said.count("\n") in (1, status - 1), (name, said)
    for line in said.splitlines():
        assert line.startswith("movi: "), (name, said)
        assert len(line) <= 300, (name, len(line))
        assert line.isprintable(), (name, line)
    assert seconds < LONGEST, (name, seconds)
    after = place.seen()
    new_files = after.keys() - before.keys()
    if anywhere:
        new_files = {file for file in new_files if not file.is_relative_to(place.work)}
    assert not new_files, (name, new_files)
    assert not [file for file in before if after.get(file) != before[file]], name
    place.clear(before)
    new = {module.partition(".")[0] for module in set(sys.modules) - modules}
    assert not new & CANARIES, (name, new)
    for module in new:
        file = getattr(sys.modules.get(module), "__file__", None) or ""
        assert not Path(file).is_relative_to(place.root), (name, module)
    assert peak() < MEMORY + place.peak, name
    return status == 2


def peak() -> int:
    """The most memory that this process has had, of which other tests may have had their part."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


OPTIONS = {
    "solve": "horizon discount minimise method scheme samples iterations tolerance out",
    "bounds": "beta beta-max iterations samples errors average-errors seed out",
    "mdp": "states actions branching size walls slip discount seed out",
    "train": "env steps preset gamma beta hidden seeds num-envs loss seed",
    "resume": "steps trust",
    "evaluate": "episodes epsilon seed num-envs best trust",
    "record": "out episodes epsilon seed best trust",
    "export": "best",
    "sweep": "out scale workers ray cpus gpus trust",
    "status": "unknown",
    "compare": "unknown",
    "report": "out format",
}
assert OPTIONS.keys() == COMMANDS.keys()
BASES = {
    "solve": ["g.npz"],
    "bounds": ["g.npz", "--iterations", "3"],
    "mdp": ["garnet", "--out", "out/m.npz"],
    "train": [
        "dqn",
        "--env",
        "CartPole-v1",
        "--steps",
        "20",
        "--learning-starts",
        "9",
        "--out",
        "out",
    ],
    "resume": ["run"],
    "evaluate": ["agent.safetensors", "--episodes", "1"],
    "record": ["agent.safetensors", "--out", "out/film.mp4"],
    "export": ["agent.safetensors", "out/agent.safetensors"],
    "sweep": ["mine.toml", "--dry-run", "--out", "out/sweep"],
    "status": ["sweep"],
    "compare": ["sweep"],
    "report": [".", "--out", "out/report.html"],
}


def command_line(rng) -> list[str]:
    """Words for a command, some of them wrong; never one that writes outside ``out``."""
    command = rng.choice(list(COMMANDS))
    words, options = list(BASES[command]), OPTIONS[command].split()
    if command == "mdp":
        words[0] = rng.choice(list(momentum_rl.mdp.families.FAMILIES))
    if command == "train":
        words[0] = rng.choice(names())
        words[2] = "Pendulum-v1" if words[0].endswith("sac") else "CartPole-v1"
        options += [field.name.replace("_", "-") for field in fields(known(words[0]))]
    for _ in range(rng.choice([1, 1, 2, 3])):
        what = rng.random()
        if what < 0.5:
            option, word = f"--{rng.choice(options)}", rng.choice(WORDS)
            joined = rng.random() < 0.3 and option != "--out"
            words += [f"{option}={word}"] if joined else [option, word]
        elif what < 0.7 and words:
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        elif what < 0.8 and words:
            del words[rng.randrange(len(words))]
        elif what < 0.9:
            words.insert(rng.randrange(len(words) + 1), rng.choice([*WORDS, "--unknown"]))
        elif words:
            words = words[: rng.randrange(len(words))]
    if command in ("train", "solve"):  # whose own words may name a module
        words = [word.replace("evilmod:", "x/").replace("this:", "x/") for word in words]
    for i, word in enumerate(words[1:], start=1):
        target = words[i - 1] == "--out" or (command == "export" and i == 1)
        given = word in WORDS or word == "agent.safetensors"
        if target and given and word not in UNWRITABLE:
            words[i] = rng.choice(UNWRITABLE)
    return [*command.split(), *words]


def generator(kind: str, seed: int, number: int) -> random.Random:
    """That of a case."""
    return random.Random(f"{kind} {seed} {number}")


# Calls from Python ----------------------------------------------------------------------------


CARTPOLE = momentum_rl.Config("dqn", "CartPole-v1", steps=100, iteration_steps=50, hidden=(4,))
SINGLE = momentum_rl.garnet(5, 2, 2, discount=0.5)
SOLVED = momentum_rl.solve(SINGLE)
ONES = np.ones((5, 2))
KERNEL = SINGLE.dense()
PAIRS = ([0, 0, 1], [0, 1, 0], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [1.0, 2.0, 3.0])
CALLS = {
    "FiniteMDP": (
        momentum_rl.FiniteMDP,
        {
            **{name: getattr(SINGLE, name) for name in FIELDS},
            **dict.fromkeys(["state_names", "action_names"]),
        },
    ),
    "from_dense": (
        momentum_rl.FiniteMDP.from_dense,
        {"kernel": KERNEL, "rewards": ONES, "discount": 0.5, "axes": "SA"},
    ),
    "from_sparse": (
        momentum_rl.FiniteMDP.from_sparse,
        {"kernels": list(KERNEL.swapaxes(0, 1)), "rewards": ONES, "discount": 0.5},
    ),
    "from_pairs": (
        momentum_rl.FiniteMDP.from_pairs,
        {**dict(zip(["states", "actions", "kernel", "rewards"], PAIRS)), "discount": 0.5},
    ),
    "from_gymnasium": (
        momentum_rl.FiniteMDP.from_gymnasium,
        {"environment": {0: {0: [(1.0, 0, 1.0, True)]}}, "discount": 0.5},
    ),
    "from_function": (
        momentum_rl.FiniteMDP.from_function,
        {
            "states": 3,
            "actions": 2,
            "successors": lambda s, a: (s[..., None], np.ones((*s.shape, 1)), 1.0 * a),
            "discount": 0.5,
        },
    ),
    "garnet": (
        momentum_rl.garnet,
        {"states": 5, "actions": 2, "branching": 2, "discount": 0.5, "seed": 0, "count": None},
    ),
    "load_mdp": (momentum_rl.load_mdp, {"path": "g.npz", "discount": None, "minimise": False}),
    "save_mdp": (momentum_rl.save_mdp, {"mdp": SINGLE, "path": "out/g.npz"}),
    "optimum": (momentum_rl.optimum, {"mdp": SINGLE, "tolerance": None, "method": "auto"}),
    "policy_values": (
        momentum_rl.policy_values,
        {"mdp": SINGLE, "policies": np.zeros(5, int), "tolerance": None},
    ),
    "resolvent": (
        momentum_rl.mdp.solve.exact.resolvent,
        {"mdp": SINGLE, "policies": np.zeros((1, 5), int), "x": ONES[None], "tolerance": None},
    ),
    "weighted_norm": (momentum_rl.mdp.solve.exact.weighted_norm, {"x": ONES, "p": 1.0, "mu": None}),
    "finite_horizon": (
        momentum_rl.finite_horizon,
        {"mdp": SINGLE, "horizon": 3, "final": None, "discount": None},
    ),
    "total_reward": (
        momentum_rl.total_reward,
        {"mdp": momentum_rl.mdp.families.Maze(size=3).mdp(), "tolerance": 1e-6},
    ),
    "solve": (
        momentum_rl.solve,
        {
            "mdp": SINGLE,
            "scheme": None,
            "method": "auto",
            "sampled": False,
            "samples": 1,
            "iterations": None,
            "tolerance": None,
            "seed": 0,
            "beta": None,
            "progress": False,
        },
    ),
    "solve by a scheme": (
        momentum_rl.solve,
        {"mdp": SINGLE, "scheme": "movi", "iterations": 3, "seed": 0, "sampled": False},
    ),
    "at": (SOLVED.at, {"state": 0}),
    "action": (SOLVED.action, {"state": 0}),
    "policy_value": (momentum_rl.policy_value, {"mdp": SINGLE, "solution": SOLVED}),
    "rounding_floor": (rounding_floor, {"mdp": SINGLE}),
    "scheme": (scheme, {"which": "movi", "beta": None}),
    "compare": (
        momentum_rl.compare_schemes,
        {
            "mdps": momentum_rl.garnet(5, 2, 2, count=2),
            "schemes": ("avi", "movi"),
            "iterations": 3,
            "seed": 0,
            "samples": 1,
            "beta": None,
            "chunk": None,
            "progress": False,
        },
    ),
    "momentum": (
        momentum_rl.momentum,
        {"algorithm": AVI, "name": None, "h_target": "sample", "h_value": "same"},
    ),
    "Algorithm": (
        momentum_rl.Algorithm,
        {"name": "own", "targets": dict(AVI.targets), "preference": "q", "lags": 1, "kinds": {}},
    ),
    "register": (momentum_rl.register, {"name": "own", "algorithm": AVI}),
    "Averaging": (
        momentum_rl.Averaging,
        {"beta_schedule": "constant", "kappa": None, "beta": 0.5},
    ),
    "load": (
        momentum_rl.load,
        {"path": "agent.safetensors", "network": None, "trust": (), "best": False},
    ),
    "Config": (
        momentum_rl.Config,
        {own.name: getattr(CARTPOLE, own.name) for own in fields(CARTPOLE)},
    ),
    "train": (
        momentum_rl.train,
        {
            "config": CARTPOLE,
            "out": None,
            **dict.fromkeys(["algorithm", "environment", "make_environment", "network"]),
            **dict.fromkeys(["optimiser", "watcher"]),
            "trust": (),
        },
    ),
    "sweep": (
        momentum_rl.sweep,
        {"matrix": "mine.toml", "out": "out/sweep", "scale": None, "workers": None, "trust": ()},
    ),
    **{
        kind.__name__: (kind, {own.name: own.default for own in fields(kind)})
        for kind in (*TABLES.values(), Constant, Smoothing, Epsilon)
        if fields(kind)
    },
    **{
        f"mdp of {name}": (
            lambda kind=kind, **given: kind(**given).mdp(),
            {field.name: field.default for field in fields(kind)},
        )
        for name, kind in momentum_rl.mdp.families.FAMILIES.items()
    },
}
"""Every public function and constructor by a name, and arguments that are right."""
STRANGE = [  # but no functions: what a user's own raises is its own
    *ODD,
    b"ab",
    1j,
    object(),
    range(3),
    {1, 2},
    Path("nothing.npz"),
    np.float32(0.5),
    np.int64(3),
    np.array(3),
    np.zeros((0, 2)),
    np.full((5, 2), np.nan),
    np.array(["a", "b"]),
    np.array([None, 1]),
    np.ones((5, 2, 5)),
    np.zeros(5, int),
    np.full(5, 7),
    np.ma.masked_equal(np.ones((5, 2)), 1),
    sparse.eye_array(5).tocsr(),
    [sparse.eye_array(5).tocsr()] * 2,
    SINGLE,
    momentum_rl.garnet(5, 2, 2, count=2),
    SOLVED,
    AVI,
    CARTPOLE,
    gym.make("CartPole-v1"),
    np.random.default_rng(0),
]


def python_call(rng) -> tuple[str, dict]:
    """A public function by its name, and arguments for it of which some are wrong."""
    name = rng.choice(list(CALLS))
    given = dict(CALLS[name][1])
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        value = rng.choice(STRANGE)
        if rng.random() < 0.2:
            value = rng.choice([[value], [value, value], {"q": value}, (value, 1)])
        given[rng.choice(list(given))] = value
    return name, given


def answered(name: str, given: dict) -> str:
    """Makes a call: "refused" in one line, "missed" or "taken"; any other end is an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = CALLS[name][0](**given)
    except UserError as error:
        line = str(error)
        assert line.isprintable(), line
        assert 0 < len(line) <= 290, line
        return "refused"
    except ToleranceMissed:
        return "missed"
    if name == "Config":
        assert momentum_rl.Config.from_json(found.to_json()).to_json() == found.to_json()
    mdp = given.get("mdp")
    if isinstance(found, Solution | Optimum) and mdp.batch is None and not getattr(found, "tau", 0):
        assert np.abs(found.q - optimal_q(mdp)).max() <= found.bound + 1e-12
    return "taken"
