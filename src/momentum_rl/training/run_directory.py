"""The directory of a run: its writer, its checkpoints, and how one that is there goes on.

Its files are described in ``momentum_rl.runs.files``. A checkpoint is one file, complete or absent;
the last two of a run are kept. It is a safetensors file: arrays by name, and a JSON text with
everything else. The text names its format; a SHA-256 is of the text and all arrays. Reading
executes nothing, allocates no more than the file's size, and takes nothing from a file whose
checksum is wrong.
"""

import hashlib
import logging
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from momentum_rl.agents.agent import AGENT_FILE, BEST_FILE, Agent, load
from momentum_rl.core.options import default_kappa
from momentum_rl.errors import Damaged, Interrupted, NoRoom, UserError, one_line
from momentum_rl.plumbing.files import (
    check_own_directory,
    check_replaceable,
    directory_to_write,
    write_aside,
    writing,
)
from momentum_rl.plumbing.reading import (
    LARGE,
    as_json,
    checked,
    content,
    parsed,
    read_rows,
    rows,
    tensors,
)
from momentum_rl.plumbing.signals import Stop
from momentum_rl.plumbing.versions import machine, now, of_training
from momentum_rl.runs.config import Config, changes, flat
from momentum_rl.runs.files import (
    CONFIG,
    ENDED,
    EVALUATION,
    EVALUATIONS,
    METRICS,
    STATUS,
    TIMING,
    VERSIONS,
    EvaluationFile,
    EvaluationRow,
    Since,
    Status,
    TimingRow,
    VersionsFile,
    holds_run,
    read_config,
    read_if_there,
    read_metrics,
    read_status,
)
from momentum_rl.runs.lock import RUN_LOCK, Lock
from momentum_rl.training.evaluation import Evaluation
from momentum_rl.version import __version__

REPLAY, CHECKPOINTS = "replay", "checkpoint"
LEFTOVERS = (RUN_LOCK, REPLAY, STATUS)  # what a run that died before it began may leave
RESULTS = (METRICS, TIMING, EVALUATION, EVALUATIONS, AGENT_FILE, BEST_FILE)
WRITTEN = (CONFIG, STATUS, VERSIONS, *RESULTS)

FORMAT = 2  # of a checkpoint
KEPT = 2
SUFFIX = ".safetensors"

T = TypeVar("T")

log = logging.getLogger("movi")


