"""The learner as the host loop drives it: one compiled call per step wherever possible."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.agents.learner import Learner, LearnerState
from momentum_rl.errors import UserError
from momentum_rl.plumbing.compilation import library_takes, shared
from momentum_rl.plumbing.trees import arrays_of, tree_of
from momentum_rl.spaces import Spaces
from momentum_rl.training.draws import INITIALISATION, LEARNING, POLICY, key_of
from momentum_rl.transitions import Transition

_FIELDS = Transition._fields


class _Carry(NamedTuple):
    state: LearnerState
    means: dict[str, jax.Array]
    updates: jax.Array


class _Keys(NamedTuple):
    learning: jax.Array
    policy: jax.Array


class _Compiled(NamedTuple):
    init: Callable[..., LearnerState]
    update: Callable[..., _Carry]
    update_and_act: Callable[..., tuple[_Carry, jax.Array]]
    sync: Callable[[LearnerState], LearnerState]
    act: Callable[..., jax.Array]


@shared
def _compiled(learner: Learner) -> _Compiled:
    """What the host loop calls, compiled; the carry's buffers are taken over."""

    def update(carry: _Carry, keys: _Keys, batches: Transition, step: jax.Array) -> _Carry:
        before = carry.state.diverged_at
        key = jax.random.fold_in(keys.learning, step)
        state, metrics = learner.update(carry.state, batches, step, key)
        live = (before == 0) & (state.diverged_at == 0)
        updates = carry.updates + live
        weight = live / jnp.maximum(updates, 1)
        means = {
            name: jnp.where(live, mean + (metrics[name] - mean) * weight, mean)
            for name, mean in carry.means.items()
        }
        return _Carry(state, means, updates)

    def act(state: LearnerState, keys: _Keys, observation: Any, number: Any) -> jax.Array:
        return learner.act(state, observation, jax.random.fold_in(keys.policy, number))

    def update_and_act(
        carry: _Carry, keys: _Keys, batches: Transition, step: Any, observation: Any, number: Any
    ) -> tuple[_Carry, jax.Array]:
        carry = update(carry, keys, batches, step)
        return carry, act(carry.state, keys, observation, number)

    options = library_takes("products")
    return _Compiled(
        init=jax.jit(learner.init),
        update=jax.jit(update, donate_argnums=0, compiler_options=options),
        update_and_act=jax.jit(update_and_act, donate_argnums=0, compiler_options=options),
        sync=jax.jit(learner.sync, donate_argnums=0),
        act=jax.jit(act),
    )


class HostLearner:
    """Holds the state; ``update``, ``sync`` and ``act`` take effect in the order of their calls.

    An update is held back until something needs its result. That is nearly always ``act``, and then
    both run in one compiled call.
    """

    def __init__(self, learner: Learner, seed: int) -> None:
        self._run = _compiled(learner)
        self._keys = _Keys(key_of(seed, LEARNING), key_of(seed, POLICY))
        state = self._run.init(key_of(seed, INITIALISATION))
        means = {name: jnp.float32(0) for name in learner.metrics}
        self._carry = _Carry(state, means, jnp.int32(0))
        self._pending: tuple[Transition, np.int32] | None = None

    @property
    def state(self) -> LearnerState:
        """The state, after all calls so far; valid until the next one."""
        self._flush()
        return self._carry.state

    def update(self, batches: Transition, step: int) -> None:
        """One update of every network."""
        self._flush()
        self._pending = batches, np.int32(step)

    def start(self) -> None:
        """Starts an update that is held back, without waiting for it."""
        self._flush()

    def sync(self) -> None:
        """Synchronises the lagged networks."""
        self._flush()
        self._carry = self._carry._replace(state=self._run.sync(self._carry.state))

    def act(self, observation: np.ndarray, vector_step: int) -> np.ndarray:
        """The policy's actions at the vector step of this number."""
        number = np.int32(vector_step)
        if self._pending is None:
            return np.asarray(self._run.act(self._carry.state, self._keys, observation, number))
        batches, step = self._pending
        self._pending = None
        self._carry, actions = self._run.update_and_act(
            self._carry, self._keys, batches, step, observation, number
        )
        return np.asarray(actions)

    def take_means(self) -> dict[str, float | None]:
        """The mean of each metric over the updates since the last call; None without any."""
        self._flush()
        count = int(self._carry.updates)
        means = {name: float(mean) if count else None for name, mean in self._carry.means.items()}
        self._carry = self._carry._replace(
            means={name: jnp.float32(0) for name in means}, updates=jnp.int32(0)
        )
        return means

    def diverged_at(self) -> int | None:
        """The step of the first update that was not finite, or None."""
        return int(self.state.diverged_at) or None

    def parameters(self) -> dict[str, Any]:
        """A copy of the online networks' parameters."""
        return jax.tree.map(lambda leaf: np.array(leaf), self.state.online)

    def snapshot(self) -> dict[str, np.ndarray]:
        """All that ``restore`` needs; an update that is held back stays held back."""
        arrays = arrays_of(self._carry, "learner")
        if self._pending is not None:
            batches, step = self._pending
            arrays |= {f"pending.{name}": np.array(part) for name, part in zip(_FIELDS, batches)}
            arrays["pending.step"] = np.array(step)
        return arrays

    def restore(self, arrays: Mapping[str, np.ndarray], spaces: Spaces, m: tuple[int, int]) -> None:
        """Continues from a snapshot, with minibatches of m transitions."""
        carry = tree_of(self._carry, arrays, "learner")
        pending = None
        if "pending.step" in arrays:
            batches = Transition(*(arrays[f"pending.{name}"] for name in _FIELDS))
            seen, action, number = spaces.observation, spaces.action, np.dtype(np.float32)
            observation = (*m, *seen.shape), np.dtype(seen.dtype)
            expected = Transition(
                observation,
                ((*m, *action.shape), np.dtype(action.dtype)),
                (m, number),
                (m, number),
                observation,
            )
            for name, part, kind in zip(_FIELDS, batches, expected):
                if (part.shape, part.dtype) != kind:
                    raise UserError(f"pending.{name}: {part.dtype}{list(part.shape)} does not fit")
            pending = batches, np.int32(arrays["pending.step"])
        self._carry, self._pending = carry, pending

    def _flush(self) -> None:
        if self._pending is not None:
            batches, step = self._pending
            self._pending = None
            self._carry = self._run.update(self._carry, self._keys, batches, step)
