"""How the fused loop uses a CPU: one thread for each program, and a program for each seed.

Its arrays are so small that threads which share one update lose more time than they save: on two
cores an update of the MinAtar network is faster on one of them, and two seeds on two JAX devices,
one core each, are nearly twice as fast as on one. JAX reads both settings once, when it starts.
"""

import contextlib
import os

from momentum_rl.envs.gymnax_env import is_gymnax
from momentum_rl.plumbing.sizes import available_cores


def prepare(env_id: str, programs: int) -> None:
    """Prepares for runs on an environment, if they are compiled end to end."""
    if is_gymnax(env_id):
        prepare_fused(programs)


def prepare_fused(programs: int) -> None:
    """One thread per CPU device, and as many devices as programs can use.

    Has an effect only before JAX's first computation; what the environment's variables say already
    stays, and a GPU or TPU is not concerned.
    """
    import jax

    os.environ.setdefault("NPROC", "1")
    if "JAX_NUM_CPU_DEVICES" not in os.environ:
        with contextlib.suppress(RuntimeError):  # JAX has started
            jax.config.update("jax_num_cpu_devices", max(1, min(programs, len(available_cores()))))
