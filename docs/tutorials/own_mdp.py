# %% [markdown]
# # Solve your own MDP
#
# A machine wears out. Every day you choose to run it, to repair it or to replace it. This notebook turns that
# sentence into arrays, solves it, and proves how good the solution is.
#
# ## Describe it
#
# The states are the levels of wear: new, good, fair, poor and broken. Three actions are possible:
#
# * *run*: earns the more the newer the machine is; it wears by one level with probability 0.3 and by two with
#   probability 0.1;
# * *repair*: costs 2.5 and takes the machine one level back; a broken machine cannot be repaired;
# * *replace*: costs 8, and tomorrow the machine is new.
#
# Money tomorrow is worth 0.97 of money today: that is the discount.

# %%
import numpy as np

import momentum_rl
from momentum_rl.mdp import families

LEVELS = ["new", "good", "fair", "poor", "broken"]
ACTIONS = ["run", "repair", "replace"]
S = len(LEVELS)
earned = np.array([5.0, 4.0, 3.0, 1.0, 0.0])

kernel = np.zeros((S, len(ACTIONS), S))  # P[s, a, s']
for s in range(S):
    kernel[s, 0, s] += 0.6
    kernel[s, 0, min(s + 1, S - 1)] += 0.3
    kernel[s, 0, min(s + 2, S - 1)] += 0.1
    kernel[s, 1, max(s - 1, 0)] = 1
    kernel[s, 2, 0] = 1

rewards = np.stack([earned, np.full(S, -2.5), np.full(S, -8.0)], axis=1)  # r(s, a)
rewards[S - 1, 1] = -np.inf  # a reward of −inf: the state does not have this action

mdp = momentum_rl.FiniteMDP.from_dense(
    kernel, rewards, 0.97, axes="SA", state_names=LEVELS, action_names=ACTIONS
)
mdp

# %% [markdown]
# Mistakes are found at once, and named. Here a row does not add up to 1:

# %%
wrong = kernel.copy()
wrong[2, 0, 2] = 0.5
try:
    momentum_rl.FiniteMDP.from_dense(wrong, rewards, 0.97, axes="SA")
except momentum_rl.UserError as error:
    print(error)

# %% [markdown]
# ## Solve it

# %%
solution = momentum_rl.solve(mdp)
solution

# %%
for level in LEVELS:
    values = {action: round(q, 2) for action, q in solution.at(level).items()}
    print(f"{level:7} {solution.action(level):8} {values}")

# %% [markdown]
# ## What is certified
#
# `solution.bound` is a proven bound on $\|q - q_*\|_\infty$. It does not depend on how the solution was found. For
# *any* $v$, with $d = Tv - v$,
#
# $$ v + \frac{\min d}{1 - \gamma} \le v_* \le v + \frac{\max d}{1 - \gamma}, $$
#
# so one exact backup is enough to check an answer. The bound includes an allowance for rounding.

# %%
assert solution.converged
print(f"‖q − q*‖∞ ≤ {solution.bound:.1e}, asked for {solution.tolerance:.0e}")
print(f"no bound below {solution.floor:.1e} can be proven in float64 on this problem")

# %% [markdown]
# We can check the certificate against an answer that was obtained in another way. The optimal policy is a
# linear system away from its value, solved here by NumPy alone:

# %%
policy = solution.policy
P = kernel[np.arange(S), policy]
r = rewards[np.arange(S), policy]
v = np.linalg.solve(np.eye(S) - 0.97 * P, r)
assert np.abs(v - solution.v).max() <= solution.bound
print("largest difference:", f"{np.abs(v - solution.v).max():.1e}")

# %% [markdown]
# ## The same from samples
#
# Suppose that the probabilities were not known, and that each day could only be tried. MoVI with one sample
# for every (s, a) and iteration finds a policy as well; because the model *is* known here, its loss can be
# computed exactly.

# %%
full = momentum_rl.FiniteMDP.from_dense(
    kernel, np.where(np.isinf(rewards), -50.0, rewards), 0.97, axes="SA"
)
best = momentum_rl.optimum(full)
for name in ("avi", "movi"):
    sampled = momentum_rl.solve(full, name, sampled=True, iterations=3000, seed=1)
    lost = np.abs(best.q - momentum_rl.policy_values(full, sampled.policy)).max()
    print(f"{name:5} policy {[ACTIONS[a] for a in sampled.policy]}, loses at most {lost:.3f}")

# %% [markdown]
# ## Larger problems
#
# Nothing changes for larger problems: `momentum_rl.solve` looks at the problem and chooses a method that suits it. Save
# the MDP and solve it from the command line: [Choose a solver](../solving.md).

# %%
maze = families.Maze(size=40, discount=0.999).mdp()
answer = momentum_rl.solve(maze)
assert answer.converged
print(answer)
print("chosen because:", answer.why)