class RunDirectory:
    """Writes a run's files; from ``begin`` to ``close`` the only one to do so."""

    def __init__(self, path: str | Path, config: Config, fingerprint: str = "") -> None:
        """Takes a new or empty directory, or that of the same run; nothing is changed yet.

        ``fingerprint`` is that of its learner: a run is continued by no other.
        """
        self.path, self._config = Path(path), config
        self._fingerprint = fingerprint
        check_learner(self.path, fingerprint)
        self._new = not holds_run(self.path)
        self._is_ours = not self.path.exists()
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.path / RUN_LOCK)
        self.checkpoints = Checkpoints(self.path)
        self._begun = False
        self._files = ExitStack()
        self.rows: list[dict[str, Any]] = []
        self.evaluations: list[EvaluationRow] = []

    @property
    def replay(self) -> Path:
        """Where the replay's files are."""
        return self.path / REPLAY

    def begin(
        self, step: int = 0, written: Mapping[str, Any] | None = None, best: bytes | None = None
    ) -> str:
        """Starts writing: a new run, or after what a checkpoint says was written then.

        The best agent is the checkpoint's, too: one that was found later is found again.

        Returns a line about versions that are not those of the run so far, or "".
        """
        kept = _cut(self.path / METRICS, written)
        played = _cut(self.path / EVALUATIONS, (written or {}).get("evaluations"))
        self.rows = rows(kept.decode(), str(self.path / METRICS), dict[str, float | None])
        self.evaluations = rows(played.decode(), str(self.path / EVALUATIONS), EvaluationRow)
        if not self._new:  # before anything of an ended run is changed
            self.status("running", step)
        with writing(self.path):
            for part in [*self.path.glob(".*.part"), *self.path.glob("checkpoint/.*.part")]:
                part.unlink()
            for old in [*self.path.glob("events.out.*"), self.path / EVALUATION]:
                old.unlink(missing_ok=True)
            if best is None:
                (self.path / BEST_FILE).unlink(missing_ok=True)
            else:
                write_aside(self.path / BEST_FILE, best)
            self._begun = True
            write_aside(self.path / CONFIG, self._config.to_json())
            timing = _timing(self.path / TIMING, len(self.rows))
            opened = self._files.enter_context
            self._metrics = opened(closing(_Rows(self.path / METRICS, kept)))
            self._timing = opened(closing(_Rows(self.path / TIMING, _lines(timing))))
            if self._config.evaluate_every:
                self._evaluations = opened(closing(_Rows(self.path / EVALUATIONS, played)))
            self._events = opened(closing(_Events(self.path)))
            timing += [{} for _ in self.rows[len(timing) :]]
            for row, times in zip(self.rows, timing):
                self._events.add({**row, **times})
            for evaluation in self.evaluations:
                self._events.add(_evaluation_scalars(asdict(evaluation)))
        passed = timing[-1].get("seconds", 0.0) if timing else 0.0
        self._start = time.monotonic() - passed
        self._last, self._last_step = time.monotonic(), step
        notice = self._write_versions(0 if written is None else step)
        self.status("running", step)
        return notice

    def _write_versions(self, step: int) -> str:
        """Adds today's versions if they are others; a line about them, if there is one to say."""
        today = of_training()
        since = [one for one in _versions(self.path) if one.step < step]
        if step and not since:
            since = [Since(0, {})]  # unknown
        before = since[-1].versions if since else today
        if not since or (before, since[-1].machine) != (today, machine()):
            since.append(Since(step, today, self._fingerprint, machine(), now()))
        self.write_json(
            VERSIONS, {"format": 1, **asdict(VersionsFile(since, _versions_digest(since)))}
        )
        if not before:
            return f"the versions that trained it up to step {step:,} are not known"
        changed = [
            f"{name} {before.get(name, '(none)')} → {today.get(name, '(none)')}"
            for name in sorted({**before, **today})
            if before.get(name) != today.get(name)
        ]
        if not changed:
            return ""
        changes = ", ".join(changed)
        return one_line(f"other versions than before: {changes}; numbers may differ from here on")

    def row(self, metrics: Mapping[str, Any]) -> None:
        """Adds an iteration."""
        now, step = time.monotonic(), int(metrics["step"])
        seconds = now - self._last
        timing = {
            "iteration": metrics["iteration"],
            "step": step,
            "seconds": round(now - self._start, 3),
            "steps_per_second": round((step - self._last_step) / max(seconds, 1e-9), 1),
        }
        self._last, self._last_step = now, step
        with writing(self.path):
            self._metrics.add(metrics)
            self._timing.add(timing)
            self._events.add({**metrics, **timing})
        self.rows.append(dict(metrics))

    def evaluation(self, step: int, evaluation: Evaluation) -> None:
        """Adds an evaluation during the run."""
        row = {"step": step, **evaluation.to_json()}
        with writing(self.path):
            self._evaluations.add(row)
            self._events.add(_evaluation_scalars(row))

    def written(self) -> dict[str, Any]:
        """What ``begin`` needs to go on from here; it is on the disk when this returns."""
        with writing(self.path):
            self._timing.written()
            written = self._metrics.written()
            if self._config.evaluate_every:
                written["evaluations"] = self._evaluations.written()
        return written

    def write(self, name: str, content: bytes | str) -> None:
        """Writes a file, whole or not at all."""
        with writing(self.path):
            write_aside(self.path / name, content)

    def status(self, status: Status, step: int, message: str = "") -> None:
        """Writes the run's status."""
        text = as_json({"status": status, "step": step, "message": message, "time": now()})
        self.write(STATUS, text + "\n")

    def write_json(self, name: str, data: Any) -> None:
        """Writes a file of JSON."""
        self.write(name, as_json(data, indent=2) + "\n")

    def close(self) -> None:
        """Closes the files; a new directory in which nothing began is removed again."""
        self._files.close()
        if self._new and not self._begun:
            shutil.rmtree(self.replay, ignore_errors=True)
        self._lock.close()
        if self._is_ours and not self._begun:
            with suppress(OSError):  # whatever stopped it left something there
                self.path.rmdir()


def check_learner(run: Path, fingerprint: str) -> None:
    """Raises if a run was trained by another learner of the same versions."""
    since = _versions(run)
    before = since[-1].learner if since and since[-1].versions == of_training() else ""
    source = before.partition("-")[0]  # traces of the same source can be compared
    if source and fingerprint.partition("-")[0] == source and fingerprint != before:
        raise UserError(
            f"out: {run} was trained with another algorithm, network, optimiser or loss than are "
            "given here, expected the run's own"
        )


