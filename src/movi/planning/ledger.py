"""A run's true losses beside every bound, iteration by iteration."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from movi.errors import UserError, check_count, check_seed
from movi.mdp import FiniteMDP, policy_values
from movi.mdp.exact import certain_optimum
from movi.planning.bounds import (
    approximate_value_iteration,
    concentrability,
    corollary_1,
    proposition_1,
    speedy_and_policy_programming,
    supremum,
    theorem_1,
)
from movi.planning.losses import Losses, batch_losses
from movi.planning.schemes import scheme
from movi.planning.traces import Trace, trace, weighted_error_norms
from movi.progress import bar
from movi.schedules import Constant
from movi.sizes import require


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
    a column ``…_holds`` says in how many of the MDPs it held.
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
    uniform = np.full((mdps.states, mdps.actions), 1 / (mdps.states * mdps.actions))
    columns: dict[str, np.ndarray] = {"iteration": np.arange(1, iterations + 1)}

    def put(name: str, loss: np.ndarray, **bounds: np.ndarray) -> None:
        # Component-wise or not, a bound is compared MDP by MDP: means alone could hide a failure.
        columns[name] = loss.mean(-1)
        for bound, values in bounds.items():
            columns[bound] = values.mean(-1)
            columns[f"{bound}_holds"] = (loss <= values + 1e-9 * (1 + np.abs(values))).mean(-1)

    with (
        ThreadPoolExecutor(os.cpu_count()) as pool,
        bar("runs", 4 + len(rates), show=progress) as advance,
    ):

        def measured(run: Trace) -> Losses:
            return batch_losses(mdps, optimal.q, run.policies, pool)

        run = trace(mdps, scheme("movi"), iterations, seed=seed)
        loss = measured(run)
        norms = weighted_error_norms(mdps, run)
        used = slice(0, iterations)  # π_1..π_K
        theorem = theorem_1(mdps, run, optimal.policy)
        put(
            "loss_sup",
            loss.sup[used],
            theorem_1_sup=theorem.max((-2, -1)),
            supremum=supremum(mdps, run, norms),
            proposition_1=proposition_1(mdps, iterations, delta),
        )

        def holds(m: int) -> np.ndarray:  # component by component, as the theorem says
            lost = optimal.q[m] - policy_values(mdps[m], run.policies[used, m])
            slack = 1e-9 * (1 + np.abs(theorem[:, m]))
            return (lost <= theorem[:, m] + slack).all((-2, -1))

        shares = np.stack(list(pool.map(holds, range(len(mdps)))), -1)
        columns["theorem_1_sup_holds"] = shares.mean(-1)
        coefficients = list(pool.map(lambda mdp: concentrability(mdp, uniform, uniform), mdps))
        put(
            "loss_l1",
            loss.l1[used],
            corollary_1=corollary_1(mdps, run, norms, coefficients),
        )
        advance(1)
        for beta, rate in zip(constant_betas, rates):
            run = trace(mdps, scheme("movi", rate), iterations, seed=seed)
            put(f"constant_beta_loss_{beta:g}", measured(run).sup[used])
            advance(1)
        run = trace(mdps, scheme("avi"), iterations, seed=seed)
        put(
            "avi_loss_sup",
            measured(run).sup[used],
            avi_bound=approximate_value_iteration(mdps, run),
        )
        advance(1)
        after = slice(1, iterations + 1)  # π_2..π_{K+1}: after each iteration
        for name in ("sql", "dpp"):
            run = trace(mdps, scheme(name), iterations, seed=seed)
            bound = {f"{name}_bound": speedy_and_policy_programming(mdps, run)}
            put(f"{name}_loss_sup", measured(run).sup[after], **bound)
            advance(1)
    return columns
