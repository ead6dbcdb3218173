"""A training run from its config: everything is built here, in one place, and put together."""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import flax.linen as nn
import optax

from movi.agents.agent import Agent
from movi.agents.learner import Learner, fingerprint, make_learner
from movi.agents.method import Method
from movi.agents.networks import NetworkSpec, choose_network
from movi.agents.optimisers import make_optimiser
from movi.agents.options import Options, Unknown
from movi.agents.registry import find, options_of, register
from movi.envs.atari import AtariVector
from movi.envs.gymnax_env import is_gymnax
from movi.envs.interface import Environment, is_restorable
from movi.envs.jax_env import JaxEnvironment
from movi.envs.make import make_environment as make_by_id
from movi.errors import Interrupted, UserError
from movi.replay import frames, uniform
from movi.replay.frames import FrameReplay
from movi.replay.interface import Replay, is_kept, slack_of
from movi.replay.uniform import UniformReplay
from movi.schedules import Constant
from movi.sizes import readable, require
from movi.spaces import Spaces
from movi.targets import Algorithm
from movi.training.checkpoint import Checkpoints, Saved, newest
from movi.training.config import Config
from movi.training.evaluation import Evaluation, evaluate
from movi.training.host_loop import HostLoop, beta_of
from movi.training.keeping import Keeper, said_how_it_ended
from movi.training.resume import check_group, continued, has_ended, result_of
from movi.training.run_directory import (
    REPLAY,
    RunDirectory,
    check_free,
    clean,
)
from movi.training.run_files import EVALUATION, Status, holds_run
from movi.training.stopping import Stop, never
from movi.transitions import ONE_STEP

if TYPE_CHECKING:
    from movi.training.fused_loop import FusedLoop

Loop = Union[HostLoop, "FusedLoop"]


class Result(NamedTuple):
    """How a run ended.

    Attributes:
      status: finished or diverged; a run that is interrupted has no result.
      step: the step at which it ended or diverged.
      agent: the trained agent; of a run that diverged, with the last finite parameters.
      metrics: the rows of ``metrics.jsonl``.
      evaluation: the evaluation at the end, if there was one.
      loop: the loop as it ended; None if the run had ended before.
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

    def evaluated(self, step: int, evaluation: Evaluation) -> None:
        """After every evaluation during the run."""


def network_spec(config: Config, spaces: Spaces) -> NetworkSpec:
    """The network that a config means for these spaces."""
    kind = choose_network(spaces.observation) if config.network == "auto" else config.network
    return NetworkSpec(kind, tuple(config.hidden), config.padding)


def check_replay(
    config: Config, environment: Environment, directory: Path | None, watcher: Watcher
) -> None:
    """Says how large the replay will be, or that it cannot fit; nothing is made yet."""
    space, capacity = environment.spaces.observation, config.replay_capacity
    module = frames if isinstance(environment, AtariVector) else uniform
    slack = 0 if directory is None else slack_of(capacity, config.checkpoint_every)
    n, mapped = config.n_step, directory is not None
    size = module.bytes_of(capacity, space, slack, mapped=mapped, n_step=n)
    watcher.announce(f"replay of {capacity:,} transitions: {readable(size)}")
    module.require(capacity, space, slack, directory, n)


def check_batch(config: Config, spaces: Spaces) -> None:
    """Raises at once if a minibatch cannot fit: both observations of each transition, as floats."""
    each = 8 * math.prod(spaces.observation.shape) + 64
    require(f"minibatch of {config.batch_size:,}", memory=config.batch_size * each)


def make_replay(
    config: Config,
    environment: Environment,
    directory: Path | None = None,
    slack: int | None = None,
) -> Replay:
    """The replay of a run: of single frames for Atari, else of whole transitions.

    In a directory it is kept in files: new ones, or those that are there and have this slack.
    """
    new = slack is None
    if slack is None:
        kept = directory is not None
        slack = slack_of(config.replay_capacity, config.checkpoint_every) if kept else 0
    kind = FrameReplay if isinstance(environment, AtariVector) else UniformReplay
    return kind(
        config.replay_capacity,
        environment.spaces.observation,
        slack=slack,
        horizon=config.horizon,
        directory=directory,
        new=new,
    )


def known_config(
    config: Config, algorithm: Algorithm | type[Options] | None, trust: Collection[str] = ()
) -> Config:
    """The config with the options of its algorithm, or of one that a program gives.

    A run is recorded under the name of the algorithm that it trains.
    """
    name, given = config.algorithm, config.options
    if algorithm is not None:
        own = algorithm.name if isinstance(algorithm, Algorithm) else name
        register(own, algorithm)
        given = given if own == name or isinstance(given, Unknown) else Unknown()
        name = own
    find(name, trust)
    return replace(config, algorithm=name, options=options_of(name, given))


def method_of(config: Config) -> Method:
    """The method that a config means."""
    clip = config.reward_clip if config.n_step == 1 else None  # else the replay clips
    return config.options.method(config.loss, clip)


def learner_of(
    config: Config,
    method: Method,
    networks: Mapping[str, nn.Module],
    optimiser: optax.GradientTransformation | None,
    spaces: Spaces,
) -> Learner:
    """The learner that a config means."""
    return make_learner(
        method,
        networks,
        optimiser
        or make_optimiser(config.optimiser, config.learning_rate, config.optimiser_epsilon),
        spaces,
        beta=config.beta_of or Constant(0.0),
    )


def default_learner(config: Config, spaces: Spaces) -> Learner:
    """The learner of a config with nothing of one's own in it."""
    method = method_of(config)
    return learner_of(config, method, networks_of(config, method, None, spaces)[0], None, spaces)


