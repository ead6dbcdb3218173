"""Value iteration over several devices: rows are distributed, v is gathered once per sweep.

    device d holds the rows of states d·n .. (d + 1)·n  (S is padded to a multiple)
    a sweep: v [S] everywhere → T v of its own states [n] → all-gather → v [S] everywhere

The same program runs on several CPU devices, GPUs, or hosts under ``jax.distributed``: each process
gives its own devices their rows, and all of them end with the answer. See docs/solving.md for how
to launch it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from movi.errors import UserError
from movi.mdp.certificates import Aim, bracket, rounding
from movi.mdp.methods import PATIENCE, State, backed_up, largest_reward
from movi.mdp.model import FiniteMDP
from movi.mdp.operators import expected, table_jit

AXIS = "devices"


def join(cluster: str) -> int:
    """Join processes under ``jax.distributed``: ``HOST:PORT/I/N`` is process I of N; gives I.

    HOST:PORT is an address of process 0 that all reach. To be called before JAX is used.
    """
    address, _, rest = cluster.partition("/")
    number, _, count = rest.partition("/")
    if not (":" in address and number.isdigit() and count.isdigit() and int(number) < int(count)):
        raise UserError(f"cluster: {cluster!r}, expected HOST:PORT/I/N, process I of N")
    try:
        jax.distributed.initialize(address, int(count), int(number))
    except (RuntimeError, ValueError) as error:
        raise UserError(f"cluster: {cluster!r}: {error}") from None
    return int(number)


def sharded_value_iteration(
    mdp: FiniteMDP, wanted: Aim, devices: int | None = None, most: int = PATIENCE
) -> State:
    """q* of one MDP by value iteration on this many devices (default: all), certified."""
    found = jax.devices()
    count = len(found) if devices is None else devices
    if not 1 <= count <= len(found):
        raise UserError(
            f"devices: {count}, this process sees {len(found)}; more CPU devices with "
            "JAX_NUM_CPU_DEVICES=N"
        )
    mdp = mdp.padded()
    size, unit = largest_reward(mdp), rounding(mdp)
    with jax.enable_x64(True):
        mesh = Mesh(np.array(found[:count]), (AXIS,))
        rows = NamedSharding(mesh, PartitionSpec(AXIS))
        own = -(-mdp.states // count)
        # Rows beyond the last state repeat it, so that they change no extreme.
        place = np.minimum(np.arange(own * count), mdp.states - 1)

        def shared(x: np.ndarray) -> Array:
            shape = (own * count, *x.shape[1:])
            return jax.make_array_from_callback(
                shape, rows, lambda at: x[place[at[0] if at else slice(None)]]
            )

        v, index, floor, made = _iterate(
            [shared(x) for x in (mdp.successors, mdp.probabilities, mdp.rewards)],
            wanted,
            float(mdp.discount),
            (size, unit),
            most,
            mesh=mesh,
            states=mdp.states,
        )
        whole = NamedSharding(mesh, PartitionSpec())
        index = jax.jit(lambda x: x, out_shardings=whole)(index)
        last, policy = np.asarray(v), np.asarray(index)[: mdp.states]
        q = backed_up(mdp, last)
        again = bracket(last, q.max(-1) - last, size, float(mdp.discount), unit)
        return State(last, q + again.shift, policy, float(again.bound), float(floor), int(made))


def _iterate(
    model: list[Array],
    wanted: Aim,
    discount: float,
    sizes: tuple[float, float],
    most: int,
    *,
    mesh: Mesh,
    states: int,
) -> tuple[Array, Array, Array, Array]:
    """Until the goal: v [S] (everywhere), the greedy policy (distributed), the floor, sweeps."""
    size, unit = sizes
    everywhere, rows = PartitionSpec(), PartitionSpec(AXIS)

    def on_one(successors: Array, probabilities: Array, rewards: Array) -> Any:
        def carried(v: Array, n: Array) -> Any:
            q = rewards + discount * expected(successors, probabilities, v)
            new = jax.lax.all_gather(jnp.max(q, -1), AXIS, tiled=True)[:states]
            found = bracket(v, new - v, size, discount, unit, jnp)
            return v, new, found.bound, found.floor, n

        def unfinished(carry: Any) -> Array:
            _, _, bound, floor, n = carry
            return (bound > wanted.goal(floor, jnp)) & (n < most)

        def sweep(carry: Any) -> Any:
            return carried(carry[1], carry[4] + 1)

        v, _, _, floor, n = jax.lax.while_loop(
            unfinished, sweep, carried(jnp.zeros(states), jnp.asarray(0))
        )
        q = rewards + discount * expected(successors, probabilities, v)
        return v, jnp.argmax(q, -1), floor, n

    outs = (everywhere, rows, everywhere, everywhere)
    mapped = jax.shard_map(
        on_one, mesh=mesh, in_specs=(rows, rows, rows), out_specs=outs, check_vma=False
    )
    return table_jit(mapped)(*model)
