"""Exact answers with proofs: q*, q_π, and the same with an entropy in the reward.

certificates  what is proven about an answer, and the least that float64 can prove
methods       q* by vi, mpi, pi, ipi, and `auto`, which chooses; NumPy's sweeps
compiled      the same sweeps compiled, for large problems
linear        v_π where sweeps are slow
exact         `optimum`, `policy_values`, `resolvent`, norms
regularised   q^τ_* and stochastic policies
horizons      finite horizons, and γ = 1 until an absorbing state
solution      what `momentum_rl.solve` returns
"""
