"""A process that has imported everything and forks a child for each run that is to be killed.

Reads a JSON object per line: {"config", "out", "seeds" or null, "sync": n, "delay": seconds}. The
child trains; it is killed with SIGKILL before its n-th call that puts something on the disk, or
from here so many seconds after it began. Answers with the child's exit status and its seconds.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import movi.envs.gym_vector
import movi.envs.gymnax_env
import movi.training.fused_train
from movi.training.config import Config
from movi.training.train import Watcher, train


class Begun(Watcher):
    """Tells that the run is under way."""

    def __init__(self, pipe):
        self.pipe = pipe

    def announce(self, line):
        if self.pipe is not None:
            os.write(self.pipe, b"!")
            self.pipe = None


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
    if job.get("sync"):
        die_before(job["sync"])
    config = Config.from_dict(job["config"])
    watcher = Begun(pipe)
    if job.get("seeds"):
        outs = [Path(job["out"]) / f"seed-{seed}" for seed in job["seeds"]]
        movi.training.fused_train.train_seeds(
            config, job["seeds"], outs, vectorised=True, watcher=watcher
        )
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
        if job.get("delay") is not None:
            os.read(reader, 1)  # returns at once if the child ends before it began
            start = time.monotonic()
            time.sleep(job["delay"])
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        os.close(reader)
        answer = {"status": status, "seconds": time.monotonic() - start}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
