"""UMB, the exchange format of Storm, PRISM and Modest: a tar of ``index.json`` and raw CSR arrays.

    state-to-choices       uint64 [S + 1]   absent: one choice per state
    choice-to-branches     uint64 [L + 1]   absent: one branch per choice
    branch-to-target       uint64 [T]
    branch-to-probability  double or rational [T]   absent: all are 1
    annotations/rewards/NAME/{states,choices,branches}/values
    actions/choices/{values, strings, string-mapping}

The archive is somebody else's (see `archives`): the size of a member is what the index implies, and
that is checked before anything is allocated.
"""

import io
import itertools
import json
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from movi.errors import UserError
from movi.files import file_to_write, writing, written_aside
from movi.mdp.archives import Buffers, members_of
from movi.mdp.checks import require_single
from movi.mdp.model import FiniteMDP
from movi.mdp.tables import Arrays, slots
from movi.reading import LARGEST, checked, parsed
from movi.sizes import require

_DTYPES: dict[str, Any] = {
    "double": "<f8",
    "int": "<i8",
    "uint": "<u8",
    "rational": [("n", "<i8"), ("d", "<u8")],
}
_SIZES = {"double": 64, "int": 64, "uint": 64, "rational": 128}


def read_umb(path: Path, reward: str | None = None) -> Arrays:
    """An MDP or a Markov chain in UMB; its rewards of this name, or the only ones it has."""
    try:
        with members_of(path) as members:
            return _model(members, reward)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or 'not a readable UMB file'}") from None
    except Exception:  # whatever tarfile, decompressors and NumPy say to bytes of others
        raise UserError(f"{path}: not a readable UMB file") from None


# The model ---------------------------------------------------------------------------------------


def _model(members: Buffers, reward: str | None) -> Arrays:
    index = _index(members)
    system = checked(index.get("transition-system"), dict[str, Any], "transition-system")
    if system.get("time") != "discrete":
        raise UserError(f"time: {system.get('time')!r}, expected 'discrete'")
    if _count(system, "#players") > 1:
        raise UserError(f"#players: {system['#players']}, expected one at most: not a game")
    states, pairs = _count(system, "#states"), _count(system, "#choices")
    branches = _count(system, "#branches")
    if not 0 < states < 2**31:
        raise UserError(f"#states: {states}, expected 1..2**31 - 1")
    offsets = _offsets(members, "state-to-choices.bin", states, pairs)
    starts = _offsets(members, "choice-to-branches.bin", pairs, branches)
    lengths = np.diff(starts)
    if (lengths <= 0).any():
        row = int(np.argmax(lengths <= 0))
        raise UserError(f"choice-to-branches.bin: choice {row} has no branches, expected some")
    widest = int(lengths.max(initial=1))
    require(f"{pairs:,} choices of up to {widest:,} branches", memory=2 * pairs * widest * 12)
    targets = _vector(members, "branch-to-target.bin", "<u8", branches)
    if len(targets) and targets.max() >= states:
        raise UserError(f"branch-to-target.bin: {targets.max()}, expected below {states}")
    kind = system.get("branch-probability-type")
    probabilities = np.ones(branches)
    if kind is not None:
        probabilities = _numbers(members, "branch-to-probability.bin", kind, branches)
    rewards = _rewards(index, members, reward, offsets, starts, probabilities)
    successors, rows = slots(starts, targets, probabilities)
    choices, names, order = _actions(members, _count(system, "#choice-actions"), offsets)
    return {
        "successors": successors[order],
        "probabilities": rows[order],
        "rewards": rewards[order],
        "discount": _discount(index),
        "offsets": offsets,
        "choices": choices,
        "action_names": names,
    }


def _index(members: Buffers) -> dict[str, Any]:
    if "index.json" not in members:
        raise UserError("no index.json, expected a UMB archive")
    content = bytes(members["index.json"][: LARGEST + 1])
    if len(content) > LARGEST:
        raise UserError("index.json: larger than 1 MB, expected a smaller one")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UserError("index.json: not a text in UTF-8") from None
    index: dict[str, Any] = checked(parsed(text, "index.json"), dict[str, Any], "index.json")
    if index.get("format-version") != 0:
        raise UserError(f"format-version: {index.get('format-version')!r}, this movi reads 0")
    return index


