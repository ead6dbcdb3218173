"""Whether and how a run directory that is already there is continued."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from momentum_rl.agents.agent import AGENT_FILE, BEST_FILE, load
from momentum_rl.agents.options import default_kappa
from momentum_rl.errors import UserError
from momentum_rl.plumbing.files import check_own_directory, check_replaceable, write_aside, writing
from momentum_rl.runs.config import Config, changes, flat
from momentum_rl.runs.files import (
    CONFIG,
    EVALUATION,
    EVALUATIONS,
    EXTENDED,
    GROUP,
    METRICS,
    STATUS,
    TIMING,
    VERSIONS,
    EvaluationFile,
    GroupFile,
    read_config,
    read_if_there,
    read_metrics,
    read_status,
)
from momentum_rl.training.checkpoint import Checkpoints
from momentum_rl.training.evaluation import Evaluation

RESULTS = (METRICS, TIMING, EVALUATION, EVALUATIONS, AGENT_FILE, BEST_FILE)
WRITTEN = (CONFIG, STATUS, VERSIONS, GROUP, EXTENDED, *RESULTS)


def continued(
    run: Path, config: Config, announce: Callable[[str], None] = lambda line: None
) -> Config:
    """The config with which a run goes on, if ``config`` is asked for; UserError if it is another.

    The same run may have checkpoints at other times, and more steps. Where β changes by a share of
    the run's length (κ None), a longer run would change what was trained already: so κ stays.
    """
    before = read_config(run)
    for name in WRITTEN:
        check_replaceable(run / name)
    for name in ("checkpoint", "replay"):
        check_own_directory(run / name, run)
    if (run / EXTENDED).is_file() and config.kappa_follows:
        config = config.replace(kappa=flat(before).get("kappa"))
    changed = changes(before, config)
    if "algorithm" in changed:  # its options would be more of the same
        changed = {"algorithm": changed["algorithm"]}
    differing = [
        f"{name} is {there!r} there and {here!r}"
        for name, (there, here) in changed.items()
        if name != "steps"
    ]
    if differing:
        raise UserError(f"out: {run} holds another run: {', '.join(differing)} here")
    if bool(before.checkpoint_every) != bool(config.checkpoint_every):
        raise UserError(
            f"checkpoint_every: {config.checkpoint_every}, but {run} was begun with "
            f"{before.checkpoint_every}; expected both to be 0 or neither"
        )
    if config.steps < before.steps:
        raise UserError(f"steps: {config.steps}, expected at least {before.steps}: {run} has them")
    longer = config.steps > before.steps and state_of(run) != "diverged"
    if longer and state_of(run) == "finished" and not Checkpoints(run).steps():
        raise UserError(
            f"steps: {config.steps}, but {run} has finished its {before.steps} and kept no "
            "checkpoint to go on from; expected a new out"
        )
    if longer and config.kappa_follows:
        kappa = default_kappa(before.steps)
        config = config.replace(kappa=kappa)
        announce(f"kappa: stays {kappa:,}, a twentieth of the first {before.steps:,} steps")
        with writing(run):
            write_aside(run / EXTENDED, f'{{"format": 1, "kappa": {kappa}}}\n')
    return config


def as_asked(run: Path) -> Config:
    """The config with which a run goes on by itself: κ follows from what it kept."""
    config = read_config(run)
    return config.replace(kappa=None) if (run / EXTENDED).is_file() else config


def state_of(run: Path) -> str:
    """A run's status; one that was killed is still "running"."""
    found = read_status(run)
    return "running" if found is None else found.status


def has_ended(run: Path, config: Config) -> bool:
    """Whether there is nothing left to train."""
    found = read_status(run)
    status, step = ("running", 0) if found is None else (found.status, found.step)
    return status == "diverged" or (status == "finished" and step == config.steps)


def result_of(run: Path, network: Any = None) -> dict[str, Any]:
    """What a run that has ended left behind, as the fields of a ``Result``."""
    status = read_status(run)
    if status is None:
        raise UserError(f"{run / STATUS}: no such file, expected that of a run that ended")
    found: EvaluationFile | None = read_if_there(run, EVALUATION, EvaluationFile)
    played = None if found is None else evaluation_of(found)
    return {
        "status": status.status,
        "step": status.step,
        "agent": load(run, network),
        "metrics": read_metrics(run),
        "evaluation": played,
        "loop": None,
        "best": load(run, network, best=True) if (run / BEST_FILE).is_file() else None,
    }


def evaluation_of(file: EvaluationFile) -> Evaluation:
    """The evaluation that a file holds."""
    others = {name: evaluation_of(other) for name, other in file.average.items()}
    returns = np.array(file.returns, float).tolist()  # null is NaN
    return Evaluation(returns, file.lengths, average=others)


def is_grouped(run: Path) -> bool:
    """Whether a run was begun with others, in one program."""
    return (run / GROUP).is_file()


def check_group(run: Path, seeds: Sequence[int]) -> None:
    """A run of a group is continued with the others: together they are one program."""
    data: GroupFile | None = read_if_there(run, GROUP, GroupFile)
    group = [] if data is None else data.seeds
    if group != list(seeds):
        trained = f"with the seeds {group} in one program" if group else "by itself"
        asked = f"with the seeds {list(seeds)}" if seeds else "by itself"
        raise UserError(
            f"out: {run} was trained {trained}, expected to be continued the same way "
            f"(movi resume {run.parent if group else run}), not {asked}"
        )


def runs_in(directory: Path) -> list[Path]:
    """The run directory itself, or those of several seeds in it, by their numbers."""
    if (directory / "config.json").is_file():
        return [directory]
    runs = [path.parent for path in directory.glob("seed-*/config.json")]
    if not runs:
        raise UserError(f"{directory}: no run directory, and none of several seeds (seed-…)")
    return sorted(runs, key=lambda run: read_config(run).seed)