def networks_of(
    config: Config,
    method: Method,
    network: nn.Module | Mapping[str, nn.Module] | None,
    spaces: Spaces,
) -> tuple[Mapping[str, nn.Module], NetworkSpec | None]:
    """The networks of a run, and their description if they are this package's."""
    if network is None:
        spec = network_spec(config, spaces)
        return method.build(spec, spaces), spec
    if isinstance(network, Mapping):
        return network, None
    return dict.fromkeys(method.networks, network), None


def agent_of(
    config: Config,
    method: Method,
    networks: Mapping[str, nn.Module],
    spec: NetworkSpec | None,
    spaces: Spaces,
    parameters: dict[str, Any],
    step: int,
) -> Agent:
    """The agent of a run at a step."""
    about = {
        "algorithm": config.algorithm,
        "env": config.env,
        "step": step,
        "seed": config.seed,
        "preset": config.preset,
        "evaluation_epsilon": config.evaluation_epsilon,
    }
    return Agent(
        networks,
        parameters,
        spaces,
        acts_on=method.acts_on,
        kinds=method.kinds,
        spec=spec,
        about=about,
    )


def train(
    config: Config,
    out: str | Path | None = None,
    *,
    algorithm: Algorithm | type[Options] | None = None,
    environment: Environment | JaxEnvironment | None = None,
    make_environment: Callable[[int], Environment] | None = None,
    network: nn.Module | Mapping[str, nn.Module] | None = None,
    optimiser: optax.GradientTransformation | None = None,
    replay: Replay | None = None,
    watcher: Watcher | None = None,
    stop: Stop = never,
    trust: Collection[str] = (),
) -> Result:
    """Trains an agent, or goes on training it.

    Args:
      config: the run's config.
      out: the run directory; None writes nothing. In a new or empty one a run begins. The same run
        goes on from its newest checkpoint, with more ``steps`` also after its end; of one that has
        ended the result is read from the files. A run of another config is refused.
      algorithm: your own, in place of the config's: an ``Algorithm``, under whose name the run is
        recorded; or a dataclass of its options, which the config names as you like.
      environment: your own, in place of the config's; closed at the end. A ``JaxEnvironment`` is
        trained on in the fused loop, as those that the config names are.
      make_environment: makes n environments, for the evaluation; the config's by default. With an
        environment of your own and without this there is no evaluation.
      network: any flax module from observations to action values, in place of the config's; or one
        for each network of the algorithm, by name.
      optimiser: any optax transformation, in place of the config's.
      replay: your own, in place of the environment's usual one.
      watcher: is told about the run as it goes.
      stop: asked often; a signal's number makes the run stop with a checkpoint and an
        ``Interrupted``: see ``movi.training.stopping``.
      trust: modules that the config's ``env`` and ``algorithm`` may name (MODULE:NAME): importing
        one runs its code.
    """
    config = known_config(config, algorithm, trust)
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
            environment=environment,
            network=network,
            optimiser=optimiser,
            watcher=watcher,
            stop=stop,
        )[0]
    watcher = watcher or Watcher()
    if out is not None and holds_run(out):
        config = continued(Path(out), config, watcher.announce)
        check_group(Path(out), [])
        if has_ended(Path(out), config):
            return Result(**result_of(Path(out), network))
    elif out is not None:
        check_free(Path(out))
    if config.evaluate_every and make_environment is None and environment is not None:
        raise UserError("evaluate_every: with an environment of your own, give make_environment")
    if make_environment is None and environment is None:
        make_environment = lambda n: make_by_id(config.env, n, trust=trust)  # noqa: E731
    if environment is None:
        assert make_environment is not None
        environment = make_environment(config.num_envs)
    with closing(environment):
        if environment.num_envs != config.num_envs:
            raise UserError(
                f"num_envs: {config.num_envs}, but the environment has {environment.num_envs}"
            )
        keeps = out is not None and config.checkpoint_every > 0
        files = Path(out) / REPLAY if out is not None and keeps else None
        if keeps:
            check_keepable(environment, replay)
        if replay is not None and getattr(replay, "horizon", ONE_STEP) != config.horizon:
            raise UserError(f"replay: expected one with the config's horizon, {config.horizon}")
        spaces = environment.spaces
        check_batch(config, spaces)
        method = method_of(config)
        networks, spec = networks_of(config, method, network, spaces)
        learner = learner_of(config, method, networks, optimiser, spaces)
        if replay is None:
            check_replay(config, environment, files, watcher)

        def loop_of(slack: int | None = None) -> HostLoop:
            own = make_replay(config, environment, files, slack) if replay is None else replay
            return HostLoop(config, environment, learner, own)

        def agent(loop: HostLoop) -> Agent:
            parameters = loop.learner.parameters()
            return agent_of(config, method, networks, spec, spaces, parameters, loop.step)

        run = _Run(config, loop_of, agent, make_environment, watcher, stop)
        if out is None:
            return run.go(None)
        made_by = fingerprint(learner, spaces)
        with closing(RunDirectory(out, config, made_by=made_by)) as directory:
            return run.go(directory)


