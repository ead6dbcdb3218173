"""Replay of single frames: each is stored once, and the stacks are rebuilt when sampled.

A transition's s and s' are K+1 successive frames (K = 4 on Atari), of which K−1 belong to the
transition before as well. The replay keeps two rings: frames, and transitions that say in which
slots their K+1 frames are. Slot 0 of the frames is all zeros and stands for everything before an
episode's first frame (x, y, … are frames; an episode is cut at x3, another starts with y0):

    frames:       0  x0 x1 x2 x3 y0 y1            ← head
    transition 0: 0  0  0  x0 x1                  s = 0 0 0 x0, s' = 0 0 x0 x1
    transition 1: 0  0  x0 x1 x2
    transition 2: 0  x0 x1 x2 x3                  the final frame is stored, though none follows it
    transition 3: 0  0  0  y0 y1                  y0 is in no transition together with x3

Frames of several environments stand in the ring in the order in which they came; only the slots'
numbers link them. Where the head overwrites a frame, the transitions up to the newest that uses it
leave the replay.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from movi.replay.memory import require_disk, require_memory
from movi.spaces import ObservationSpace
from movi.transitions import Transition

ZEROS = 0  # the slot that is never written


def extra_frames(capacity: int) -> int:
    """Frames beyond one per transition: the first ones of episodes, with their stacks."""
    return capacity // 100 + 64


def arrays_of(capacity: int, space: ObservationSpace) -> dict[str, tuple[tuple[int, ...], str]]:
    """The shape and dtype of each array of a replay."""
    stack, *image = space.shape
    frames = 1 + capacity + extra_frames(capacity)
    return {
        "frames": ((frames, *image), space.dtype),
        "user": ((frames,), "int64"),
        "slots": ((capacity, stack + 1), "int32"),
        "action": ((capacity,), "int32"),
        "reward": ((capacity,), "float32"),
        "discount": ((capacity,), "float32"),
    }


def bytes_of(capacity: int, space: ObservationSpace, slack: int = 0) -> int:
    """Bytes of a whole replay.

    >>> bytes_of(1_000_000, ObservationSpace((4, 84, 84), "uint8"))
    7167099160
    """
    return sum(
        int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        for shape, dtype in arrays_of(capacity + slack, space).values()
    )


class FrameReplay:
    """A bounded store of transitions whose observations are stacks of frames, newest last."""

    def __init__(
        self,
        capacity: int,
        space: ObservationSpace,
        *,
        slack: int = 0,
        directory: Path | None = None,
    ) -> None:
        """Allocates the rings, or says at once that they cannot fit.

        Args:
          capacity: how many transitions can be sampled, the newest ones.
          space: of the stacks, [K, ...].
          slack: how many more slots the rings have: what was in the replay at one moment is still
            there, whatever is sampled, until as many transitions have been added.
          directory: keeps the rings in memory-mapped files there instead of in memory.
        """
        name = f"replay of {capacity:,} transitions"
        size = bytes_of(capacity, space, slack)
        if directory is None:
            require_memory(name, size)
        else:
            require_disk(name, directory, size)
        arrays: Mapping[str, np.ndarray] = {
            key: _array(shape, dtype, None if directory is None else directory / f"{key}.bin")
            for key, (shape, dtype) in arrays_of(capacity + slack, space).items()
        }
        self._frames, self._user = arrays["frames"], arrays["user"]
        self._slots, self._action = arrays["slots"], arrays["action"]
        self._reward, self._discount = arrays["reward"], arrays["discount"]
        self._user[:] = -1
        self.capacity = capacity
        self.nbytes = size
        self._ring, self._frame_ring = len(self._slots), len(self._frames) - 1
        self._stack = space.shape[0]
        self._first = self._added = 0  # transitions first, …, added − 1 can be sampled
        self._written = 0  # frames ever written; number k is in slot 1 + k mod frame_ring
        # Of each environment in mid-episode: the numbers of its newest K frames, −1 for zeros.
        self._histories: dict[int, list[int]] = {}

    def __len__(self) -> int:
        """How many transitions can be sampled."""
        return self._added - self._first

    def add(self, env: int, transition: Transition, ended: bool) -> None:
        """Stores the next transition of an environment; ``ended`` if its episode ends there.

        Within an episode only the newest frame of s' is read.
        """
        history = self._histories.get(env)
        if history is None or self._lost(history):
            history = self._begin(np.asarray(transition.observation))
        numbers = [*history, self._write(np.asarray(transition.next_observation)[-1])]
        slots = [ZEROS if k < 0 else 1 + k % self._frame_ring for k in numbers]
        t = self._added
        slot = t % self._ring
        self._slots[slot] = slots
        self._user[slots] = t
        self._action[slot] = transition.action
        self._reward[slot] = transition.reward
        self._discount[slot] = transition.discount
        self._added = t + 1
        self._first = max(self._first, self._added - self.capacity)
        if ended:
            self._histories.pop(env, None)
        else:
            self._histories[env] = numbers[1:]

    def cut(self) -> None:
        """The next transition of every environment begins a history of its own."""
        self._histories.clear()

    def counters(self) -> dict[str, int]:
        """With the rings' content, all that ``restore`` needs after a ``cut``."""
        return {"first": self._first, "added": self._added, "written": self._written}

    def restore(self, counters: Mapping[str, int]) -> None:
        """Goes back to a moment of these rings, at most ``slack`` transitions ago."""
        self._first, self._added = counters["first"], counters["added"]
        self._written = counters["written"]
        self._histories.clear()
        self._user[:] = -1
        for t in range(self._first, self._added, 2**16):
            block = np.arange(t, min(t + 2**16, self._added))
            slots = self._slots[block % self._ring]
            np.maximum.at(self._user, slots, block[:, None])

    def sample(self, bits: np.ndarray) -> Transition:
        """One transition for each random uint32 (the bias of the remainder is < 2⁻¹²)."""
        chosen = (self._first + (bits % np.uint32(len(self))).astype(np.int64)) % self._ring
        slots = self._slots[chosen]
        return Transition(
            observation=self._frames[slots[..., :-1]],
            action=self._action[chosen],
            reward=self._reward[chosen],
            discount=self._discount[chosen],
            next_observation=self._frames[slots[..., 1:]],
        )

    def _begin(self, stack: np.ndarray) -> list[int]:
        """Stores the frames of an observation; leading zeros need no slot."""
        zeros = 0
        while zeros < self._stack and not stack[zeros].any():
            zeros += 1
        return [-1] * zeros + [self._write(frame) for frame in stack[zeros:]]

    def _write(self, frame: np.ndarray) -> int:
        number = self._written
        slot = 1 + number % self._frame_ring
        self._first = max(self._first, int(self._user[slot]) + 1)
        self._user[slot] = -1
        self._frames[slot] = frame
        self._written = number + 1
        return number

    def _lost(self, history: list[int]) -> bool:
        """Whether the next frame, or those before, overwrites one of these."""
        return any(0 <= k <= self._written - self._frame_ring for k in history)


def _array(shape: tuple[int, ...], dtype: str, file: Path | None) -> Any:
    """Zeros, or a file's content; a new file takes its whole size on the disk at once."""
    if file is None:
        return np.zeros(shape, dtype)
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    with file.open("ab") as new:
        if new.tell() != size:
            os.truncate(new.fileno(), 0)
            os.posix_fallocate(new.fileno(), 0, size)
    return np.memmap(file, dtype, "r+", shape=shape)
