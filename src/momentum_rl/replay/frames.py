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
numbers link them. Where the head overwrites a frame (in a ring
without slack), the transitions up to the newest that uses it leave the replay.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from momentum_rl.errors import Damaged
from momentum_rl.replay.uniform import Ring, bytes_per_record, require_space
from momentum_rl.replay.windows import windows_of
from momentum_rl.spaces import NUMBERED, ONE_STEP, ActionFormat, NStep, ObservationSpace, Transition

ZEROS = 0  # the slot that is never written


def extra_frames(capacity: int) -> int:
    """Frames beyond one per transition: the first ones of episodes, with their stacks."""
    return capacity // 100 + 64


def frames_of(capacity: int, slack: int, stack: int) -> int:
    """Frames in the ring of a replay; in one that is never filled at most what it can be given."""
    ring = capacity + slack
    if slack >= 0:
        return ring + extra_frames(ring)
    return ring + min(extra_frames(capacity), stack * ring)


def records_of(
    space: ObservationSpace, action: ActionFormat = NUMBERED
) -> tuple[np.dtype, np.dtype]:
    """A frame and a transition as records."""
    stack, *image = space.shape
    transition = [("slots", np.int32, (stack + 1,)), ("action", action.dtype, action.shape)]
    return (
        np.dtype([("frame", space.dtype, tuple(image))]),
        np.dtype([*transition, ("reward", np.float32), ("discount", np.float32)]),
    )


def bytes_of(
    capacity: int,
    space: ObservationSpace,
    slack: int = 0,
    *,
    mapped: bool = False,
    action: ActionFormat = NUMBERED,
) -> int:
    """Bytes of a whole replay.

    >>> bytes_of(1_000_000, ObservationSpace((4, 84, 84), "uint8"))
    7167099160
    """
    ring = capacity + slack
    frames = 1 + frames_of(capacity, slack, space.shape[0])
    frame, transition = (
        bytes_per_record(dtype, mapped=mapped) for dtype in records_of(space, action)
    )
    return frames * (frame + 8) + ring * transition  # 8: who uses a frame, in memory


