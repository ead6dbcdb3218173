"""QuantEcon on an MDP file: solve_quantecon.py METHOD FILE TOLERANCE AGAIN OUT; v* goes to OUT.

Built as QuantEcon likes it best: state-action pairs in order, and a CSR matrix that is given its
three arrays as they are, so that nothing is sorted or copied. With AGAIN 0 a problem of two states
is solved beforehand, so that the only solve of this one is compiled as well.
"""

import sys

from stopwatch import measure, report


def main(method: str, file: str, tolerance: str, again: str, out: str) -> None:
    import numpy as np
    from quantecon.markov import DiscreteDP
    from scipy.sparse import csr_matrix

    def load():
        with np.load(file, allow_pickle=False) as arrays:
            successors, probabilities = arrays["successors"], arrays["probabilities"]
            rewards, discount = arrays["rewards"], float(arrays["discount"])
        states, actions = rewards.shape
        state = np.repeat(np.arange(states, dtype=np.int32), actions)
        action = np.tile(np.arange(actions, dtype=np.int32), states)
        successors, probabilities = (x.reshape(state.size, -1) for x in (successors, probabilities))
        rewards = rewards.reshape(-1)
        if np.isneginf(rewards).any():  # QuantEcon wants no row for an action that is not there
            there = ~np.isneginf(rewards)
            state, action, rewards, successors, probabilities = (
                x[there] for x in (state, action, rewards, successors, probabilities)
            )
        pairs, branching = successors.shape
        rows = np.arange(0, pairs * branching + 1, branching, dtype=np.int32)
        matrix = csr_matrix(
            (probabilities.reshape(-1), successors.reshape(-1), rows), shape=(pairs, states)
        )
        return DiscreteDP(rewards, matrix, discount, state, action)

    def work(model):
        return model.solve(
            method=method,
            v_init=np.zeros(model.num_states),
            epsilon=float(tolerance),
            max_iter=1_000_000,
        )

    def warm():
        pairs = np.arange(2, dtype=np.int32)
        rows = np.arange(3, dtype=np.int32)
        tiny = csr_matrix((np.ones(2), pairs, rows), shape=(2, 2))
        work(DiscreteDP(np.ones(2), tiny, 0.5, pairs, np.zeros(2, np.int32)))
        return load()

    result, facts = measure(load if int(again) else warm, work, int(again))
    np.save(out, result.v)
    report({**facts, "iterations": int(result.num_iter)})


main(*sys.argv[1:])
