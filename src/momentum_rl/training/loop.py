"""What both loops share: a run's random numbers, exploration, and the metrics of an iteration.

Each random number is a pure function of (seed, purpose, count). Counting instead of carrying a
generator's state means that no key is used twice, that a resumed run needs only its counters, and
that a compiled loop draws the same numbers as the host's.

| in a row of metrics | what it is | ailing if |
|---|---|---|
| score | mean raw return of the training episodes that ended in the iteration | |
| loss_… | mean loss of a network over the iteration's updates | |
| mean_q, mean_h | values of the actions taken | above r_max/(1 − γ), the most there can be |
| rms_update_… | size of a network's next update, over its learning rate | below 0.05 |
| dormant | dormant units of the network that acts, in its worst layer | above 90 % |
| clipped_… | probability that a support cannot hold | above 1 % |
| bias | value of the network that acts, less the return collected | (it is only shown) |

Each ailment is said in words once. What is measured of the networks changes nothing in training:
its minibatch has random numbers of its own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.agents.learner import Learner, LearnerState
from momentum_rl.core.arrays import AnyArray
from momentum_rl.core.schedules import Value
from momentum_rl.plumbing.compilation import shared
from momentum_rl.plumbing.reading import without_infinite
from momentum_rl.runs.config import Config
from momentum_rl.spaces import Box, Spaces, Transition

CHUNK = 1_000  # agent steps of a chunk in compiled code
CHECK_PERIOD = 1_000  # agent steps between two looks at whether the values are still finite

# Random numbers ----------------------------------------------------------------------------------

INITIALISATION, ACTING, SAMPLING, POLICY, LEARNING, INSPECTION = range(6)
_WORDS = 2**16  # random words per call of the compiled function


def key_of(seed: int, purpose: int) -> jax.Array:
    """The key of one purpose in one run."""
    return jax.random.fold_in(jax.random.key(seed), purpose)


def env_seeds(seed: int, n: int, *purpose: int) -> list[int]:
    """Different seeds for n environments; those of one purpose don't depend on another's n.

    A purpose is one number, training's 0 by default, or several.
    """
    entropy = [seed, *(purpose or (0,))]
    return [int(word) for word in np.random.SeedSequence(entropy).generate_state(n)]


def bits(key: jax.Array, count: jax.Array, shape: Sequence[int]) -> jax.Array:
    """The random uint32 words of draw number ``count``."""
    return jax.random.bits(jax.random.fold_in(key, count), tuple(shape), jnp.uint32)


class Draws:
    """Draws of one shape, by their number, made in chunks.

    >>> draws = Draws(key_of(seed=0, purpose=ACTING), (3,))
    >>> bool((draws(70_000) == bits(key_of(0, ACTING), 70_000, (3,))).all())
    True
    """

    def __init__(self, key: jax.Array, shape: Sequence[int]) -> None:
        self._size = max(1, min(4096, _WORDS // math.prod(shape)))
        self._start = -1
        self._chunk = np.zeros((0, *shape), np.uint32)
        self._make = partial(_chunk_of(self._size, tuple(shape)), key)

    def __call__(self, count: int) -> np.ndarray:
        """The words of draw number ``count``."""
        start = count - count % self._size
        if start != self._start:
            self._chunk = np.asarray(self._make(np.uint32(start)))
            self._start = start
        return self._chunk[count - start]


@shared
def _chunk_of(size: int, shape: tuple[int, ...]) -> Callable[[jax.Array, np.uint32], jax.Array]:
    """``chunk(key, start)``: the words of ``size`` draws from number ``start`` on, compiled."""

    def chunk(key: jax.Array, start: jax.Array) -> jax.Array:
        counts = start + jnp.arange(size, dtype=jnp.uint32)
        return jax.vmap(lambda count: bits(key, count, shape))(counts)

    return jax.jit(chunk)


# Exploration: ε-greedy ---------------------------------------------------------------------------


class Limits(NamedTuple, Generic[AnyArray]):
    """ε as integers, so that compiled code compares as the host does.

    A word in [0, 2³²) means exploring where word < ε 2³² in double precision: if ``ever``, where
    word ≤ ``last`` = ⌈ε 2³²⌉ − 1.
    """

    ever: AnyArray
    last: AnyArray


class Exploration(NamedTuple, Generic[AnyArray]):
    """Which of n environments explore, and how."""

    where: AnyArray
    """Whether each explores, [n]."""
    actions: AnyArray
    """Random actions, [n, ...]."""


def limits(epsilon: Value) -> Limits[np.ndarray]:
    """The integers of an ε, or of an array of them."""
    words = np.ceil(np.asarray(epsilon, float) * 2.0**32)
    return Limits(words > 0, (np.maximum(words, 1) - 1).astype(np.uint32))


def words_of(spaces: Spaces) -> int:
    """Words W that an environment's exploration takes: whether, and by which action.

    An action of d numbers takes d of them.
    """
    return 1 + math.prod(spaces.action.shape)


def exploring(words: AnyArray, limits: Limits[AnyArray], spaces: Spaces) -> Exploration[AnyArray]:
    """Where n environments explore, and how, each by its own words: [n, W]."""
    chex.assert_rank(words, 2)
    where = limits.ever & (words[:, 0] <= limits.last)
    if isinstance(spaces.actions, Box):
        # 24 bits, which a float32 holds: the host and compiled code have the same numbers.
        return Exploration(where, (words[:, 1:] >> 8).astype(np.float32) * np.float32(2**-23) - 1)
    return Exploration(where, words[:, 1] % np.uint32(spaces.actions))


def drawn(
    generator: np.random.Generator, n: int, epsilon: float, spaces: Spaces
) -> Exploration[np.ndarray]:
    """Where n environments explore, and how, by a generator: for evaluations and videos."""
    where, actions = generator.random(n) < epsilon, spaces.actions
    if isinstance(actions, Box):
        return Exploration(where, generator.uniform(-1, 1, (n, actions.size)).astype(np.float32))
    return Exploration(where, generator.integers(actions, size=n))


def epsilon_greedy(exploration: Exploration[AnyArray], policy: Callable[[], AnyArray]) -> AnyArray:
    """The actions of a policy, or random ones in the environments that explore.

    On the host the policy is not evaluated if all of them do.
    """
    where, random = exploration
    where = where.reshape(-1, *[1] * (random.ndim - 1))
    if isinstance(where, np.ndarray):
        return random if where.all() else np.where(where, random, policy())
    chosen = policy()
    return jnp.where(where, random.astype(chosen.dtype), chosen)


# Metrics -----------------------------------------------------------------------------------------

EVERY = 10_000  # agent steps between two looks at least, where iterations are shorter
SEEN = 512  # observations on which a unit has to show that it is not dormant
SLOWEST = 0.05
MOST_DORMANT = 0.9
MOST_CLIPPED = 0.01


class Scores:
    """Adds each environment's raw rewards up to the end of its episode."""

    def __init__(self, num_envs: int) -> None:
        self._return = [0.0] * num_envs
        self._length = [0] * num_envs
        self._ended: list[tuple[float, int]] = []
        self._largest = 0.0
        self.episodes = 0

    def count(self, i: int, reward: float, ended: bool) -> None:
        """Counts a step of environment i."""
        self._return[i] += reward
        self._length[i] += 1
        self._largest = max(self._largest, abs(reward))
        if ended:
            self._ended.append((self._return[i], self._length[i]))
            self.episodes += 1
            self._return[i], self._length[i] = 0.0, 0

    def take(self) -> dict[str, float | int | None]:
        """The episodes that ended since the last call: how many, their mean score and length; and
        the largest |reward| of a step since then."""
        ended, self._ended = self._ended, []
        largest, self._largest = self._largest, 0.0
        steps = {"largest_reward": largest}
        if not ended:
            return {"episodes": 0, "score": None, "score_std": None, "length": None, **steps}
        scores, lengths = np.array(ended).T
        return {
            "episodes": len(ended),
            "score": float(scores.mean()),
            "score_std": float(scores.std()),
            "length": float(lengths.mean()),
            **steps,
        }

    def snapshot(self) -> dict[str, Any]:
        """All that ``restore`` needs, of JSON's types."""
        return {
            "return": list(self._return),
            "length": list(self._length),
            "ended": [list(episode) for episode in self._ended],
            "largest": self._largest,
            "episodes": self.episodes,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continues from a snapshot."""
        self._return = np.array(snapshot["return"], float).tolist()  # null is NaN
        self._length = [int(value) for value in snapshot["length"]]
        ended = np.array(snapshot["ended"], float).reshape(-1, 2).tolist()
        self._ended = [(score, int(length)) for score, length in ended]
        self._largest = float(np.array(snapshot["largest"], float))
        self.episodes = int(snapshot["episodes"])


def metrics_row(
    config: Config,
    iteration: int,
    step: int,
    scores: Scores,
    means: Mapping[str, float | None],
    health: Mapping[str, float],
    counts: Mapping[str, int],
) -> dict[str, Any]:
    """The metrics of an iteration that ended at this step."""
    beta = config.beta_of
    return without_infinite(
        {
            "iteration": iteration,
            "step": step,
            **scores.take(),
            **means,
            **health,
            **({} if beta is None else {"beta": float(beta(step))}),
            "epsilon": float(config.epsilon_schedule(step)),
            **counts,
        }
    )


class Inspection:
    """Looks at the networks of a run at the ends of its iterations."""

    def __init__(self, config: Config, learner: Learner) -> None:
        self._config, self._learner = config, learner
        self._size = max(config.batch_size, SEEN // learner.minibatches)

    def row(
        self, state: LearnerState, sample: Callable[[np.ndarray], Transition], step: int
    ) -> dict[str, float]:
        """What a row of metrics says of the networks at this step; nothing if no look is due.

        ``sample`` gives the replay's transitions for random words.
        """
        if not self._config.passes(step, EVERY) or step <= self._config.learns_after:
            return {}
        key = key_of(self._config.seed, INSPECTION)
        words = _words(self._learner.minibatches, self._size)(key, step)
        batches = sample(np.asarray(words))
        look = _compiled(self._learner, self._config.batch_size)
        return {name: float(x) for name, x in look(state, batches, np.int32(step)).items()}


@shared
def _words(minibatches: int, size: int) -> Callable[..., jax.Array]:
    return jax.jit(lambda key, step: bits(key, step, (minibatches, size)))


@shared
def _compiled(learner: Learner, batch_size: int) -> Callable[..., dict[str, jax.Array]]:
    def look(state: LearnerState, batches: Transition, step: jax.Array) -> dict[str, jax.Array]:
        seen = batches.observation.reshape(-1, *batches.observation.shape[2:])
        key = jax.random.fold_in(jax.random.key(INSPECTION), step)
        first = jax.tree.map(lambda part: part[:, :batch_size], batches)
        return learner.inspect(state, first, seen, step, key)

    return jax.jit(look)


class Warnings:
    """What is wrong with a run, in words; each kind once."""

    def __init__(self, config: Config, values_are_returns: bool) -> None:
        self._config, self._bounded = config, values_are_returns
        self._largest = 0.0
        self._noticed: set[str] = set()

    def after(self, row: Mapping[str, Any]) -> list[str]:
        """What the next row of metrics shows that no row before it did."""
        clip = self._config.reward_clip
        largest = row.get("largest_reward") or 0.0
        self._largest = max(self._largest, largest if clip is None else min(largest, clip))
        ailments: dict[str, str] = {}
        for name, value in row.items():
            if value is not None and (line := self._ailment(name, value, int(row["iteration"]))):
                ailments.setdefault(name.partition("_")[0], line)
        new = [line for kind, line in ailments.items() if kind not in self._noticed]
        self._noticed |= set(ailments)
        return new

    def _ailment(self, name: str, value: float, iteration: int) -> str:
        """What a number of a row says that is wrong, or ""."""
        most = self._largest / (1 - self._config.gamma)
        if name.startswith("mean_") and self._bounded and 0 < most < value:
            return (
                f"{name}: {value:.4g} in iteration {iteration}, more than any policy can return "
                f"(r_max/(1 − γ) = {most:.4g}): values run away"
            )
        if name.startswith("rms_update_") and value < SLOWEST and iteration > 0:
            return (
                f"{name}: {value:.2g} of the learning rate in iteration {iteration}, expected at "
                f"least {SLOWEST}: the optimiser's ε may swallow the gradients"
            )
        if name == "dormant" and value > MOST_DORMANT:
            return (
                f"dormant: {100 * value:.0f} % of a layer's units in iteration {iteration}, "
                f"expected at most {100 * MOST_DORMANT:.0f} %: the network is nearly dead"
            )
        if name.startswith("clipped_") and value > MOST_CLIPPED:
            return (
                f"{name}: {100 * value:.1f} % of the probability in iteration {iteration} was "
                "beyond v_min or v_max, expected < 1 %"
            )
        return ""
