"""The comparison of AVI, MoVI, SQL and DPP as one would write it in NumPy, for all Garnets at once.

    numpy_compare.py FILE ITERATIONS AGAIN OUT

FILE has M Garnets as `momentum_rl.save_mdp` writes them. Every iteration of every scheme samples a
successor for each (s, a) of each Garnet, updates the tables, and evaluates the greedy policies
exactly, by one batched call of `np.linalg.solve`. NumPy only: nothing of movi is imported. The
errors, [schemes, K, M], go to OUT.
"""

import sys
from typing import NamedTuple

from stopwatch import measure, report

import numpy as np  # isort: skip  (after the clock has started)

SCHEMES = ("avi", "movi", "sql", "dpp")


class Garnets(NamedTuple):
    successors: np.ndarray  # [M, S, A, B]
    passed: np.ndarray  # [M, S, A, B - 1], cumulative probabilities
    kernel: np.ndarray  # [M, S, A, S]
    rewards: np.ndarray  # [M, S, A]
    discount: float

    @property
    def each(self):
        """Indices that broadcast over Garnets and states."""
        return np.arange(self.rewards.shape[0])[:, None], np.arange(self.rewards.shape[1])


def load(file: str) -> Garnets:
    with np.load(file, allow_pickle=False) as arrays:
        successors, probabilities = arrays["successors"], arrays["probabilities"]
        rewards, discount = arrays["rewards"], float(arrays["discount"][0])
    many, states, actions, branching = successors.shape
    kernel = np.zeros((many, states, actions, states))
    m, s, a, _ = np.ogrid[:many, :states, :actions, :branching]
    np.add.at(kernel, (m, s, a, successors), probabilities)
    return Garnets(successors, np.cumsum(probabilities, -1)[..., :-1], kernel, rewards, discount)


def policy_value(g: Garnets, policy: np.ndarray) -> np.ndarray:
    """q_π of one policy per Garnet: [M, S] to [M, S, A]."""
    m, s = g.each
    system = np.eye(policy.shape[1]) - g.discount * g.kernel[m, s, policy]
    v = np.linalg.solve(system, g.rewards[m, s, policy][..., None])[..., 0]
    return g.rewards + g.discount * np.einsum("msan,mn->msa", g.kernel, v)


def optimal_value(g: Garnets) -> np.ndarray:
    """q* by policy iteration, [M, S, A]."""
    policy = np.argmax(g.rewards, -1)
    while True:
        q = policy_value(g, policy)
        better = q.max(-1) > np.take_along_axis(q, policy[..., None], -1)[..., 0] + 1e-12
        if not better.any():
            return q
        policy = np.where(better, q.argmax(-1), policy)


def sample(g: Garnets, rng: np.random.Generator) -> np.ndarray:
    """s' ~ P(·|s, a) for every (s, a), [M, S, A]."""
    slot = (rng.random(g.rewards.shape)[..., None] >= g.passed).sum(-1)
    return np.take_along_axis(g.successors, slot[..., None], -1)[..., 0]


def run(g: Garnets, scheme: str, iterations: int, optimal_q: np.ndarray, seed: int = 0):
    """‖q* − q_{π_k}‖ for k = 1..K: the 1-norm under the uniform distribution, and ∞; [K, M]."""
    rng = np.random.default_rng(seed)  # the same for all schemes: common random numbers
    m, s = g.each
    member = m[..., None]
    q, h, before = (np.zeros(g.rewards.shape) for _ in range(3))
    l1, sup = np.empty((2, iterations, len(m)))
    for k in range(1, iterations + 1):
        policy = np.argmax(h if scheme == "movi" else q, -1)
        difference = np.abs(optimal_q - policy_value(g, policy))
        l1[k - 1], sup[k - 1] = difference.mean((1, 2)), difference.max((1, 2))

        successor = sample(g, rng)
        v = q[m, s, policy][member, successor]  # q(s', π(s')), which is max q(s', ·) but for MoVI
        if scheme == "avi":
            q = g.rewards + g.discount * v
        elif scheme == "movi":
            q = g.rewards + g.discount * v
            h = k / (k + 1) * h + q / (k + 1)
        elif scheme == "sql":
            older = before.max(-1)[member, successor]
            backup, last = g.rewards + g.discount * older, g.discount * (v - older)
            q, before = q + (backup - q) / k + (1 - 1 / k) * last, q
        elif scheme == "dpp":
            q = q + g.rewards + g.discount * v - q.max(-1, keepdims=True)
    return l1, sup


def compare(g: Garnets, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """All schemes, [schemes, K, M] each."""
    optimal_q = optimal_value(g)
    each = [run(g, scheme, iterations, optimal_q) for scheme in SCHEMES]
    return np.stack([l1 for l1, _ in each]), np.stack([sup for _, sup in each])


def main(file: str, iterations: str, again: str, out: str) -> None:
    (l1, sup), facts = measure(
        lambda: load(file), lambda g: compare(g, int(iterations)), int(again)
    )
    np.savez(out, l1=l1, sup=sup)
    report(facts)


if __name__ == "__main__":
    main(*sys.argv[1:])
