"""DQN measured as the published study measures: python evidence/alongside.py OUT GAME SEED.

The study (Kitamura et al. 2023) has no frozen agents. A second game is played alongside the
training, one step for each of its steps, greedily by the network as it is at that moment:

    training    s  a(ε)  s  a(ε)  s  a(ε)  …      stored, learned from
    alongside   s  a(0)  s  a(0)  s  a(0)  …      only watched, by a network that moves under it

This trains the run of evidence/1-momentum.toml with this seed and watches such a game. OUT becomes
a JSON file: the command, the config, the versions, and for each 50,000 steps the number and the
mean return of the games that ended in them.
"""

import json
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from movi.agents.exploration import Limits, limits
from movi.envs.gymnax_env import make_gymnax
from movi.envs.jax_env import env_keys, reset_all, step_all, step_keys
from movi.runs.matrix import read_sweep_file
from movi.training.build import configured_learner
from movi.training.draws import env_seeds
from movi.training.fused_step import ChunkConfig, _Chunk, keys_of, make_init
from movi.versions import of_training

MATRIX = Path(__file__).parent / "1-momentum.toml"
LENGTH = 1_000
ROW = 50_000
ALONGSIDE = 2  # the purpose of the game's seed: neither training's nor an evaluation's


def watched(config, environment, learner):
    """``chunk(state, game, keys, game_key, epsilon, first) -> (state, game, rewards, ends)``."""
    own = _Chunk(
        ChunkConfig(*(getattr(config, name) for name in ChunkConfig._fields)),
        environment,
        learner,
        LENGTH,
        None,
    )

    def chunk(state, game, keys, game_key, epsilon, first):
        drawn = own.draw(keys, first)

        def body(t, carry):
            state, (games, seen), rewards, ends = carry
            action = learner.act(state.learner, seen).astype(environment.spaces.action.dtype)
            games, outcome = step_all(
                environment, step_keys(game_key, first + t + 1), games, action
            )
            now = Limits(epsilon.ever[t], epsilon.last[t])
            state, _ = own.vector_step(state, drawn, now, first, t, jnp.int32(config.steps))
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
        own = returns[(ended >= first) & (ended < first + ROW)]
        mean = float(own.mean()) if len(own) else None
        rows.append({"step": first + ROW, "episodes": len(own), "score": mean})
    return rows


def main(out: str, game: str, seed: str) -> None:
    """Trains, watches and writes."""
    cells = {(cell.env, cell.label): cell for cell in read_sweep_file(MATRIX).cells}
    config = cells[f"MinAtar/{game}", "dqn"].config_of(int(seed))
    environment = make_gymnax(config.env)
    learner = configured_learner(config, environment.spaces).learner
    state = make_init(config, environment, learner)(config.seed)
    game_key = env_keys(env_seeds(config.seed, 1, ALONGSIDE))
    played = jax.jit(partial(reset_all, environment))(game_key)
    keys, chunk = keys_of(config.seed, config.num_envs), watched(config, environment, learner)
    rewards, ends = [], []
    for first in range(0, config.steps, LENGTH):
        epsilon = limits(config.epsilon_of(first + np.arange(LENGTH, dtype=np.int64)))
        state, played, reward, ended = chunk(
            state, played, keys, game_key, epsilon, np.int32(first)
        )
        rewards.append(np.asarray(reward))
        ends.append(np.asarray(ended))
    record = {
        "command": f"python evidence/alongside.py OUT {game} {seed}",
        "config": json.loads(config.to_json()),
        "seed": config.seed,
        "versions": of_training(),
        "rows": rows_of(np.concatenate(rewards), np.concatenate(ends)),
    }
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
