"""The paper's comparison of schemes on Garnets (Section 7.1, fig:movi-bound and fig:adp)."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from movi.errors import UserError, check_count, check_seed
from movi.mdp import FiniteMDP
from movi.mdp.exact import certain_optimum
from movi.planning.losses import batch_losses
from movi.planning.runs import run
from movi.planning.schemes import scheme
from movi.progress import bar
from movi.schedules import Schedule
from movi.sizes import require
from movi.targets import Algorithm

_ROWS = 1 << 24  # policy entries per chunk
ROW = 500  # bytes of a row of the table, with its numbers as texts
SAMPLE = 16  # bytes of a sample: the random number, the successor, its value


class Comparison(NamedTuple):
    """‖q* − q_{π_k}‖ for k = 1..K of every scheme on every MDP.

    Attributes:
      schemes: their names.
      l1: [schemes, K, M], the 1-norm under the uniform distribution.
      sup: [schemes, K, M], the sup norm.
    """

    schemes: tuple[str, ...]
    l1: np.ndarray
    sup: np.ndarray


def compare(
    mdps: FiniteMDP,
    schemes: Sequence[str | Algorithm] = ("avi", "movi", "sql", "dpp"),
    *,
    iterations: int = 10_000,
    seed: int = 0,
    samples: int = 1,
    beta: Schedule | None = None,
    chunk: int | None = None,
    progress: bool = False,
) -> Comparison:
    """Run sampled schemes with common samples and measure every policy's loss exactly.

    Args:
      mdps: a batch of MDPs, for instance ``movi.garnet(count=100)``.
      schemes: names, or algorithms of your own.
      iterations: K.
      seed: MDP m draws from (seed, m).
      samples: m, the samples per (s, a) and iteration (1 in the paper); 0 is the exact scheme.
      beta: β_k for the schemes that have one; k/(k+1) by default.
      chunk: iterations computed at a time; it does not change the result.
      progress: whether to draw a bar on a terminal.

    >>> import movi
    >>> result = compare(movi.garnet(count=3), iterations=50)
    >>> result.l1.shape
    (4, 50, 3)
    """
    least_values = (("iterations", iterations, 1), ("samples", samples, 0), ("chunk", chunk, 1))
    for name, value, least in least_values:
        if value is not None:
            check_count(name, value, least)
    check_seed(seed)
    if mdps.batch is None:
        raise UserError("mdps: a single MDP, expected a batch such as movi.garnet(count=100)")
    if not schemes:
        raise UserError("schemes: none, expected at least one")
    chosen = tuple(scheme(which, beta) for which in schemes)
    if chunk is None:
        chunk = max(1, min(500, _ROWS // (len(chosen) * mdps.batch * mdps.states)))
    points = len(chosen) * iterations
    require(f"{iterations:,} iterations", memory=points * (16 * mdps.batch + ROW))
    cells = mdps.batch * mdps.states * mdps.actions
    require(f"{samples:,} samples of each (s, a)", memory=samples * cells * SAMPLE)
    optimal_q = certain_optimum(mdps).q
    l1 = np.empty((len(chosen), iterations, mdps.batch))
    sup = np.empty_like(l1)
    chunks = run(mdps, chosen, iterations, seed=seed, samples=samples, chunk=chunk)
    with (
        bar("iterations", iterations, show=progress) as advance,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        ahead = next(chunks, None)
        while ahead is not None:
            # The device computes the next chunk while the host evaluates this one's policies.
            now, ahead = ahead, next(chunks, None)
            losses = batch_losses(mdps, optimal_q, np.asarray(now.policies), pool)
            rows = slice(now.first - 1, now.first - 1 + losses.l1.shape[1])
            l1[:, rows], sup[:, rows] = losses.l1, losses.sup
            advance(losses.l1.shape[1])
    return Comparison(tuple(s.algorithm.name for s in chosen), l1, sup)
