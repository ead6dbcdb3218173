"""JAX-native environments: pure functions that a compiled loop steps, and the host loop too."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.plumbing.compilation import shared
from momentum_rl.plumbing.trees import arrays_of, tree_of
from momentum_rl.spaces import Outcome, Spaces

State = Any
Act = Callable[[Any, Any, Any], Any]


class JaxOutcome(NamedTuple):
    """What one step of one environment gave; ``Outcome`` has the stream drawn."""

    observation: Array
    """What to act on next: after an episode's end the next one's first observation."""
    next_observation: Array
    """What the step led to, at an episode's end the final observation."""
    reward: Array
    """The reward, as the environment gave it, float32."""
    terminated: Array
    """Whether s' is terminal."""
    truncated: Array
    """Whether the episode was cut at s'."""


class JaxEnvironment(NamedTuple):
    """One environment as two pure functions; whoever calls them maps them over many."""

    spaces: Spaces
    """What is seen and done."""
    reset: Callable[[Array], tuple[State, Array]]
    """``reset(key) -> (state, observation)``."""
    step: Callable[[Array, State, Array], tuple[State, JaxOutcome]]
    """``step(key, state, action) -> (state, outcome)``; it starts the next episode itself, so every
    step is a decision. The state's dtypes and shapes never change."""


class Played(NamedTuple):
    """What T steps of n environments gave, each [T, n]; all of them were decisions."""

    reward: Any
    terminated: Any
    truncated: Any
    value: Any
    """What the one who acted said of the action's value."""


def env_keys(seeds: Sequence[int]) -> Array:
    """A key for each environment."""
    return jax.vmap(jax.random.key)(np.array([int(seed) for seed in seeds], np.uint32))


def reset_all(environment: JaxEnvironment, keys: Array) -> tuple[State, Array]:
    """Starts an episode in each environment; the states and the observations [n, ...]."""
    return jax.vmap(lambda key: environment.reset(jax.random.fold_in(key, 0)))(keys)


def step_keys(keys: Array, count: Array) -> Array:
    """The keys of step number ``count`` (from 1): a pure function of the environments' and it."""
    return jax.vmap(lambda key: jax.random.fold_in(key, count))(keys)


def step_all(
    environment: JaxEnvironment, keys: Array, states: State, actions: Array
) -> tuple[State, JaxOutcome]:
    """One step of every environment, by the step's keys."""
    return jax.vmap(environment.step)(keys, states, actions)


class HostedEnvironment:
    """The same environments for the host loop and for evaluation: an ``Environment``."""

    def __init__(self, environment: JaxEnvironment, num_envs: int = 1) -> None:
        self.spaces, self.num_envs = environment.spaces, num_envs
        self._environment = environment
        self._reset, self._step = compiled(environment)
        self._plays: dict[Act, Callable[..., Any]] = {}
        self._count = 0
        self._seeds: list[int] = []
        self._keys: Any = None
        self._states: State = None
        self._observation = np.zeros(0)

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Starts an episode in each environment, each with its own seed."""
        self._seeds = [int(seed) for seed in seeds]
        self._keys, self._count = env_keys(seeds), 0
        self._states, observation = self._reset(self._keys)
        self._observation = np.asarray(observation)
        return self._observation

    def step(self, actions: np.ndarray) -> Outcome:
        """Takes the actions, counted from 0 or in [−1, 1]."""
        self._count += 1
        self._states, outcome = self._step(
            self._keys,
            np.int32(self._count),
            self._states,
            np.asarray(actions, self.spaces.action.dtype),
        )
        self._observation = np.asarray(outcome.observation)
        return Outcome(
            observation=self._observation,
            next_observation=np.asarray(outcome.next_observation),
            reward=np.asarray(outcome.reward, float),
            terminated=np.asarray(outcome.terminated),
            truncated=np.asarray(outcome.truncated),
        )

    def play(self, act: Act, given: Any, per_step: Any) -> Played:
        """Many steps in one compiled loop, by ``act(given, observations, x) -> actions, values``.

        Args:
          act: a pure function; one that stays the same object is compiled once.
          given: what it needs at every step, such as parameters.
          per_step: what it needs at one step x: arrays with a leading axis of T steps.
        """
        if act not in self._plays:
            self._plays[act] = compiled_play(self._environment, act)
        (self._states, observation), played = self._plays[act](
            self._keys, np.int32(self._count + 1), self._states, self._observation, given, per_step
        )
        self._observation = np.asarray(observation)
        self._count += len(played.reward)
        return Played(*map(np.asarray, played))

    def snapshot(self) -> dict[str, np.ndarray]:
        """The environments' states, which are arrays."""
        return {
            "seeds": np.array(self._seeds, np.uint64),
            "count": np.array(self._count, np.int64),
            "observation": self._observation,
            **arrays_of(self._states, "state"),
        }

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> np.ndarray:
        """Continues from a snapshot."""
        self.reset(snapshot["seeds"].tolist())
        self._states = tree_of(self._states, snapshot, "state")
        self._count, self._observation = int(snapshot["count"]), snapshot["observation"]
        return self._observation

    def close(self) -> None:
        """Holds nothing that needs closing."""


def fixed_dtypes(tree: Any, like: Any = None) -> Any:
    """A tree as arrays of fixed dtypes (those of ``like``), as the state of a compiled loop is."""
    if like is None:
        # The dtype of a Python number is weak until it is given: a loop would see it change.
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.asarray(leaf).dtype), tree)
    return jax.tree.map(lambda leaf, old: jnp.asarray(leaf).astype(old.dtype), tree, like)


@shared
def compiled(environment: JaxEnvironment) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``reset(keys)`` and ``step(keys, count, states, actions)`` of all environments."""
    reset = jax.jit(lambda keys: reset_all(environment, keys))
    step = jax.jit(
        lambda keys, count, states, actions: step_all(
            environment, step_keys(keys, count), states, actions
        )
    )
    return reset, step


@shared
def compiled_play(environment: JaxEnvironment, act: Act) -> Callable[..., Any]:
    """``play(keys, first, states, observations, given, per_step)``: steps number ``first`` on."""

    seen = environment.spaces.observation.dtype

    def play(
        keys: Array, first: Array, states: State, observations: Array, given: Any, per_step: Any
    ) -> Any:
        def one(carry: tuple[Array, State, Array], x: Any) -> Any:
            count, states, observations = carry
            actions, value = act(given, observations, x)
            actions = actions.astype(environment.spaces.action.dtype)
            states, outcome = step_all(environment, step_keys(keys, count), states, actions)
            played = Played(outcome.reward, outcome.terminated, outcome.truncated, value)
            return (count + 1, states, outcome.observation.astype(seen)), played

        (_, states, observations), played = jax.lax.scan(
            one, (first, states, observations.astype(seen)), per_step
        )
        return (states, observations), played

    return jax.jit(play)
