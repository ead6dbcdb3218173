"""The replay of a run in the host loop: its size announced beforehand, in memory or in files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from momentum_rl.agents.options import default_kappa
from momentum_rl.envs.atari import AtariVector
from momentum_rl.envs.interface import Environment, is_restorable
from momentum_rl.errors import UserError
from momentum_rl.plumbing.sizes import readable
from momentum_rl.replay import frames, uniform
from momentum_rl.replay.frames import FrameReplay
from momentum_rl.replay.interface import Replay, can_be_checkpointed, slack_of
from momentum_rl.replay.ring import require_space
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.runs.config import Config
from momentum_rl.training.loop import Watcher

REPLAYS: Sequence[tuple[Any, Any, Any]] = (
    (AtariVector, frames, FrameReplay),
    (object, uniform, UniformReplay),
)
"""By environment: the module that knows a replay's size, and its class."""


def _replay_of(environment: Environment) -> tuple[Any, Any]:
    """Of single frames for Atari, else of whole transitions."""
    return next(own[1:] for own in REPLAYS if isinstance(environment, own[0]))


def slack_for(config: Config, in_files: bool, snapshot: Mapping[str, Any] | None = None) -> int:
    """The slack of a run's replay; with a snapshot, that with which its files are opened again.

    It may be larger than before, of a run that is made longer, while the ring has not gone round.
    """
    capacity = config.replay_capacity
    fresh = slack_of(capacity, config.checkpoint_every if in_files else 0, config.stored)
    then = fresh if snapshot is None else int(snapshot["slack"])
    goes_round = snapshot is not None and int(snapshot["added"]) > capacity + then
    return then if goes_round else max(then, fresh)


def announce(config: Config, replay: str, size: int, watcher: Watcher) -> None:
    """The first lines of a run that fits: κ where it follows the steps, and its replay."""
    if config.kappa_follows:
        kappa = default_kappa(config.steps)
        watcher.announce(f"kappa: {kappa:,}, a twentieth of the {config.steps:,} steps")
    watcher.announce(f"{replay}: {readable(size)}")


def check_replay(
    config: Config, environment: Environment, directory: Path | None, watcher: Watcher
) -> None:
    """Says how large the replay will be, or that it cannot fit; nothing is made yet."""
    space, action = environment.spaces.observation, environment.spaces.action
    capacity, held = config.replay_capacity, config.replay_size
    storage, _ = _replay_of(environment)
    n, mapped = config.n_step, directory is not None
    slack = slack_for(config, mapped)
    size = storage.bytes_of(capacity, space, slack, mapped=mapped, n_step=n, action=action)
    require_space(held, size, directory)
    announce(config, f"replay of {held:,} transitions", size, watcher)


def new_replay(
    config: Config,
    environment: Environment,
    directory: Path | None,
    snapshot: Mapping[str, Any] | None,
) -> Replay:
    """The replay of a run in the host loop.

    In a directory it is in files: new ones, or those that are there and have this snapshot.
    """
    _, kind = _replay_of(environment)
    replay: Replay = kind(
        config.replay_capacity,
        environment.spaces.observation,
        slack=slack_for(config, directory is not None, snapshot),
        horizon=config.horizon,
        action=environment.spaces.action,
        directory=directory,
        new=snapshot is None,
        run=config.identity,
    )
    return replay


def check_keepable(environment: Environment, replay: Replay | None) -> None:
    """Raises unless a run with these can be checkpointed."""
    without = "set checkpoint_every to 0 to train without checkpoints"
    if not is_restorable(environment):
        raise UserError(
            "environment: cannot be restored in mid-episode; expected one with snapshot and "
            f"restore (a Gymnasium vector: autoreset mode Disabled), or {without}"
        )
    if replay is not None and not can_be_checkpointed(replay):
        raise UserError(f"replay: expected one with snapshot, restore and headroom, or {without}")
