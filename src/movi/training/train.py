"""A training run from its config: everything is built here, in one place, and put together."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import flax.linen as nn
import optax

from movi.agents.agent import AGENT_FILE, Agent, save
from movi.agents.algorithms import deep_algorithm
from movi.agents.learner import Learner, make_learner
from movi.agents.networks import NetworkSpec, choose_network, make_network
from movi.agents.optimisers import make_optimiser
from movi.envs.atari import AtariVector
from movi.envs.gymnax_env import is_gymnax
from movi.envs.interface import Environment
from movi.envs.jax_env import JaxEnvironment
from movi.envs.make import make_environment as make_by_id
from movi.errors import UserError
from movi.replay.frames import FrameReplay, bytes_of
from movi.replay.interface import Replay
from movi.replay.memory import readable
from movi.replay.uniform import UniformReplay, bytes_per_transition
from movi.spaces import Spaces
from movi.targets import Algorithm
from movi.training.config import Config
from movi.training.evaluation import Evaluation, evaluate
from movi.training.host_loop import HostLoop
from movi.training.run_directory import RunDirectory, Status, check_free, clean

if TYPE_CHECKING:
    from movi.training.fused_loop import FusedLoop

Loop = Union[HostLoop, "FusedLoop"]


class Result(NamedTuple):
    """How a run ended.

    Attributes:
      status: finished or diverged.
      step: the step at which it ended or diverged.
      agent: the trained agent; of a run that diverged, with the last finite parameters.
      metrics: the rows of ``metrics.jsonl``.
      evaluation: the evaluation at the end, if there was one.
      loop: the loop as it ended.
    """

    status: Status
    step: int
    agent: Agent
    metrics: list[dict[str, Any]]
    evaluation: Evaluation | None
    loop: Any


class Watcher:
    """Is told about a run as it goes; this one ignores it."""

    def announce(self, line: str) -> None:
        """Before the run: something to know about it."""

    def tick(self, loop: Loop) -> None:
        """After every step of the environments; in the fused loop, after every chunk."""

    def row(self, row: dict[str, Any]) -> None:
        """After every iteration."""


def network_spec(config: Config, spaces: Spaces) -> NetworkSpec:
    """The network that a config means for these spaces."""
    kind = choose_network(spaces.observation) if config.network == "auto" else config.network
    return NetworkSpec(kind, tuple(config.hidden), config.padding)


def make_replay(
    config: Config, environment: Environment, out: str | Path | None, watcher: Watcher
) -> Replay:
    """The replay of a run: of single frames for Atari, else of whole transitions."""
    space, capacity = environment.spaces.observation, config.replay_capacity
    stacked = isinstance(environment, AtariVector)
    if config.replay_file and (out is None or not stacked):
        raise UserError("replay_file: needs a run directory and an Atari game")
    size = bytes_of(capacity, space) if stacked else capacity * bytes_per_transition(space)
    watcher.announce(f"replay of {capacity:,} transitions: {readable(size)}")
    if not stacked:
        return UniformReplay(capacity, space)
    directory = Path(out) / "replay" if config.replay_file and out is not None else None
    return FrameReplay(capacity, space, directory=directory)


def learner_of(
    config: Config,
    algorithm: Algorithm,
    network: nn.Module,
    optimiser: optax.GradientTransformation | None,
    spaces: Spaces,
) -> Learner:
    """The learner that a config means."""
    return make_learner(
        algorithm,
        network,
        optimiser
        or make_optimiser(config.optimiser, config.learning_rate, config.optimiser_epsilon),
        spaces.observation,
        beta=config.beta_of,
        loss=config.loss,
        shared_batch=config.shared_batch,
        reward_clip=config.reward_clip,
    )


def train(
    config: Config,
    out: str | Path | None = None,
    *,
    algorithm: Algorithm | None = None,
    environment: Environment | JaxEnvironment | None = None,
    make_environment: Callable[[int], Environment] | None = None,
    network: nn.Module | None = None,
    optimiser: optax.GradientTransformation | None = None,
    replay: Replay | None = None,
    watcher: Watcher | None = None,
) -> Result:
    """Trains an agent.

    Args:
      config: the run's config.
      out: the run directory, new or empty; None writes nothing.
      algorithm: your own, in place of the config's.
      environment: your own, in place of the config's; closed at the end. A ``JaxEnvironment`` is
        trained on in the fused loop, as those that the config names are.
      make_environment: makes n environments, for the evaluation; the config's by default. With an
        environment of your own and without this there is no evaluation.
      network: any flax module from observations to action values, in place of the config's.
      optimiser: any optax transformation, in place of the config's.
      replay: your own, in place of the environment's usual one.
      watcher: is told about the run as it goes.
    """
    if isinstance(environment, JaxEnvironment) or (
        environment is None
        and make_environment is None
        and replay is None
        and is_gymnax(config.env)
    ):
        from movi.training.fused_train import train_seeds

        return train_seeds(
            config,
            [config.seed],
            None if out is None else [out],
            algorithm=algorithm,
            environment=environment,
            network=network,
            optimiser=optimiser,
            watcher=watcher,
        )[0]
    watcher = watcher or Watcher()
    if out is not None:
        check_free(Path(out))
    algorithm = algorithm or deep_algorithm(config.algorithm, config.sign)
    if make_environment is None and environment is None:
        make_environment = lambda n: make_by_id(config.env, n)  # noqa: E731
    if environment is None:
        assert make_environment is not None
        environment = make_environment(config.num_envs)
    try:
        if environment.num_envs != config.num_envs:
            raise UserError(
                f"num_envs: {config.num_envs}, but the environment has {environment.num_envs}"
            )
        spaces = environment.spaces
        spec = network_spec(config, spaces) if network is None else None
        if network is None:
            assert spec is not None
            network = make_network(spec, spaces)
        learner = learner_of(config, algorithm, network, optimiser, spaces)
        if replay is None:
            replay = make_replay(config, environment, out, watcher)
        loop = HostLoop(config, environment, learner, replay)
        directory = None if out is None else RunDirectory(out, config)

        def agent() -> Agent:
            about = {
                "algorithm": algorithm.name,
                "env": config.env,
                "step": loop.step,
                "seed": config.seed,
                "preset": config.preset,
                "evaluation_epsilon": config.evaluation_epsilon,
            }
            return Agent(
                network,
                loop.learner.parameters(),
                spaces,
                acts_on=algorithm.acts_on,
                spec=spec,
                about=about,
            )

        try:
            return _run(config, loop, directory, agent, make_environment, watcher)
        except BaseException as error:
            if directory is not None:
                reason = "interrupted" if isinstance(error, KeyboardInterrupt) else repr(error)
                directory.status("failed", loop.step, reason)
            raise
        finally:
            if directory is not None:
                directory.close()
    finally:
        environment.close()


def _run(
    config: Config,
    loop: HostLoop,
    directory: RunDirectory | None,
    agent: Callable[[], Agent],
    make_environment: Callable[[int], Environment] | None,
    watcher: Watcher,
) -> Result:
    rows: list[dict[str, Any]] = []
    diverged, saved = None, 0
    while loop.step < config.steps and not diverged:
        until = min(config.steps, (len(rows) + 1) * config.iteration_steps)
        diverged = loop.advance(until, watcher.tick)
        row = iteration_row(loop, len(rows))
        rows.append(row)
        watcher.row(row)
        if directory is not None:
            directory.row(row)
            if loop.step - saved >= config.save_every:
                save(agent(), directory.path / AGENT_FILE)
                saved = loop.step
    final = agent()
    if directory is not None:
        save(final, directory.path / AGENT_FILE)
    evaluation = None
    if config.evaluation_episodes and make_environment is not None:
        evaluation = evaluate_config(final, config, make_environment)
        if directory is not None:
            directory.write_json("evaluation.json", evaluation.to_json())
    status: Status = "diverged" if diverged else "finished"
    message = f"diverged at step {diverged}" if diverged else ""
    if directory is not None:
        directory.status(status, diverged or loop.step, message)
    return Result(status, diverged or loop.step, final, rows, evaluation, loop)


def evaluate_config(
    agent: Agent, config: Config, make_environment: Callable[[int], Environment]
) -> Evaluation:
    """The evaluation at the end of a run."""
    environment = make_environment(min(config.evaluation_episodes, 10))
    try:
        return evaluate(
            agent,
            environment,
            config.evaluation_episodes,
            epsilon=config.evaluation_epsilon,
            seed=config.seed,
        )
    finally:
        environment.close()


def iteration_row(loop: HostLoop, iteration: int) -> dict[str, Any]:
    """The metrics of an iteration, a row of ``metrics.jsonl``.

    ``score`` is the mean raw return of the episodes that ended in the iteration, ``loss_…`` and
    ``mean_…`` are the means of each network's loss and value of the actions taken, over the
    iteration's updates; the other fields are those of its last step.
    """
    return clean(
        {
            "iteration": iteration,
            "step": loop.step,
            **loop.scores.take(),
            **loop.learner.take_means(),
            "beta": loop.beta(),
            "epsilon": loop.epsilon(),
            "updates": loop.updates,
            "syncs": loop.syncs,
            "stored": len(loop.replay),
        }
    )