def _count(system: Mapping[str, Any], name: str) -> int:
    value: int = checked(system.get(name), int, name)
    if value < 0:
        raise UserError(f"{name}: {value}, expected a number ≥ 0")
    return value


def _vector(members: Buffers, name: str, dtype: Any, count: int) -> np.ndarray:
    """A member as an array of ``count`` numbers: its size is checked, nothing is copied."""
    if name not in members:
        raise UserError(f"{name}: not in the archive")
    size = count * np.dtype(dtype).itemsize
    if len(members[name]) != size:
        raise UserError(f"{name}: {len(members[name])} bytes, expected {size}")
    return np.frombuffer(members[name], dtype)


def _offsets(members: Buffers, name: str, count: int, total: int) -> np.ndarray:
    """CSR offsets; those that are absent are of one each."""
    if name not in members:
        if count != total:
            raise UserError(f"{name}: not in the archive, which has {total} for {count}")
        require(name, memory=8 * count)
        return np.arange(count + 1)
    found = _vector(members, name, "<u8", count + 1)
    if found[-1] != total or found[0] != 0 or (found[1:] < found[:-1]).any():
        raise UserError(f"{name}: not from 0 to {total} without going back")
    return found.astype(np.int64)


def _numbers(members: Buffers, name: str, kind: Any, count: int) -> np.ndarray:
    """Numbers of a declared type as float64."""
    declared: dict[str, Any] = checked(kind, dict[str, Any], f"{name}: type")
    word = declared.get("type")
    size = declared.get("size", _SIZES.get(word) if isinstance(word, str) else None)
    if not isinstance(word, str) or word not in _DTYPES or size != _SIZES[word]:
        raise UserError(f"{name}: type {word!r} of {size} bits, expected double or rational")
    values = _vector(members, name, np.dtype(_DTYPES[word]), count)
    if word != "rational":
        return values.astype(np.float64)
    if (values["d"] == 0).any():
        raise UserError(f"{name}: a rational over 0, expected a number")
    return values["n"] / values["d"].astype(np.float64)


def _rewards(
    index: Mapping[str, Any],
    members: Buffers,
    name: str | None,
    offsets: np.ndarray,
    starts: np.ndarray,
    probabilities: np.ndarray,
) -> np.ndarray:
    """r(s, a), [L]: what is said of the state, of the choice, and expected over its branches."""
    groups = checked(index.get("annotations", {}), dict[str, Any], "annotations")
    named: dict[str, Any] = checked(groups.get("rewards", {}), dict[str, Any], "rewards")
    if not named:
        raise UserError("no rewards, expected an annotation of rewards")
    if name is None and len(named) > 1:
        raise UserError(f"rewards: {', '.join(named)}: say which (--reward NAME)")
    name = next(iter(named)) if name is None else name
    if name not in named:
        raise UserError(f"reward: {name!r}, expected one of {', '.join(named)}")
    about: dict[str, Any] = checked(named[name], dict[str, Any], name)
    places: list[str] = checked(about.get("applies-to"), list[str], f"{name}: applies-to")
    rewards, counts = np.zeros(len(starts) - 1), np.diff(offsets)
    sizes = {"states": len(counts), "choices": len(rewards), "branches": len(probabilities)}
    for place in places:
        if place not in sizes:
            raise UserError(f"{name}: of {place!r}, expected states, choices or branches")
        file = f"annotations/rewards/{name}/{place}/values.bin"
        values = _numbers(members, file, about.get("type"), sizes[place])
        if place == "states":
            rewards += np.repeat(values, counts)
        elif place == "choices":
            rewards += values
        else:
            rewards += np.add.reduceat(values * probabilities, starts[:-1])
    return rewards


