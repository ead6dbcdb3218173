"""DQN measured as the study measures: python -m paper.evidence.alongside OUT GAME SEED [torch].

The study (Kitamura et al. 2023) has no frozen agents. A second game is played alongside the
training, one step for each of its steps, greedily by the network as it is at that moment:

    training    s  a(ε)  s  a(ε)  s  a(ε)  …      stored, learned from
    alongside   s  a(0)  s  a(0)  s  a(0)  …      only watched, by a network that moves under it

This trains the run of 1-momentum.toml with this seed and watches such a game; with torch, from
weights as PyTorch draws them, as the study's are. OUT becomes a JSON file: the command, the commit,
the config, the versions, and for each 50,000 steps the number and the mean return of the games that
ended in them.
"""

import json
import math
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from momentum_rl.envs.gymnax_env import make_gymnax
from momentum_rl.envs.jax_env import env_keys, reset_all, step_all, step_keys
from momentum_rl.plumbing.versions import of_training
from momentum_rl.runs.sweep import read_sweep_file
from momentum_rl.training.build import configured_learner
from momentum_rl.training.fused_loop import keys_of, make_chunk
from momentum_rl.training.loop import Limits, env_seeds, limits
from paper.evidence.collect import commit_of

MATRIX = Path(__file__).parent / "1-momentum.toml"
LENGTH = 1_000
ROW = 50_000
TORCH = 3  # the purpose of the weights' draws
ALONGSIDE = 2  # the purpose of the game's seed: neither training's nor an evaluation's


def watched(config, environment, learner):
    """``chunk(state, game, keys, game_key, epsilon, first) -> (state, game, rewards, ends)``."""
    parts = make_chunk(config, environment, learner, LENGTH)

    def chunk(state, game, keys, game_key, epsilon, first):
        drawn = parts.draw(keys, first)

        def body(t, carry):
            state, (games, seen), rewards, ends = carry
            action = learner.act(state.learner, seen).astype(environment.spaces.action.dtype)
            games, outcome = step_all(
                environment, step_keys(game_key, first + t + 1), games, action
            )
            now = Limits(epsilon.ever[t], epsilon.last[t])
            state, _ = parts.vector_step(state, drawn, now, first, t, jnp.int32(config.steps))
            ended = outcome.terminated | outcome.truncated
            rewards, ends = rewards.at[t].set(outcome.reward[0]), ends.at[t].set(ended[0])
            return state, (games, outcome.observation), rewards, ends

        nothing = jnp.zeros(LENGTH, jnp.float32), jnp.zeros(LENGTH, bool)
        return jax.lax.fori_loop(0, LENGTH, body, (state, game, *nothing))

    return jax.jit(chunk, donate_argnums=(0, 1))


def rows_of(rewards, ends):
    """For each so many steps, the number and the mean return of the games that ended in them."""
    ended = np.flatnonzero(ends)
    sums = np.cumsum(rewards, dtype=float)[ended]
    returns = np.diff(sums, prepend=0.0)
    rows = []
    for first in range(0, len(ends), ROW):
        part = returns[(ended >= first) & (ended < first + ROW)]
        mean = float(part.mean()) if len(part) else None
        rows.append({"step": first + ROW, "episodes": len(part), "score": mean})
    return rows


def as_torch_draws(params, key):
    """Parameters uniform within ±1/√n, n the inputs of their layer: kernels and biases."""
    flat = flatten_dict(params)
    keys = dict(zip(sorted(flat), jax.random.split(key, len(flat))))

    def drawn(path, leaf):
        kernel = flat[(*path[:-1], "kernel")]
        bound = math.prod(kernel.shape[:-1]) ** -0.5
        return jax.random.uniform(keys[path], leaf.shape, leaf.dtype, -bound, bound)

    return unflatten_dict({path: drawn(path, leaf) for path, leaf in flat.items()})


def redrawn(state, seed):
    """The state before the first step, with such weights in the network and its lagged copies."""
    learner = state.learner
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), TORCH), len(learner.online))
    online = {
        name: as_torch_draws(part, key) for (name, part), key in zip(learner.online.items(), keys)
    }
    lagged = {
        name: jax.tree.map(lambda new, old: jnp.broadcast_to(new, old.shape), online[name], part)
        for name, part in learner.lagged.items()
    }
    return state._replace(learner=learner._replace(online=online, lagged=lagged))


def main(out: str, game: str, seed: str, weights: str = "") -> None:
    """Trains, watches and writes."""
    if weights not in ("", "torch"):
        sys.exit(f"weights: {weights!r}, expected torch or nothing")
    commit = commit_of(MATRIX.parent)
    cells = {(cell.env, cell.label): cell for cell in read_sweep_file(MATRIX).cells}
    config = cells[f"MinAtar/{game}", "dqn"].config_of(int(seed))
    environment = make_gymnax(config.env)
    learner = configured_learner(config, environment.spaces).learner
    state = make_chunk(config, environment, learner, LENGTH).init(config.seed)
    state = redrawn(state, config.seed) if weights else state
    game_key = env_keys(env_seeds(config.seed, 1, ALONGSIDE))
    played = jax.jit(partial(reset_all, environment))(game_key)
    keys, chunk = keys_of(config.seed, config.num_envs), watched(config, environment, learner)
    rewards, ends = [], []
    for first in range(0, config.steps, LENGTH):
        epsilon = limits(config.epsilon_schedule(first + np.arange(LENGTH, dtype=np.int64)))
        state, played, reward, ended = chunk(
            state, played, keys, game_key, epsilon, np.int32(first)
        )
        rewards.append(np.asarray(reward))
        ends.append(np.asarray(ended))
    record = {
        "command": f"python -m paper.evidence.alongside OUT {game} {seed} {weights}".rstrip(),
        "commit": commit,
        "config": json.loads(config.to_json()),
        "seed": config.seed,
        "versions": of_training(),
        "rows": rows_of(np.concatenate(rewards), np.concatenate(ends)),
    }
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
