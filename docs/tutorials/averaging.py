# %% [markdown]
# # Why averaging helps
#
# Value iteration from samples never settles: each iteration makes an error, acts on it, and passes it on.
# MoVI acts on the average of all its q-functions instead, and the errors cancel. This notebook shows how, on
# one MDP small enough to look at every number.

# %%
import altair as alt
import numpy as np

import momentum_rl
from momentum_rl.planning.engine import scheme
from momentum_rl.planning.theory import trace

alt.renderers.enable("svg")
mdp = momentum_rl.garnet(10, 3, 3, discount=0.9, seed=3, count=1)
best = momentum_rl.optimum(mdp[0])
mdp, best.converged

# %% [markdown]
# A Garnet is a random MDP: here 10 states, 3 actions, and 3 successors of each pair (s, a). `optimum` gives its
# optimal q-function, with a proven bound on the error, so we can measure everything else exactly.
#
# ## Two schemes, the same samples
#
# In iteration $k$, approximate value iteration (AVI) draws one successor of every (s, a), and sets
#
# $$ q_k = r + \gamma \max_{a'} q_{k-1}(s', a') = T q_{k-1} + \varepsilon_k. $$
#
# MoVI draws the same successors, but takes the action from the average $h$ of all q-functions so far:
#
# $$ q_k = T_{\pi_k} q_{k-1} + \varepsilon_k, \qquad \pi_k = \mathcal{G}(h_{k-1}), \qquad
#    h_k = \tfrac{k}{k+1} h_{k-1} + \tfrac{1}{k+1} q_k. $$
#
# `trace` keeps every policy, every table and every error of a run.

# %%
ITERATIONS = 300
runs = {name: trace(mdp, scheme(name), ITERATIONS, seed=0) for name in ("avi", "movi")}
for name, run in runs.items():
    print(
        f"{name:5} errors: mean {run.errors.mean():+.3f}, standard deviation {run.errors.std():.3f}"
    )

# %% [markdown]
# MoVI's errors are no smaller than AVI's, and neither scheme gets better at evaluating: a single sample is as
# noisy in the last iteration as in the first. The difference lies in what becomes of the errors.
#
# ## One pair (s, a)
#
# Here is the table's value of one pair, iteration by iteration. AVI has only $q_k$. MoVI's $q_k$ is just as
# noisy, but its policy reads $h_k$, the mean.

# %%
STATE, ACTION = 0, 0


def rows(name, label, values):
    return [{"k": k, "scheme": label, name: float(v)} for k, v in enumerate(values)]


def lines(data, y, title, **scale):
    return (
        alt.Chart(alt.Data(values=data), width=560, height=220)
        .mark_line(strokeWidth=1.5)
        .encode(
            alt.X("k:Q", title="iteration k"),
            alt.Y(f"{y}:Q", title=title, scale=alt.Scale(**scale)),
            alt.Color("scheme:N", title=None, legend=alt.Legend(orient="bottom")),
        )
    )


q = {name: run.q[:, 0] for name, run in runs.items()}
h = np.cumsum(q["movi"], 0) / np.arange(1, ITERATIONS + 2)[:, None, None]
at = (slice(None), STATE, ACTION)
data = (
    rows("value", "AVI: q", q["avi"][at])
    + rows("value", "MoVI: q", q["movi"][at])
    + rows("value", "MoVI: h", h[at])
)
optimal = [{"k": k, "scheme": "q*", "value": float(best.q[STATE, ACTION])} for k in (0, ITERATIONS)]
lines(data + optimal, "value", "value of one (s, a)", zero=False)

# %% [markdown]
# ## The errors cancel
#
# Let $E_k = \tfrac{1}{k}\sum_{j \le k} \varepsilon_j$ be the mean of the errors so far. They have mean zero given the
# past, so $\|E_k\|_\infty$ falls like $1/\sqrt{k}$, while the size of a single error does not fall at all.

# %%
errors = runs["movi"].errors[:, 0]
means = np.cumsum(errors, 0) / np.arange(1, ITERATIONS + 1)[:, None, None]
single, averaged = np.abs(errors).max((1, 2))[1:], np.abs(means).max((1, 2))[1:]
data = rows("size", "a single error", single) + rows("size", "the mean of all errors", averaged)
for row in data:
    row["k"] += 2
chart = lines(data, "size", "largest error over all (s, a)", type="log")
chart.encode(alt.X("k:Q", title="iteration k", scale=alt.Scale(type="log")))

# %% [markdown]
# From the tenth iteration to the last, the mean of the errors has become this many times smaller. $\sqrt{30}$
# would be 5.5:

# %%
ratio = averaged[8] / averaged[-1]
assert ratio > 2.5
round(float(ratio), 1)

# %% [markdown]
# ## What the policies lose
#
# The value of every greedy policy can be computed exactly. Its loss is
# $\|q_* - q_{\pi_k}\|_\infty$, what acting by $\pi_k$ costs in the worst case.

# %%
result = momentum_rl.compare_schemes(mdp, ["avi", "movi"], iterations=ITERATIONS, seed=0)
loss = dict(zip(("AVI", "MoVI"), result.sup[:, :, 0]))
data = [row for name in loss for row in rows("loss", name, loss[name])]
lines(data, "loss", "loss of the policy")

# %%
late = {name: float(values[ITERATIONS // 2 :].mean()) for name, values in loss.items()}
assert late["MoVI"] < late["AVI"] / 2
{name: round(value, 3) for name, value in late.items()}

# %% [markdown]
# AVI keeps changing its mind, because its policy follows the latest error. MoVI settles, because its policy
# follows the mean of them. The paper's Theorem 1 turns this into a bound: the loss of MoVI's policy after $k$
# iterations depends on sums of errors divided by $k$, where the bound of AVI has the largest single error.
# [The theory, checked](../theory.md) computes both sides of that bound.
#
# ## What averaging does not do
#
# An average is slow to forget. Without errors, $q$ forgets its first guess by a factor of $\gamma$ per iteration,
# but the average of $k$ tables only like $1/k$. Here is MoVI once more, exact and in a few lines of NumPy:

# %%
one, states = mdp[0], np.arange(10)
q, h = np.zeros((2, 10, 3))
for k in range(1, 301):
    v = q[states, h.argmax(-1)]
    q = one.rewards + 0.9 * (one.probabilities * v[one.successors]).sum(-1)
    h = (k * h + q) / (k + 1)
    if k in (10, 100, 300):
        away = [np.abs(table - best.q).max() for table in (q, h)]
        print(f"k = {k:3}: q is {away[0]:.1e} away from q*, h is {away[1]:.1e}")
assert away[0] < 1e-9 < 1e-3 < away[1]

# %% [markdown]
# A constant $\beta$ is a compromise: it forgets faster, and keeps a fraction $(1 - \beta)/(1 + \beta)$ of the
# variance of an error. [Momentum-DQN](../algorithms/momentum-dqn.md) lets $\beta$ grow during the run.