class FrameReplay:
    """A bounded store of transitions whose observations are stacks of frames, newest last."""

    def __init__(
        self,
        capacity: int,
        space: ObservationSpace,
        *,
        slack: int = 0,
        horizon: NStep = ONE_STEP,
        action: ActionFormat = NUMBERED,
        directory: Path | None = None,
        new: bool = True,
        run: str = "",
    ) -> None:
        """Allocates the rings, or says at once that they cannot fit.

        Args:
          capacity: how many transitions can be sampled, the newest ones.
          space: of the stacks, [K, ...].
          slack: how many more slots the rings have: what was in the replay is still in them, though
            no longer sampled, until about as many transitions have been added. Negative if so many
            of the capacity are never used.
          horizon: of the transitions that are sampled.
          action: of the actions.
          directory: keeps the rings in memory-mapped files there instead of in memory.
          new: begin new files instead of opening those that are there.
          run: whose files they are; a snapshot says it of those that are there.
        """
        size = bytes_of(capacity, space, slack, mapped=directory is not None, action=action)
        require_space(capacity, size, directory)
        frame, transition = records_of(space, action)
        ring = capacity + slack
        frames = frames_of(capacity, slack, space.shape[0])

        def file(name: str) -> Path | None:
            return None if directory is None else directory / name

        self._transitions = Ring(ring, transition, file("transitions.bin"), new=new)
        self._images = Ring(frames + 1, frame, file("frames.bin"), new=new, first=1)
        self._frames = self._images.data["frame"]
        data = self._transitions.data
        self._slots, self._action = data["slots"], data["action"]
        self._reward, self._discount = data["reward"], data["discount"]
        self._user = np.full(frames + 1, -1)  # the newest transition that uses a frame
        self.capacity, self._slack, self.horizon = capacity, slack, horizon
        self.nbytes = self._transitions.nbytes + self._images.nbytes + self._user.nbytes
        self._ring, self._frame_ring = ring, frames
        self._stack = space.shape[0]
        self._first = self._added = 0  # transitions first, …, added − 1 can be sampled
        self._written = 0  # frames ever written; number k is in slot 1 + k mod frame_ring
        # Of each environment in mid-episode: the numbers of its newest K frames, −1 for zeros.
        self._histories: dict[int, list[int]] = {}
        self._sealed = 0, 0  # transitions and frames whose checksums are on the disk
        self.run = run

    def __len__(self) -> int:
        return max(0, self._added - self._first - self.horizon.incomplete)

    @property
    def _reach(self) -> int:
        """How many of the newest frames count, whatever the slack."""
        return min(self._added, self.capacity) + extra_frames(self.capacity)

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
        self._discount[slot] = -transition.discount if ended else transition.discount
        self._added = t + 1
        self._first = max(self._first, self._added - self.capacity)
        if ended:
            self._histories.pop(env, None)
        else:
            self._histories[env] = numbers[1:]

    def sample(self, bits: np.ndarray) -> Transition:
        """One transition for each random uint32 (the bias of the remainder is < 2⁻¹²)."""
        chosen = (self._first + (bits % np.uint32(len(self))).astype(np.int64)) % self._ring
        last, reward, discount = windows_of(chosen, self._reward, self._discount, self.horizon)
        return Transition(
            observation=self._frames[self._slots[chosen][..., :-1]],
            action=self._action[chosen],
            reward=reward,
            discount=discount,
            next_observation=self._frames[self._slots[last][..., 1:]],
        )

    def snapshot(self) -> dict[str, Any]:
        """See ``Replay``."""
        transitions, frames = self._sealed
        self._transitions.seal(transitions, self._added, self.run)
        self._images.seal(frames, self._written, self.run)
        self._sealed = self._added, self._written
        return {
            "run": self.run,
            "slack": self._slack,
            "first": self._first,
            "added": self._added,
            "written": self._written,
            "oldest": self._oldest(),
            "histories": [[env, *numbers] for env, numbers in sorted(self._histories.items())],
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Goes back to a snapshot of these rings."""
        first, added, written = (int(snapshot[name]) for name in ("first", "added", "written"))
        oldest, histories = int(snapshot["oldest"]), snapshot["histories"]
        held = 0 <= first <= added and added - first <= self.capacity
        within = 0 <= oldest <= written <= oldest + self._frame_ring
        fits = all(
            len(numbers) == self._stack and all(-1 <= k < written for k in numbers)
            for _, *numbers in histories
        )
        if int(snapshot["slack"]) > self._slack or not (held and within and fits):
            raise Damaged(f"replay: {dict(snapshot)}, expected a snapshot of it")
        self.run = str(snapshot["run"])
        self._transitions.verify(first, added, self.run)
        self._images.verify(oldest, written, self.run)
        if self._frames[ZEROS].any():
            raise Damaged(f"{self._images.file}: damaged (its first frame is not zeros)")
        self._user[:] = -1
        for t in range(first, added, 2**16):
            block = np.arange(t, min(t + 2**16, added))
            slots = self._slots[block % self._ring]
            if slots.min() < 0 or slots.max() > self._frame_ring:
                raise Damaged("replay: a transition without its frames")
            np.maximum.at(self._user, slots, block[:, None])
        self._first, self._added, self._written = first, added, written
        self._histories = {int(env): [int(k) for k in numbers] for env, *numbers in histories}
        self._sealed = added, written

    def headroom(self, snapshot: Mapping[str, Any]) -> int:
        """How many more transitions can surely be added before a snapshot is overwritten."""
        frames = int(snapshot["oldest"]) + self._frame_ring - self._written
        transitions = int(snapshot["first"]) + self._ring - self._added
        return min(transitions, frames // (self._stack + 1))  # an episode's first one has K + 1

    def _begin(self, stack: np.ndarray) -> list[int]:
        """Stores the frames of an observation; leading zeros need no slot."""
        zeros = 0
        while zeros < self._stack and not stack[zeros].any():
            zeros += 1
        return [-1] * zeros + [self._write(frame) for frame in stack[zeros:]]

    def _write(self, frame: np.ndarray) -> int:
        number = self._written
        if number >= self._reach:
            forgotten = 1 + (number - self._reach) % self._frame_ring
            self._first = max(self._first, int(self._user[forgotten]) + 1)
        slot = 1 + number % self._frame_ring
        self._user[slot] = -1
        self._frames[slot] = frame
        self._written = number + 1
        return number

    def _lost(self, history: list[int]) -> bool:
        """Whether the next frame, or those before, makes one of these forgotten."""
        return any(0 <= k <= self._written - self._reach for k in history)

    def _oldest(self) -> int:
        """The number of the oldest frame that is still needed."""
        oldest = self._written
        newest = self._written - 1
        for t in range(self._first, self._added, 2**18):
            block = np.arange(t, min(t + 2**18, self._added)) % self._ring
            ages = (newest % self._frame_ring + 1 - self._slots[block]) % self._frame_ring
            ages[self._slots[block] == ZEROS] = 0
            oldest = min(oldest, newest - int(ages.max()))
        return min([oldest, *(k for h in self._histories.values() for k in h if k >= 0)])
