"""A sweep on a Ray cluster: one idempotent task per job.

A task starts the same worker process as the local pool does. Results go to the sweep's directory,
which all nodes must see under the same path. When a node or a worker dies, Ray starts the task
again elsewhere; its worker continues from the run directories, so nothing is lost but the steps
since the last checkpoint, and nothing that is finished is repeated.
"""

import logging
import math
import os
import signal
import socket
import time
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentum_rl.errors import MissingExtra, UserError
from momentum_rl.plumbing.signals import heard
from momentum_rl.runs.sweep import Job, find_job
from momentum_rl.sweeps.local import POLL, Event
from momentum_rl.sweeps.worker import GRACE, died, start_worker, stop, why_ended

RETRIES = 20
"""How often a task is started again whose node or worker died."""


class WorkerDied(Exception):
    """A worker was ended from outside; Ray tries again."""


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster as the pool; the sweep's directory is on a file system that all nodes share."""

    address: str
    """Of the cluster: HOST:PORT, or "auto" for the one that this machine is part of."""
    cpus: float = 1.0
    """CPUs per task."""
    gpus: float = 0.0
    """GPUs per task."""

    def __post_init__(self) -> None:
        for name, value in (("cpus", self.cpus), ("gpus", self.gpus)):
            if not 0 <= value < math.inf or (name == "cpus" and value == 0):
                raise UserError(f"{name}: {value}, expected a number above 0")
        if self.address != "auto":
            require_listening(self.address)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connected to the cluster."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ModuleNotFoundError:
            raise MissingExtra("--ray", "ray") from None
        try:
            # Ray's workers import from the directory in which it is joined before all others: not
            # from the user's working directory, which may hold anything.
            interrupted = signal.getsignal(signal.SIGTERM)
            with chdir("/"):
                ray.init(self.address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"ray: {self.address!r} is not a cluster that can be joined: {reason}"
            ) from None
        signal.signal(signal.SIGTERM, interrupted)  # Ray has put its own there
        try:
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            require_node(nodes, self.cpus, self.gpus)
            yield
        finally:
            heard()  # whatever ends this: Ray's own processes are ended first, which takes seconds
            ray.shutdown()

    def run(
        self, directory: Path, jobs: Sequence[Job], trust: Collection[str]
    ) -> Generator[Event, None, None]:
        """Submits every job, and waits for all of them."""
        import ray

        how: Any = {
            "max_retries": RETRIES,
            "retry_exceptions": [WorkerDied],
            "scheduling_strategy": "SPREAD",
            "num_cpus": self.cpus,
            "num_gpus": self.gpus,
        }
        task: Any = ray.remote(**how)(work)
        threads = f"any:{max(1, math.ceil(self.cpus))}"
        where = str(directory.absolute())
        under_way = {
            task.remote(where, job.index, job.seed, threads, tuple(trust)): job for job in jobs
        }
        try:
            while under_way:
                ended, _ = ray.wait(list(under_way))
                for reference in ended:
                    try:
                        reason = ray.get(reference)
                    except ray.exceptions.RayError as error:
                        reason = str(error).strip().splitlines()[-1]
                    yield Event(under_way.pop(reference), reason=reason)
        finally:
            heard()
            for reference in under_way:
                ray.cancel(reference)
            if under_way:
                ray.wait(list(under_way), num_returns=len(under_way), timeout=GRACE)


def work(directory: str, index: int, seed: int, threads: str, trust: tuple[str, ...]) -> str:
    """The task: a worker process, to its end; why it ended early, if it did."""
    job = find_job(Path(directory), index, seed)
    process = start_worker(Path(directory), job, threads, trust)
    try:
        while process.poll() is None:
            time.sleep(POLL)  # where Ray can interrupt it
    finally:
        stop([process])
    if died(process):
        raise WorkerDied(why_ended(process))
    return why_ended(process)


def require_listening(address: str) -> None:
    """Raises if nobody answers at an address: Ray would try for many minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UserError(f"ray: {address!r}, expected HOST:PORT or auto")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"ray: {address!r} does not answer: {error.strerror or error}") from None


def require_node(nodes: Sequence[dict[str, float]], cpus: float, gpus: float) -> None:
    """Raises if no node has what a task takes: Ray would wait for one for ever."""
    if not any(node.get("CPU", 0.0) >= cpus and node.get("GPU", 0.0) >= gpus for node in nodes):
        raise UserError(f"cpus: {cpus:g} and gpus: {gpus:g}, no node of the cluster has as many")
