"""A run's true losses beside every bound, iteration by iteration."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from momentum_rl import FiniteMDP, policy_values
from momentum_rl.core.schedules import Constant, Schedule
from momentum_rl.errors import UserError, check_count, check_seed
from momentum_rl.mdp.solve.regularised import certain_optimum
from momentum_rl.planning.engine import scheme
from momentum_rl.planning.theory import (
    Losses,
    Trace,
    approximate_value_iteration,
    batch_losses,
    concentrability,
    corollary_1,
    proposition_1,
    speedy_and_policy_programming,
    supremum,
    theorem_1,
    trace,
    weighted_error_norms,
)
from momentum_rl.plumbing.progress import display
from momentum_rl.plumbing.sizes import require


def losses_and_bounds(
    mdps: FiniteMDP,
    iterations: int,
    *,
    seed: int = 0,
    delta: float = 0.1,
    constant_betas: Sequence[float] = (),
    progress: bool = False,
) -> dict[str, np.ndarray]:
    """Columns over n = 1..K: means over the MDPs of the losses and of the bounds on them.

    All schemes see the same samples. Losses and bounds of MoVI and AVI are those of π_n; those of
    SQL and DPP of the policy after n iterations (see `bounds`). μ and ν are uniform. For each bound
    a column ``…_holds`` says in what share of the MDPs it held. ``loss_limit`` is what no policy's
    loss exceeds, whatever it does: γ (r_max − r_min) / (1 − γ).
    """
    check_count("iterations", iterations)
    check_seed(seed)
    if not 0 < delta < 1:
        raise UserError(f"delta: {delta}, expected a number in (0, 1)")
    rates = [Constant(beta) for beta in constant_betas]
    cells = len(mdps) * mdps.states * mdps.actions
    # Of every iteration: q, the error, their sums, the bound's two terms and the bound.
    require(f"{iterations:,} iterations", memory=8 * 8 * iterations * cells)
    optimal = certain_optimum(mdps)
    columns: dict[str, np.ndarray] = {"iteration": np.arange(1, iterations + 1)}
    limit = mdps.discount * np.ptp(mdps.rewards, (-2, -1)) / (1 - mdps.discount)
    columns["loss_limit"] = np.full(iterations, limit.mean())

    def put(name: str, loss: np.ndarray, **bounds: np.ndarray) -> None:
        # Component-wise or not, a bound is compared MDP by MDP: means alone could hide a failure.
        columns[name] = loss.mean(-1)
        for bound, values in bounds.items():
            columns[bound] = values.mean(-1)
            columns[f"{bound}_holds"] = (loss <= values + _slack(values)).mean(-1)

    with (
        ThreadPoolExecutor(os.cpu_count()) as pool,
        display("runs", 4 + len(rates), show=progress) as shown,
    ):

        def traced(name: str, beta: Schedule | None = None) -> tuple[Trace, Losses]:
            run = trace(mdps, scheme(name, beta), iterations, seed=seed)
            shown.advance()
            return run, batch_losses(mdps, optimal.q, run.policies, pool)

        used = slice(0, iterations)  # π_1..π_K
        run, loss = traced("movi")
        norms, theorem = weighted_error_norms(mdps, run), theorem_1(mdps, run, optimal.policy)
        put(
            "loss_sup",
            loss.sup[used],
            theorem_1_sup=theorem.max((-2, -1)),
            supremum=supremum(mdps, run, norms),
            proposition_1=proposition_1(mdps, iterations, delta),
        )
        columns["theorem_1_sup_holds"] = _holds(mdps, optimal.q, run, theorem, pool)
        uniform = np.full((mdps.states, mdps.actions), 1 / (mdps.states * mdps.actions))
        coefficients = list(pool.map(lambda mdp: concentrability(mdp, uniform, uniform), mdps))
        put("loss_l1", loss.l1[used], corollary_1=corollary_1(mdps, run, norms, coefficients))
        for beta, rate in zip(constant_betas, rates):
            run, loss = traced("movi", rate)
            theorem, name = theorem_1(mdps, run, optimal.policy), f"constant_beta_bound_{beta:g}"
            put(f"constant_beta_loss_{beta:g}", loss.sup[used], **{name: theorem.max((-2, -1))})
            columns[f"{name}_holds"] = _holds(mdps, optimal.q, run, theorem, pool)
        run, loss = traced("avi")
        put("avi_loss_sup", loss.sup[used], avi_bound=approximate_value_iteration(mdps, run))
        for name in ("sql", "dpp"):
            run, loss = traced(name)
            bound = {f"{name}_bound": speedy_and_policy_programming(mdps, run)}
            put(f"{name}_loss_sup", loss.sup[1:], **bound)  # π_2..π_{K+1}: after each iteration
    return columns


def _slack(bound: np.ndarray) -> np.ndarray:
    """What rounding may put a loss above its bound."""
    return 1e-9 * (1 + np.abs(bound))


def _holds(
    mdps: FiniteMDP, q: np.ndarray, run: Trace, theorem: np.ndarray, pool: ThreadPoolExecutor
) -> np.ndarray:
    """In which share of the MDPs Theorem 1 held, component by component, as it says, [K]."""

    def one(m: int) -> np.ndarray:
        lost = q[m] - policy_values(mdps[m], run.policies[:-1, m])
        return (lost <= theorem[:, m] + _slack(theorem[:, m])).all((-2, -1))

    return np.stack(list(pool.map(one, range(len(mdps)))), -1).mean(-1)
