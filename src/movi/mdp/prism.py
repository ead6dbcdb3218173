"""PRISM's explicit files: ``.tra`` with transitions, beside it ``.srew``, ``.trew`` and ``.sta``.

    .tra    S L T               then lines   s choice s' p [action]
    .srew   S n                 then lines   s reward
    .trew   S L T               then lines   s choice s' reward

A ``.tra`` whose first line has two numbers is a Markov chain: lines  s s' p. Comments begin with #.
"""

from pathlib import Path

import numpy as np

from movi.errors import UserError
from movi.files import file_to_write, writing, written_aside
from movi.mdp.checks import require_single
from movi.mdp.model import FiniteMDP
from movi.mdp.tables import Arrays, slots
from movi.reading import text
from movi.sizes import available_memory, require

_ROWS = 1 << 16  # written at a time
_MEMORY = 40  # bytes of memory per byte of text, at most


def read_prism(path: Path) -> Arrays:
    """An MDP from ``NAME.tra`` and the rewards beside it, ``NAME.srew`` and ``NAME.trew``."""
    head, rows, labels = _read(path)
    if len(head) == 2:  # a chain: one choice in every state
        head = [head[0], head[0], head[1]]
        rows = np.insert(rows, 1, 0.0, axis=1) if rows.size else rows.reshape(0, 4)
    if len(head) != 3 or rows.shape[1] < 4:
        raise UserError(f"{path}: line 1: {head}, expected the numbers of states, choices, …")
    states, pairs, transitions = head
    if not 0 < states < 2**31 or not pairs > 0:
        raise UserError(f"{path}: line 1: {states} states and {pairs} choices, expected some")
    if len(rows) != transitions:
        raise UserError(f"{path}: {len(rows)} transitions, expected {transitions}")
    require(f"{path}: {states:,} states and {pairs:,} choices", memory=64 * (states + pairs))
    s, c, t = (_whole(path, rows[:, i], limit) for i, limit in enumerate((states, pairs, states)))
    order = np.lexsort((t, c, s))
    s, c, t, p = s[order], c[order], t[order], rows[order, 3]
    first = np.flatnonzero(np.diff(s * pairs + c, prepend=-1))
    if len(first) != pairs:
        raise UserError(f"{path}: {len(first)} choices, expected {pairs}")
    counts = np.diff(np.append(first, len(s)))
    require(f"{path}", memory=2 * pairs * int(counts.max(initial=1)) * 12)
    owner, choice = s[first], c[first]
    held = np.unique(owner)
    if len(held) != states:  # before anything is as long as the states are said to be
        missing = np.append(np.flatnonzero(held != np.arange(len(held))), len(held))[0]
        raise UserError(f"{path}: state {missing} has no actions, expected at least one")
    rewards = np.zeros(pairs)
    beside = path.with_suffix(".srew")
    if beside.exists():
        _, given, _ = _read(beside)
        if given.size and given.shape[1] < 2:
            raise UserError(f"{beside}: expected lines of a state and its reward")
        by_state = np.zeros(states)
        if given.size:
            by_state[_whole(beside, given[:, 0], states)] = given[:, 1]
        rewards += by_state[owner]
    beside = path.with_suffix(".trew")
    if beside.exists():
        each = _by_transition(beside, head, np.stack([s, c, t], 1))
        rewards += np.add.reduceat(each * p, first)
    successors, probabilities = slots(np.append(first, len(s)), t, p)
    return {
        "successors": successors,
        "probabilities": probabilities,
        "rewards": rewards,
        "offsets": np.searchsorted(owner, np.arange(states + 1)),
        "choices": choice,
        "state_names": _state_names(path.with_suffix(".sta"), states),
        "action_names": _action_names(labels, rows[:, 1] if rows.size else rows, choice),
    }