class _Rows:
    """A file of rows that a checkpoint can refer to: how many there were, and which."""

    def __init__(self, file: Path, content: bytes) -> None:
        write_aside(file, content)
        self._file = file.open("ab")
        self._rows, self._bytes = len(content.splitlines()), len(content)
        self._digest = hashlib.sha256(content)

    def add(self, row: Mapping[str, Any]) -> None:
        line = _lines([row])
        self._file.write(line)
        self._file.flush()
        self._digest.update(line)
        self._rows, self._bytes = self._rows + 1, self._bytes + len(line)

    def written(self) -> dict[str, Any]:
        os.fsync(self._file.fileno())
        return {"rows": self._rows, "bytes": self._bytes, "sha256": self._digest.hexdigest()}

    def close(self) -> None:
        self._file.close()


class _Events:
    """TensorBoard's file, written at once and not by a thread, so that errors reach the run."""

    def __init__(self, path: Path) -> None:
        from tensorboardX.event_file_writer import EventsWriter

        # Absolute: it takes a path that begins with "s3:" for a place in a cloud.
        self._writer = EventsWriter(str(path.absolute() / "events"))

    def add(self, values: Mapping[str, Any]) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        scalars = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in values.items()
            if name not in ("iteration", "step") and value is not None
        ]
        step = int(values["step"])
        self._writer.write_event(
            Event(wall_time=time.time(), step=step, summary=Summary(value=scalars))
        )
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def _evaluation_scalars(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """An evaluation as TensorBoard shows it."""
    shown = {f"evaluation/{name}": evaluation[name] for name in ("mean", "std")}
    return {"step": evaluation["step"], **shown}


def _cut(file: Path, written: Mapping[str, Any] | None) -> bytes:
    """The rows of which a checkpoint knows; what came after them is dropped."""
    if written is None:
        return b""
    try:
        kept = content(file, LARGE)[: int(written["bytes"])]
    except UserError as error:
        raise Damaged(str(error)) from None
    if hashlib.sha256(kept).hexdigest() != written["sha256"]:
        raise Damaged(f"{file}: damaged: its first {written['rows']} rows are not the run's")
    return kept


def _versions(run: Path) -> list[Since]:
    """The versions of a run so far; none if nothing says so."""
    file: VersionsFile | None = read_if_there(run, VERSIONS, VersionsFile)
    if file is None:
        return []
    if file.sha256 != _versions_digest(file.since):
        raise Damaged(f"{run / VERSIONS}: damaged (its checksum is wrong)")
    return sorted(file.since, key=lambda one: one.step)


def _versions_digest(since: Sequence[Since]) -> str:
    return hashlib.sha256(as_json([asdict(one) for one in since]).encode()).hexdigest()


def _timing(file: Path, rows: int) -> list[dict[str, Any]]:
    """The first rows, as far as they can be read: they are not results."""
    try:
        return [asdict(row) for row in read_rows(file, TimingRow)[:rows]]
    except UserError:
        return []


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(as_json(row) + "\n" for row in rows).encode()


def check_free(path: Path) -> None:
    """Raises if a new run cannot go there."""
    directory_to_write(path)
    if path.is_dir() and any(
        entry.name not in LEFTOVERS and not entry.name.endswith(".part") for entry in path.iterdir()
    ):
        raise UserError(
            f"out: {path} already holds files, expected a new or empty directory, or a run's"
        )
    check_own_directory(path / REPLAY, path)


# Checkpoints --------------------------------------------------------------------------------------


class Saved(NamedTuple):
    """The content of a checkpoint: arrays, and the rest of JSON's types."""

    arrays: dict[str, np.ndarray]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of a run directory."""

    def __init__(self, run: Path) -> None:
        self.path = run / CHECKPOINTS

    def steps(self) -> list[int]:
        """The agent steps of which there is one, in order."""
        files = (path for path in self.path.glob(f"*{SUFFIX}") if not path.is_dir())
        steps = [int(file.stem) for file in files if re.fullmatch("[0-9]{12,18}", file.stem)]
        return sorted(step for step in steps if self.file(step).is_file())

    def file(self, step: int) -> Path:
        """The file of a step."""
        return self.path / f"{step:012d}{SUFFIX}"

    def write(self, step: int, saved: Saved) -> None:
        """Writes one; then only the last two are kept."""
        with writing(self.path):
            self.path.mkdir(exist_ok=True)
            write_aside(self.file(step), encoded(saved))
            for old in self.steps()[:-KEPT]:
                self.file(old).unlink()

    def read(self, step: int) -> Saved:
        """Reads one; ``Damaged`` if it is not as it was written."""
        return read_checkpoint(self.file(step))

    def keep_until(self, step: int) -> None:
        """Removes those of later steps."""
        with writing(self.path):
            for later in self.steps():
                if later > step:
                    self.file(later).unlink()


def encoded(saved: Saved) -> bytes:
    """The bytes of a checkpoint's file."""
    import jax
    from safetensors.numpy import save

    about = {"format": FORMAT, "version": __version__, "jax": jax.__version__, "state": saved.state}
    text = as_json(about, sort_keys=True)
    arrays = {name: np.ascontiguousarray(array) for name, array in saved.arrays.items()}
    arrays = {name: array.reshape(saved.arrays[name].shape) for name, array in arrays.items()}
    return save(arrays, metadata={"movi": text, "sha256": _checkpoint_digest(text, arrays)})


def read_checkpoint(file: Path) -> Saved:
    """The content of a checkpoint's file."""
    try:
        metadata, arrays = tensors(file)
        text = metadata.get("movi", "")
        about: _About = checked(parsed(text, str(file)), _About, str(file))
    except NoRoom:
        raise
    except UserError:
        raise Damaged(f"{file}: damaged, or no checkpoint") from None
    if about.format != FORMAT:
        raise UserError(f"{file}: format {about.format}, this version of movi reads {FORMAT}")
    if metadata.get("sha256") != _checkpoint_digest(text, arrays):
        raise Damaged(f"{file}: damaged (its checksum is wrong)")
    return Saved(arrays, about.state)


@dataclass(frozen=True)
class _About:
    format: int
    state: dict[str, Any]


def _checkpoint_digest(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def newest(checkpoints: Checkpoints, restore: Callable[[Saved], T]) -> T | None:
    """Restores the newest checkpoint that is not damaged; what ``restore`` says of it.

    None if there is no checkpoint at all. A damaged one is passed over with a warning; if all are,
    that is an error: whoever has it decides what to do with the run. So is one that was forged, and
    makes no sense though its checksum is right.
    """
    damaged: list[Damaged] = []
    for step in reversed(checkpoints.steps()):
        try:
            saved = checkpoints.read(step)
            try:
                restored = restore(saved)
            except (UserError, Interrupted):
                raise
            except Exception as error:  # whatever loops and environments say to what makes no sense
                file = checkpoints.file(step)
                raise Damaged(f"{file}: damaged ({type(error).__name__} {error})") from None
        except Damaged as error:
            damaged.append(error)
            continue
        for one in damaged:
            log.warning(
                "movi: warning: went on from an earlier checkpoint: %s", one_line(str(one), 250)
            )
        checkpoints.keep_until(step)
        return restored
    if damaged:
        raise UserError(
            f"{damaged[0]}; no checkpoint can be resumed (without {CHECKPOINTS}/ the run begins "
            "anew)"
        )
    return None


class Checkpointer:
    """Makes the checkpoints of a run.

    One is due every so many agent steps; at the end of the run; when somebody asks to stop; and
    before the replay would overwrite what the older of the last two checkpoints needs.
    """

    def __init__(
        self,
        directory: RunDirectory | None,
        every: int,
        stop: Stop,
        margin: int,
        headroom: Callable[[Mapping[str, Any]], int],
    ) -> None:
        """One ``every`` so many agent steps, 0 for none; ``margin`` may pass between two checks.

        ``headroom`` gives the steps until the replay's files overwrite what a snapshot of theirs
        refers to.
        """
        self._directory = directory if every else None
        self._every, self._stop = every, stop
        self._margin, self._headroom = margin, headroom
        self._replays: list[Mapping[str, Any]] = []  # their snapshots in the last checkpoints
        self.step = 0

    def begin(self, step: int) -> None:
        """Starts at this step, and notes what the checkpoints on disk need of the replay."""
        self.step = step
        if self._directory is None:
            return
        checkpoints = self._directory.checkpoints
        for old in checkpoints.steps():
            with suppress(Exception):  # one that makes no sense needs nothing
                replay = checkpoints.read(old).state["replay"]
                self._headroom(replay)
                self._replays.append(replay)

    def steps_left(self, step: int) -> int:
        """Agent steps until the next checkpoint is due."""
        if self._directory is None:
            return sys.maxsize
        return min([self.step + self._every - step, *map(self._headroom, self._replays[-KEPT:])])

    def check(self, step: int, last: bool, content: Callable[[], Saved]) -> None:
        """Makes a checkpoint if one is due; raises ``Interrupted`` if somebody asks to stop.

        The loop can be saved at this step, which may be its last.
        """
        signal = self._stop()
        due = last or signal is not None or self.steps_left(step) < self._margin
        if due and self._directory is not None and step > self.step:
            arrays, state = content()
            written = {**state, "written": self._directory.written()}
            self._directory.checkpoints.write(step, Saved(arrays, written))
            self.step = step
            self._replays = [*self._replays, state["replay"]][-KEPT:]
        if signal is not None:
            raise Interrupted(f"interrupted at step {step:,}", signal)


# A run that goes on ----------------------------------------------------------------------------


def continued(
    run: Path, config: Config, announce: Callable[[str], None] = lambda line: None
) -> Config:
    """The config with which a run goes on, if ``config`` is asked for; UserError if it is another.

    The same run may have checkpoints at other times, and more steps. Where β changes by a share of
    the run's length (κ None), a longer run would change what was trained already: so κ stays, and
    is in its config from then on.
    """
    before = read_config(run)
    for name in WRITTEN:
        check_replaceable(run / name)
    for name in (CHECKPOINTS, REPLAY):
        check_own_directory(run / name, run)
    if config.kappa_follows:
        config = config.replace(kappa=flat(before).get("kappa"))
    changed = changes(before, config)
    if "algorithm" in changed:  # its options would be more of the same
        changed = {"algorithm": changed["algorithm"]}
    differing = [
        f"{name} is {kept!r} there and {asked!r}"
        for name, (kept, asked) in changed.items()
        if name != "steps"
    ]
    if differing:
        raise UserError(f"out: {run} holds another run: {', '.join(differing)} here")
    if bool(before.checkpoint_every) != bool(config.checkpoint_every):
        raise UserError(
            f"checkpoint_every: {config.checkpoint_every}, but {run} was begun with "
            f"{before.checkpoint_every}; expected both to be 0 or neither"
        )
    if config.steps < before.steps:
        raise UserError(f"steps: {config.steps}, expected at least {before.steps}: {run} has them")
    status = read_status(run)
    longer = config.steps > before.steps and (status is None or status.status != "diverged")
    finished = status is not None and status.status == "finished"
    if longer and finished and not Checkpoints(run).steps():
        raise UserError(
            f"steps: {config.steps}, but {run} has finished its {before.steps} and kept no "
            "checkpoint to go on from; expected a new out"
        )
    if longer and config.kappa_follows:
        kappa = default_kappa(before.steps)
        config = config.replace(kappa=kappa)
        announce(f"kappa: stays {kappa:,}, a twentieth of the first {before.steps:,} steps")
    return config


def as_asked(run: Path) -> Config:
    """The config with which a run goes on by itself: κ is the one that it kept."""
    config = read_config(run)
    following = config.replace(kappa=None) if "kappa" in flat(config) else config
    return following if following.kappa_follows else config


def has_ended(run: Path, config: Config) -> bool:
    """Whether there is nothing left to train."""
    file = read_status(run)
    if file is None or file.status not in ENDED:
        return False
    return file.status == "diverged" or file.step == config.steps


class Result(NamedTuple):
    """How a run ended."""

    status: Status
    """finished or diverged; a run that is interrupted has no result."""
    step: int
    """The step at which it ended or diverged."""
    agent: Agent
    """The trained agent; of a run that diverged, with the last finite parameters."""
    metrics: list[dict[str, Any]]
    """The rows of ``metrics.jsonl``."""
    evaluation: Evaluation | None
    """The evaluation at the end, if there was one."""
    loop: Any
    """The loop as it ended; None if the run had ended before."""
    best: Agent | None = None
    """The agent with the highest evaluation during the run, if there were any; its ``about`` has
    the step and the evaluation."""


def result_of(run: Path, network: Any = None) -> Result:
    """What a run that has ended left behind."""
    status = read_status(run)
    if status is None:
        raise UserError(f"{run / STATUS}: no such file, expected that of a run that ended")
    file: EvaluationFile | None = read_if_there(run, EVALUATION, EvaluationFile)
    return Result(
        status.status,
        status.step,
        load(run, network),
        read_metrics(run),
        None if file is None else evaluation_of(file),
        None,
        load(run, network, best=True) if (run / BEST_FILE).is_file() else None,
    )


def evaluation_of(file: EvaluationFile) -> Evaluation:
    """The evaluation that a file holds."""
    others = {name: evaluation_of(other) for name, other in file.average.items()}
    returns = np.array(file.returns, float).tolist()  # null is NaN
    return Evaluation(returns, file.lengths, average=others)


def runs_in(directory: Path) -> list[Path]:
    """The run directory itself, or those of several seeds in it, by their numbers."""
    if holds_run(directory):
        return [directory]
    runs = [path.parent for path in directory.glob(f"seed-*/{CONFIG}")]
    if not runs:
        raise UserError(f"{directory}: no run directory, and none of several seeds (seed-…)")
    return sorted(runs, key=lambda run: read_config(run).seed)
