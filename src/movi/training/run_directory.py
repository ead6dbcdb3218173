"""The run directory: what a run leaves behind, and the source of truth for reports.

config.json         the config, as it was given
metrics.jsonl       one row per iteration, deterministic: equal runs have equal bytes
timing.jsonl        one row per iteration: seconds and speeds
events.out.*        the same metrics for TensorBoard
status.json         running, finished, diverged or failed; the step; a message
evaluation.json     the evaluation at the end
agent.safetensors   the agent
replay/             the replay, if the config wants it in files
"""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from movi.errors import UserError
from movi.files import write_aside
from movi.training.config import Config

Status = Literal["running", "finished", "diverged", "failed"]


class RunDirectory:
    """Writes a new run's files."""

    def __init__(self, path: str | Path, config: Config) -> None:
        """Creates the directory; refuses one that already holds something."""
        self.path = Path(path)
        check_free(self.path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_aside(self.path / "config.json", config.to_json())
        except OSError as error:
            raise UserError(f"out: {self.path} cannot be written: {error.strerror}") from None
        from tensorboardX import SummaryWriter

        self._metrics = (self.path / "metrics.jsonl").open("w")
        self._timing = (self.path / "timing.jsonl").open("w")
        self._events = SummaryWriter(str(self.path))
        self._start = self._last = time.monotonic()
        self._last_step = 0
        self.status("running", 0)

    def row(self, metrics: Mapping[str, Any]) -> None:
        """Adds an iteration."""
        self._metrics.write(json.dumps(clean(metrics)) + "\n")
        self._metrics.flush()
        now, step = time.monotonic(), int(metrics["step"])
        seconds = now - self._last
        timing = {
            "iteration": metrics["iteration"],
            "step": step,
            "seconds": round(now - self._start, 3),
            "steps_per_second": round((step - self._last_step) / max(seconds, 1e-9), 1),
        }
        self._last, self._last_step = now, step
        self._timing.write(json.dumps(timing) + "\n")
        self._timing.flush()
        for name, value in {**metrics, **timing}.items():
            if name not in ("iteration", "step") and value is not None:
                self._events.add_scalar(name, value, step)
        self._events.flush()

    def status(self, status: Status, step: int, message: str = "") -> None:
        """Says how the run stands."""
        text = json.dumps({"status": status, "step": step, "message": message})
        write_aside(self.path / "status.json", text + "\n")

    def write_json(self, name: str, data: Any) -> None:
        """Writes a file of JSON."""
        write_aside(self.path / name, json.dumps(data, indent=2) + "\n")

    def close(self) -> None:
        """Closes the files."""
        self._metrics.close()
        self._timing.close()
        self._events.close()


def clean(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The same without what JSON has no word for: a value that is not finite becomes null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in metrics.items()
    }


def check_free(path: Path) -> None:
    """Raises if a new run cannot go there."""
    if path.is_dir() and any(entry.name != "replay" for entry in path.iterdir()):
        raise UserError(f"out: {path} already holds files, expected a new or empty directory")
    if path.exists() and not path.is_dir():
        raise UserError(f"out: {path} is a file, expected a directory")


def read_config(run: str | Path) -> Config:
    """The config of a run directory."""
    file = Path(run) / "config.json"
    if not file.is_file():
        raise UserError(f"{run}: not a run directory (it has no config.json)")
    return Config.from_json(file.read_text(), str(file))


def read_metrics(run: str | Path) -> list[dict[str, Any]]:
    """The rows of a run's metrics."""
    file = Path(run) / "metrics.jsonl"
    if not file.is_file():
        raise UserError(f"{run}: not a run directory (it has no metrics.jsonl)")
    return [json.loads(line) for line in file.read_text().splitlines()]