def _read(path: Path) -> tuple[list[int], np.ndarray, list[str]]:
    """The first line's numbers, the other lines' as an array, and the words at their ends."""
    content = text(path, max(available_memory() // _MEMORY, 1))
    lines = [line for line in content.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    if not lines:
        raise UserError(f"{path}: empty, expected an explicit file of PRISM")
    try:
        head = [int(word) for word in lines[0].split()]
        if not all(0 <= number < 2**62 for number in head):
            raise ValueError
    except ValueError:
        raise UserError(f"{path}: line 1: {lines[0]!r}, expected numbers") from None
    words = [line.split() for line in lines[1:]]
    width = min((len(row) for row in words), default=0)
    labels: list[str] = []
    if width == 5:
        labels = [row[4] for row in words]
        width = 4
    try:
        rows = np.array([[float(word) for word in row[:width]] for row in words])
    except ValueError:
        raise UserError(f"{path}: a line without numbers, expected them") from None
    return head, rows.reshape(len(words), width), labels


def _whole(path: Path, values: np.ndarray, limit: int) -> np.ndarray:
    """Column values as numbers in 0..limit − 1."""
    good = (values >= 0) & (values < limit) & (values == np.floor(values))
    if not good.all():
        wrong = values[np.argmin(good)]
        raise UserError(f"{path}: {wrong:g}, expected a number in 0..{limit - 1}")
    return values.astype(np.int64)


def _by_transition(path: Path, head: list[int], model: np.ndarray) -> np.ndarray:
    """The reward of each transition, [T]; ``model`` has their s, choice and s', sorted, [T, 3]."""
    _, given, _ = _read(path)
    values = np.zeros(len(model))
    if not given.size:
        return values
    if given.shape[1] < 4:
        raise UserError(f"{path}: expected lines of s, choice, s' and a reward")
    keys = np.stack([_whole(path, given[:, i], head[n]) for i, n in enumerate((0, 1, 0))], 1)
    place = {key: i for i, key in enumerate(map(tuple, model.tolist()))}
    for key, value in zip(map(tuple, keys.tolist()), given[:, 3].tolist()):
        if key not in place:
            raise UserError(f"{path}: {key[0]} {key[1]} {key[2]}: not a transition of the model")
        values[place[key]] += value
    return values


def _state_names(path: Path, states: int) -> np.ndarray | None:
    if not path.exists():
        return None
    lines = text(path, max(available_memory() // _MEMORY, 1)).splitlines()[1:]
    names = [line.partition(":")[2].strip() for line in lines if line.strip()]
    if len(names) != states:
        raise UserError(f"{path}: {len(names)} states, expected {states}")
    return np.array([name[:1_000] for name in names])


def _action_names(labels: list[str], numbers: np.ndarray, choice: np.ndarray) -> np.ndarray | None:
    """Names of actions, where a choice's number has the same name in every state."""
    if not labels:
        return None
    names: dict[int, str] = {}
    for number, label in zip(numbers.astype(int).tolist(), labels):
        if names.setdefault(number, label[:1_000]) != label[:1_000]:
            return None
    return np.array([names.get(a, f"action {a}") for a in range(int(choice.max()) + 1)])


def write_prism(mdp: FiniteMDP, path: Path) -> None:
    """Write ``NAME.tra`` and ``NAME.trew``; each transition has the reward of its choice.

    PRISM numbers the choices of a state 0, 1, …: actions that a state does not have leave no gap.
    """
    require_single(mdp, "PRISM's files hold one")
    there = ~np.isneginf(mdp.rewards)
    counts = there.sum(-1) if mdp.offsets is None else np.diff(mdp.offsets)
    owner = np.repeat(np.arange(mdp.states), counts)
    number = np.arange(mdp.pairs) - np.repeat(np.cumsum(counts) - counts, counts)
    used = mdp.probabilities[there] > 0
    # One line for each successor of a choice, however often it is listed.
    keys = np.nonzero(used)[0] * mdp.states + mdp.successors[there][used]
    found, place = np.unique(keys, return_inverse=True)
    row, to = np.divmod(found, mdp.states)
    p = np.bincount(place, mdp.probabilities[there][used])
    actions = np.nonzero(there)[1] if mdp.choices is None else mdp.choices
    names = None if mdp.action_names is None else np.char.replace(mdp.action_names, " ", "_")
    head = f"{mdp.states} {mdp.pairs} {len(row)}\n"
    files = {".tra": p, ".trew": mdp.rewards[there][row]}
    for suffix, values in files.items():
        target = file_to_write(path.with_suffix(suffix))
        with writing(target), written_aside(target) as file:
            file.write(head.encode())
            for begin in range(0, len(row), _ROWS):
                part = slice(begin, begin + _ROWS)
                r = row[part]
                labels = (
                    [""] * len(r)
                    if names is None or suffix != ".tra"
                    else [f" {name}" for name in names[actions[r]]]
                )
                columns = zip(owner[r], number[r], to[part], values[part].tolist(), labels)
                lines = [f"{s} {c} {t} {x!r}{label}\n" for s, c, t, x, label in columns]
                file.write("".join(lines).encode())
