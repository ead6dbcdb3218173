# %% [markdown]
# # Write your own algorithm
#
# In movi an algorithm is a declaration: the target of each table or network, and what the policy is read from.
# The same declaration runs on a table, exactly or from samples, and on a network. This notebook writes one,
# checks it on a table where everything is known, and then trains it.
#
# ## The target
#
# We take *advantage learning* (Baird 1999; Bellemare et al. 2016), which widens the gap between the best action
# and the others:
#
# $$ q(s, a) \leftarrow r + \gamma \max_{a'} q(s', a') - \alpha \big(\max_{b} q(s, b) - q(s, a)\big). $$
#
# A target has two parts, each a function of *one* transition: `bootstrap` is what is read at $s'$, `backup` is
# the rest. `values["q"]` holds the lagged copies, newest first; `values["q"][0]` is a row with one value per
# action.

# %%
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import momentum_rl


def advantage_learning(alpha):
    def bootstrap(next_values):
        return jnp.max(next_values["q"][0])

    def backup(values, a, r, discount, v, beta):
        q = values["q"][0]
        return r + discount * v - alpha * (jnp.max(q) - q[a])

    return momentum_rl.Algorithm(f"own-al-{alpha}", {"q": momentum_rl.Target(bootstrap, backup)})


# %% [markdown]
# ## On a table
#
# Run exactly (`samples=0`), value iteration and ours should find the same policy, because advantage learning
# leaves the optimal actions optimal. Its gaps should be wider by a factor of $1/(1 - \alpha)$: at the fixed point
# $q - \max q = (Tq - \max Tq)/(1 - \alpha)$.

# %%
mdps = momentum_rl.garnet(30, 4, 4, discount=0.9, seed=0, count=20)
ALPHA = 0.5
exact = momentum_rl.compare_schemes(
    mdps, ["avi", advantage_learning(ALPHA)], iterations=400, samples=0
)
print("largest loss of the last policies:", exact.sup[:, -1].max(axis=-1))
assert exact.sup[:, -1].max() < 1e-8

# %% [markdown]
# With $\alpha = 0$ it has to be value iteration itself, at every iteration. A test like this finds most mistakes
# in a new target:

# %%
both = momentum_rl.compare_schemes(mdps, ["avi", advantage_learning(0.0)], iterations=100, seed=1)
assert np.array_equal(both.sup[0], both.sup[1])
"equal at every iteration"

# %% [markdown]
# From samples, wider gaps help, because an error must be larger to change the order of actions. MoVI is the
# momentum of value iteration:

# %%
sampled = momentum_rl.compare_schemes(
    mdps, ["avi", advantage_learning(ALPHA), "movi"], iterations=400
)
for name, losses in zip(sampled.schemes, sampled.sup):
    print(f"{name:12} mean loss over the last 200 iterations {losses[200:].mean():.3f}")
assert sampled.sup[1, 200:].mean() < sampled.sup[0, 200:].mean()

# %% [markdown]
# `momentum` applies to any algorithm whose targets read `values.preference`, the row that the policy is read
# from. Ours reads q by name, so momentum would change nothing, and it says so:

# %%
try:
    momentum_rl.momentum(advantage_learning(ALPHA))
except momentum_rl.UserError as error:
    print(error)

# %% [markdown]
# ## On a network
#
# The same declaration trains a network. `momentum_rl.train` takes it in place of a registered algorithm:

# %%
config = momentum_rl.Config(
    "own-al", "CartPole-v1", steps=6000, final_episodes=5, iteration_steps=1000
)
result = momentum_rl.train(config, algorithm=advantage_learning(ALPHA))
print(result.status, "after", result.step, "steps")
for row in result.metrics:
    print(f"step {row['step']:5}  score {row['score']:6.1f}  mean q {row['mean_q'] or 0:6.2f}")

# %% [markdown]
# `mean_q` starts once there are enough transitions to learn from. 6,000 steps show that it works; the default of
# 100,000 takes a minute or two.
#
# ## With options, and by name
#
# As a dataclass the algorithm has options that are checked, saved in the run's config and shown by `--help`:

# %%


@dataclass(frozen=True)
class AdvantageLearning(momentum_rl.Options):
    """Advantage learning."""

    title = "Advantage learning"
    alpha: float = 0.5
    """The factor by which gaps are widened is 1/(1 − α)."""

    def algorithm(self):
        """The algorithm that these options mean."""
        return advantage_learning(self.alpha)


momentum_rl.register("own-advantage", AdvantageLearning)
config = momentum_rl.Config("own-advantage", "CartPole-v1", options={"alpha": 0.2})
config.options

# %% [markdown]
# In a file `mine.py`, the class is known to every command, without being registered:
#
# ```
# movi solve mdp.npz --scheme mine:AdvantageLearning --alpha 0.2
# movi train mine:AdvantageLearning --env CartPole-v1 --alpha 0.2
# movi sweep matrix.toml --trust mine        # algorithms = ["dqn", "mine:AdvantageLearning"]
# ```
#
# A module is imported only where your own words name it, and never because a file does ([Security](../security.md)).
# `examples/munchausen.py` is a complete one. An algorithm that does not regress to targets, such as an actor and
# its critic, is a `Method`: [Deep agents](../agents.md#what-does-not-regress-to-a-target).
