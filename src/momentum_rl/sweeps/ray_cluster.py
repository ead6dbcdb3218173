"""A sweep on a Ray cluster: one idempotent task per job.

A task starts the same worker process as the local pool does. Results go to the sweep's directory,
which all nodes must see under the same path. When a node or a worker dies, Ray starts the task
again elsewhere; its worker continues from the run directories, so nothing is lost but the steps
since the last checkpoint, and nothing that is finished is repeated.
"""

import math
import os
import socket
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentum_rl.errors import MissingExtra, UserError
from momentum_rl.plumbing.signals import heard
from momentum_rl.plumbing.sizes import available_cores, readable
from momentum_rl.runs.sweep import Sweep
from momentum_rl.sweeps.jobs import Job, find_job, jobs_of
from momentum_rl.sweeps.local import (
    POLL,
    Listener,
    died,
    start_worker,
    stop,
    stopped_by_signals,
    why_ended,
)
from momentum_rl.sweeps.plan import Plan, within
from momentum_rl.sweeps.worker import GRACE
from momentum_rl.training.footprint import Footprint

RETRIES = 20
"""How often a task is started again whose node or worker died."""


class WorkerDied(Exception):
    """A worker was ended from outside; Ray tries again."""


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster as the pool; the sweep's directory is on a file system that all nodes share."""

    address: str
    """Of the cluster; "local" starts one here, bound to this machine alone."""
    cpus: float = 1.0
    """CPUs per task."""
    gpus: float = 0.0
    """GPUs per task."""

    def __post_init__(self) -> None:
        for name, value in (("cpus", self.cpus), ("gpus", self.gpus)):
            if not 0 <= value < math.inf or (name == "cpus" and value == 0):
                raise UserError(f"{name}: {value}, expected a number above 0")
        if self.address not in ("local", "auto"):
            require_listening(self.address)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connected to the cluster."""
        if self.address == "local":
            # Read when ray is imported: the servers of a Ray of this machine listen on 127.0.0.1.
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ModuleNotFoundError:
            raise MissingExtra("--ray", "ray") from None
        quiet: Any = {"log_to_driver": False, "logging_level": "error"}
        here: Any = {
            "num_cpus": len(available_cores()),
            "include_dashboard": False,
            "object_store_memory": 100 * 2**20,
            "_node_ip_address": "127.0.0.1",
        }
        try:
            # Ray's workers import from the directory in which it is joined before all others: not
            # from the user's working directory, which may hold anything.
            with chdir("/"):
                ray.init(self.address, **quiet, **(here if self.address == "local" else {}))
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"ray: {self.address!r} is not a cluster that can be joined: {reason}"
            ) from None
        try:
            yield
        finally:
            heard()  # whatever ends this: Ray's own processes are ended first, which takes seconds
            ray.shutdown()

    def plan(self, sweep: Sweep, needs: tuple[Footprint, ...], jobs: Sequence[Job] | None) -> Plan:
        """A task's seeds fit into its share of any node that can take it."""
        return planned(sweep, needs, _nodes(), self.cpus, self.gpus, jobs)

    def run(
        self,
        directory: Path,
        plan: Plan,
        jobs: Sequence[Job],
        listener: Listener,
        trust: Collection[str],
    ) -> None:
        """Submits every job, with the memory it wants, and waits for all of them."""
        import ray

        how: Any = {
            "max_retries": RETRIES,
            "retry_exceptions": [WorkerDied],
            "scheduling_strategy": "SPREAD",
            "num_cpus": self.cpus,
            "num_gpus": self.gpus,
        }
        task: Any = ray.remote(**how)(work)
        threads, most = f"any:{max(1, math.ceil(self.cpus))}", _largest(_nodes())
        where = str(directory.absolute())
        with stopped_by_signals():
            under_way = {
                task.options(memory=min(plan.memory(job), most)).remote(
                    where, job.index, job.seeds[0], threads, tuple(trust)
                ): job
                for job in jobs
            }
            try:
                while under_way:
                    done, _ = ray.wait(list(under_way))
                    for reference in done:
                        job = under_way.pop(reference)
                        try:
                            reason = ray.get(reference)
                        except ray.exceptions.RayError as error:
                            reason = str(error).strip().splitlines()[-1]
                        listener.ended(job, reason)
            except KeyboardInterrupt:
                for reference in under_way:
                    ray.cancel(reference)
                ray.wait(list(under_way), num_returns=len(under_way), timeout=GRACE)
                raise


def _nodes() -> list[dict[str, float]]:
    """What the cluster's nodes have."""
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def require_listening(address: str) -> None:
    """Raises if nobody answers at an address: Ray would try for many minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UserError(f"ray: {address!r}, expected HOST:PORT, auto or local")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"ray: {address!r} does not answer: {error.strerror or error}") from None


def planned(
    sweep: Sweep,
    needs: tuple[Footprint, ...],
    nodes: Sequence[dict[str, float]],
    cpus: float,
    gpus: float,
    jobs: Sequence[Job] | None,
) -> Plan:
    """The plan on a cluster: a task's seeds fit into its share of any node that can take it."""
    able = [
        node
        for node in nodes
        if node.get("CPU", 0.0) >= cpus and node.get("GPU", 0.0) >= gpus and node.get("memory")
    ]
    if not able:
        raise UserError(f"cpus: {cpus:g} and gpus: {gpus:g}, no node of the cluster has as many")
    slots = [_slots(node, cpus, gpus) for node in able]
    if jobs is None:
        share = min(int(node["memory"] / count) for node, count in zip(able, slots))
        sweep = within(sweep, needs, share)
        jobs = list(jobs_of(sweep))
    plan = Plan(sweep, needs, max(1, min(sum(slots), len(jobs))))
    most = _largest(able)
    for job in jobs:
        if plan.least(job) > most:
            raise UserError(
                f"{job} needs {readable(plan.least(job))} of memory, the largest node that can "
                f"take it has {readable(most)}"
            )
    return plan


def _largest(nodes: Sequence[dict[str, float]]) -> int:
    """Bytes of memory of the node that has most."""
    return int(max(node.get("memory", 0.0) for node in nodes))


def _slots(node: dict[str, float], cpus: float, gpus: float) -> int:
    """How many tasks a node can take at once."""
    by_gpu = node["GPU"] // gpus if gpus else math.inf
    return max(1, int(min(node["CPU"] // cpus, by_gpu)))


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