def _actions(
    members: Buffers, count: int, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, Any]:
    """The actions' numbers, their names, and the order of the choices in which numbers rise.

    Where a state has two choices of one action, actions are numbered by their places instead.
    """
    states, counts = len(offsets) - 1, np.diff(offsets)
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    if not count or "actions/choices/values.bin" not in members:
        return places, None, slice(None)
    found = _vector(members, "actions/choices/values.bin", "<u4", int(offsets[-1]))
    if len(found) and found.max() >= count:
        raise UserError(f"actions/choices/values.bin: {found.max()}, expected below {count}")
    owners = np.repeat(np.arange(states), counts)
    order: Any = slice(None)
    if ((np.diff(found.astype(np.int64)) <= 0) & (np.diff(owners) == 0)).any():
        order = np.lexsort((found, owners))
    choices = found[order].astype(np.int64)
    same = (np.diff(choices) == 0) & (np.diff(owners) == 0)
    if same.any() or count > 2**20:
        return places, None, slice(None)
    names = _strings(members, "actions/choices", count)
    return choices, None if names is None else names[: int(choices.max()) + 1], order


def _strings(members: Buffers, path: str, count: int) -> np.ndarray | None:
    if f"{path}/string-mapping.bin" not in members:
        return None
    ends = _vector(members, f"{path}/string-mapping.bin", "<u8", count + 1)
    text = bytes(members.get(f"{path}/strings.bin", b""))
    if ends[0] != 0 or ends[-1] != len(text) or (ends[1:] < ends[:-1]).any():
        raise UserError(f"{path}/string-mapping.bin: does not fit strings.bin")
    if np.diff(ends).max(initial=0) > 1_000:
        raise UserError(f"{path}/strings.bin: a name of over 1,000 bytes, expected shorter ones")
    bounds = ends.astype(int)
    return np.array([text[a:b].decode(errors="replace") for a, b in itertools.pairwise(bounds)])


def _discount(index: Mapping[str, Any]) -> np.ndarray | None:
    """The format has no place for a discount; ours is in a comment."""
    data = checked(index.get("model-data", {}), dict[str, Any], "model-data")
    found = re.search(r"\bdiscount ([0-9.e-]+)", str(data.get("comment", ""))[:1_000])
    try:
        return np.array(float(found[1])) if found else None
    except ValueError:
        return None


# Writing -----------------------------------------------------------------------------------------


def write_umb(mdp: FiniteMDP, path: Path) -> None:
    """Write one MDP as a plain tar; rewards of choices, the discount as a comment."""
    require_single(mdp, "UMB holds one")
    there = ~np.isneginf(mdp.rewards)
    successors, p = mdp.successors[there], mdp.probabilities[there]
    used = p > 0
    counts = there.sum(-1) if mdp.offsets is None else np.diff(mdp.offsets)
    numbers = np.nonzero(there)[1] if mdp.choices is None else mdp.choices
    names = mdp.action_names
    words = [f"action {a}" for a in range(mdp.actions)] if names is None else names.tolist()
    texts = [word.encode() for word in words]
    files = {
        "state-is-initial.bin": np.packbits(np.arange(mdp.states) == 0, bitorder="little"),
        "state-to-choices.bin": _csr(counts),
        "choice-to-branches.bin": _csr(used.sum(-1)),
        "branch-to-target.bin": successors[used].astype("<u8"),
        "branch-to-probability.bin": p[used].astype("<f8"),
        "actions/choices/values.bin": numbers.astype("<u4"),
        "actions/choices/strings.bin": np.frombuffer(b"".join(texts), np.uint8),
        "actions/choices/string-mapping.bin": _csr(np.array([len(text) for text in texts])),
        "annotations/rewards/reward/choices/values.bin": mdp.rewards[there].astype("<f8"),
    }
    index = {
        "format-version": 0,
        "format-revision": 1,
        "model-data": {"comment": f"discount {float(mdp.discount)!r}"},
        "transition-system": {
            "time": "discrete",
            "#players": 1,
            "#states": mdp.states,
            "#initial-states": 1,
            "#choices": mdp.pairs,
            "#choice-actions": mdp.actions,
            "#branches": int(used.sum()),
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": {"type": "double", "size": 64},
        },
        "annotations": {
            "rewards": {
                "reward": {"applies-to": ["choices"], "type": {"type": "double", "size": 64}}
            }
        },
    }
    target = file_to_write(path)
    with (
        writing(target),
        written_aside(target) as file,
        tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        _add(archive, "index.json", json.dumps(index, indent=2).encode())
        for name, array in files.items():
            _add(archive, name, np.ascontiguousarray(array).view(np.uint8).data)


def _csr(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype("<u8")


def _add(archive: tarfile.TarFile, name: str, content: Any) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