def check_keepable(environment: Environment, replay: Replay | None) -> None:
    """Raises unless a run with these can be checkpointed."""
    without = "set checkpoint_every to 0 to train without checkpoints"
    if not is_restorable(environment):
        raise UserError(
            "environment: cannot be restored in mid-episode; expected one with snapshot and "
            f"restore (a Gymnasium vector: autoreset mode Disabled), or {without}"
        )
    if replay is not None and not is_kept(replay):
        raise UserError(f"replay: expected one with moment, restore and room, or {without}")


class _Run:
    """A run from its beginning or its newest checkpoint to its end."""

    def __init__(
        self,
        config: Config,
        loop_of: Callable[..., HostLoop],
        agent: Callable[[HostLoop], Agent],
        make_environment: Callable[[int], Environment] | None,
        watcher: Watcher,
        stop: Stop,
    ) -> None:
        self._config, self._loop_of, self._agent = config, loop_of, agent
        self._make, self._watcher, self._stop = make_environment, watcher, stop
        self._saved = 0  # the step at which the agent's file was written last

    def go(self, directory: RunDirectory | None) -> Result:
        """Trains, evaluates, and writes what is to be written."""
        loop = self._begin(directory)
        directories = [] if directory is None else [directory]
        with said_how_it_ended(directories, lambda: loop.step):
            return self._train(loop, directory)

    def _begin(self, directory: RunDirectory | None) -> HostLoop:
        restored: list[HostLoop] = []
        notices: list[str] = []

        def restore(saved: list[Saved]) -> None:
            (one,) = saved
            restored[:] = [self._loop_of(int(one.state["replay"]["slack"]))]
            restored[0].restore(one.arrays, one.state)
            self._saved = int(one.state["saved"])
            assert directory is not None
            notices[:] = [directory.begin(restored[0].step, one.state["written"])]

        if directory is not None and self._config.checkpoint_every:
            newest([Checkpoints(directory.path)], restore)
        if restored:
            self._watcher.announce(f"goes on from the checkpoint of step {restored[0].step:,}")
            for notice in filter(None, notices):
                self._watcher.announce(notice)
            return restored[0]
        loop = self._loop_of()
        if directory is not None:
            directory.begin()
        return loop

    def _train(self, loop: HostLoop, directory: RunDirectory | None) -> Result:
        config = self._config

        def room(moment: Mapping[str, Any]) -> int:
            assert is_kept(loop.replay)
            return loop.replay.room(moment)

        keeper = Keeper(
            [] if directory is None else [directory],
            config.checkpoint_every,
            self._stop,
            margin=config.num_envs,
            room=room,
        )
        keeper.begin(loop.step)

        def content() -> list[Saved]:
            arrays, state = loop.snapshot()
            return [Saved(arrays, {**state, "saved": self._saved})]

        def settled(loop: HostLoop) -> None:
            keeper.look(loop.step, loop.step == config.steps, content)

        rows = [] if directory is None else list(directory.rows)
        diverged, first = None, True
        while (loop.step < config.steps and not diverged) or first:
            first = False
            until = min(config.steps, (len(rows) + 1) * config.iteration_steps)
            diverged = loop.advance(until, self._watcher.tick, settled)
            row = iteration_row(loop, len(rows))
            rows.append(row)
            self._watcher.row(row)
            if directory is not None:
                directory.row(row)
                if loop.step - self._saved >= config.save_every:
                    directory.save(self._agent(loop))
                    self._saved = loop.step
            if evaluation_due(config, loop.step):
                assert self._make is not None
                played = evaluate_config(
                    self._agent(loop), config, self._make, self._stop, at=loop.step
                )
                self._watcher.evaluated(loop.step, played)
                if directory is not None:
                    directory.evaluation(loop.step, played)
        return end_run(
            config, directory, self._agent(loop), diverged, rows, loop, self._make, self._stop
        )


