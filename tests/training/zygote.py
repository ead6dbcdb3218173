"""A process that has imported everything and forks a child for each run that is to be killed.

Reads a JSON object per line: {"config", "out", "seeds" or null, "after", "sync": n, "delay":
seconds}. The child trains; it is killed with SIGKILL before its n-th call that puts something on
the disk, or from here so many seconds after it began. With "after" both are counted from the first
checkpoint that it makes itself: before that, most of its time is compilation. Answers with the
child's exit status, its seconds, and whether it came to where they are counted from.
"""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np

import momentum_rl.envs.gym_vector
import momentum_rl.envs.gymnax_env
import momentum_rl.training.train
from momentum_rl.runs.config import Config
from momentum_rl.training.run_directory import Checkpoints
from momentum_rl.training.train import Watcher, train

# What a run imports on its way, once for all children. gymnax itself starts XLA when it is
# imported, which no child would survive; most of its time is seaborn's.
for name in (
    "gymnasium.envs.classic_control",
    "momentum_rl.agents.soft_actor_critic",
    "seaborn",
    "tensorboardX",
):
    with suppress(ImportError):
        import_module(name)


class Begun(Watcher):
    """Tells that the run is under way."""

    def __init__(self, begin):
        self.begin = begin

    def announce(self, line):
        self.begin()


def once(job, pipe):
    """What is done when the run is under way: from here on the kill is counted."""
    left = [True]

    def begin():
        if left.pop() if left else False:
            if job.get("sync"):
                die_before(job["sync"])
            os.write(pipe, b"!")

    return begin


def after_a_checkpoint(begin):
    """Begins when the first checkpoint is on the disk: of several seeds, that of the first."""
    write = Checkpoints.write

    def instead(*args):
        write(*args)
        begin()

    Checkpoints.write = instead


def die_before(count):
    """The process kills itself before its n-th call that puts something on the disk."""
    left = [count]

    def counted(call):
        def instead(*args, **kwargs):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return instead

    for module, name in ((os, "fsync"), (os, "replace"), (os, "unlink"), (np.memmap, "flush")):
        setattr(module, name, counted(getattr(module, name)))


def child(job, pipe):
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    begin = once(job, pipe)
    watcher = Watcher() if job.get("after") else Begun(begin)
    if job.get("after"):
        after_a_checkpoint(begin)
    config = Config.from_dict(job["config"])
    if job.get("seeds"):
        outs = [Path(job["out"]) / f"seed-{seed}" for seed in job["seeds"]]
        momentum_rl.training.train.train_seeds(config, job["seeds"], outs, watcher=watcher)
    else:
        train(config, job["out"], watcher=watcher)


def main():
    for line in sys.stdin:
        job = json.loads(line)
        reader, writer = os.pipe()
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            try:
                child(job, writer)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(writer)
        begun = os.read(reader, 1) != b""  # returns at once if the child ends before it began
        start = time.monotonic() if begun else start
        if job.get("delay") is not None:
            time.sleep(job["delay"])
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        os.close(reader)
        answer = {"status": status, "seconds": time.monotonic() - start, "begun": begun}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