def end_run(
    config: Config,
    directory: RunDirectory | None,
    agent: Agent,
    diverged: int | None,
    rows: list[dict[str, Any]],
    loop: Loop,
    make_environment: Callable[[int], Environment] | None,
    stop: Stop,
) -> Result:
    """Saves and evaluates the agent of a run that has come to its end, and writes how it ended.

    ``diverged`` is the step at which it diverged, if it did.
    """
    if directory is not None:
        directory.save(agent)
    evaluation = None
    if config.evaluation_episodes and make_environment is not None:
        evaluation = evaluate_config(agent, config, make_environment, stop)
        if directory is not None:
            directory.write_json(EVALUATION, evaluation.to_json())
    status: Status = "diverged" if diverged else "finished"
    step = diverged or int(rows[-1]["step"])
    if directory is not None:
        directory.status(status, step, f"diverged at step {diverged}" if diverged else "")
    return Result(status, step, agent, rows, evaluation, loop)


def evaluation_due(config: Config, step: int) -> bool:
    """Whether a run is evaluated at this step, the end of an iteration.

    >>> config = Config("dqn", "CartPole-v1", iteration_steps=40, evaluate_every=100)
    >>> [step for step in range(40, 301, 40) if evaluation_due(config, step)]
    [120, 200]
    """
    before = (step - 1) // config.iteration_steps * config.iteration_steps
    return bool(config.evaluate_every) and (
        step // config.evaluate_every > before // config.evaluate_every
    )


def evaluate_config(
    agent: Agent,
    config: Config,
    make_environment: Callable[[int], Environment],
    stop: Stop = never,
    at: int | None = None,
) -> Evaluation:
    """The evaluation at the end of a run, or during it, at a step."""
    episodes = config.evaluation_episodes if at is None else config.evaluate_episodes

    def look(done: int) -> None:
        if (signal := stop()) is not None and done < episodes:
            raise Interrupted("interrupted in the evaluation", signal)

    with closing(make_environment(min(episodes, 10 if at is None else 20))) as environment:
        return evaluate(
            agent,
            environment,
            episodes,
            epsilon=config.evaluation_epsilon,
            seed=config.seed,
            at=at,
            tick=look,
        )


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
            **beta_of(loop.config, loop.step),
            "epsilon": loop.epsilon(),
            "updates": loop.updates,
            "syncs": loop.syncs,
            "stored": len(loop.replay),
        }
    )
