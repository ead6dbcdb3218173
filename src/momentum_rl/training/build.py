"""The objects of a run, made from its config in one place; here it is decided which loop it has."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import optax

from momentum_rl.agents.agent import Agent, Named
from momentum_rl.agents.learner import Learner, fingerprint, make_learner
from momentum_rl.agents.method import Greedy, Loss, Method
from momentum_rl.agents.networks import NetworkSpec, choose_network
from momentum_rl.agents.optimisers import OptimiserName, make_optimiser
from momentum_rl.agents.options import Options, Unknown
from momentum_rl.agents.registry import find, options_of, register
from momentum_rl.core.schedules import Constant, Schedule
from momentum_rl.core.targets import Algorithm
from momentum_rl.envs.gymnax_env import is_gymnax, make_gymnax
from momentum_rl.envs.interface import Environment
from momentum_rl.envs.jax_env import HostedEnvironment, JaxEnvironment
from momentum_rl.envs.make import MOST
from momentum_rl.envs.make import make_environment as make_by_id
from momentum_rl.errors import UserError, check_count
from momentum_rl.plumbing.compilation import shared
from momentum_rl.plumbing.sizes import require
from momentum_rl.replay import device, uniform
from momentum_rl.replay.interface import Replay
from momentum_rl.replay.ring import require_space
from momentum_rl.runs.config import Config
from momentum_rl.spaces import Box, Spaces
from momentum_rl.training.averages import check_average
from momentum_rl.training.drive import Built
from momentum_rl.training.fused_loop import FusedLoop
from momentum_rl.training.host_loop import HostLoop
from momentum_rl.training.loop import Watcher
from momentum_rl.training.replays import (
    announce,
    check_keepable,
    check_replay,
    new_replay,
    slack_for,
)
from momentum_rl.training.run_directory import REPLAY
from momentum_rl.transitions import ONE_STEP

Networks = nn.Module | Mapping[str, nn.Module]


@dataclass(frozen=True)
class Overrides:
    """What a program gives in place of what a config means; see ``training.train.train``."""

    environment: Environment | JaxEnvironment | None = None
    make_environment: Callable[[int], Environment] | None = None
    network: Networks | None = None
    optimiser: optax.GradientTransformation | None = None
    replay: Replay | None = None
    trust: Collection[str] = ()
    algorithm: Algorithm | type[Options] | None = None

    @property
    def learner(self) -> bool:
        """Whether the config alone does not describe the learner."""
        return (self.network, self.optimiser, self.algorithm) != (None, None, None)

    def is_fused(self, config: Config) -> bool:
        """Whether a run is compiled end to end: a JAX-native environment, and nothing hosted."""
        hosted = self.make_environment is not None or self.replay is not None
        if isinstance(self.environment, JaxEnvironment) and hosted:
            raise UserError("make_environment, replay: not with a JaxEnvironment; it's compiled")
        jax_native = is_gymnax(config.env) and self.environment is None and not hosted
        return jax_native or isinstance(self.environment, JaxEnvironment)


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
        if own != name and not isinstance(given, Unknown):
            usual = type(given)().to_json()
            given = Unknown.of({k: v for k, v in given.to_json().items() if v != usual[k]})
        name = own
    find(name, trust)
    return replace(config, algorithm=name, options=options_of(name, given))


# Learners ----------------------------------------------------------------------------------------


def network_spec(config: Config, spaces: Spaces) -> NetworkSpec:
    """The network that a config means for these spaces."""
    kind = choose_network(spaces.observation) if config.network == "auto" else config.network
    return NetworkSpec(kind, tuple(config.hidden), config.padding)


@dataclass(frozen=True)
class ConfiguredLearner:
    """What a config trains: a method, its networks and the learner of both."""

    method: Method
    networks: Mapping[str, nn.Module]
    spec: NetworkSpec | None
    spaces: Spaces
    learner: Learner = field(repr=False)

    def agent(self, config: Config, parameters: dict[str, Any], step: int) -> Agent:
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
            self.networks,
            parameters,
            self.spaces,
            policy=self.method.policy,
            acts_on=self.method.acts_on,
            kinds=self.method.kinds,
            spec=self.spec,
            named=self._named(config),
            about=about,
        )

    def _named(self, config: Config) -> Named | None:
        """The algorithm that an agent's file has to name; a greedy policy needs none."""
        if isinstance(self.method.policy, Greedy):
            return None
        return Named(config.algorithm, config.options.to_json())


def configured_learner(
    config: Config,
    spaces: Spaces,
    network: Networks | None = None,
    optimiser: optax.GradientTransformation | None = None,
) -> ConfiguredLearner:
    """What a config trains on these spaces, with a network or an optimiser of one's own.

    Configs that differ only in what no learner depends on share one object.
    """
    method = config.options.method(config.loss, None)
    check_actions(config, method, spaces)
    check_average(config, method.policy)
    settings = _Settings(
        config.algorithm,
        config.options,
        config.loss,
        config.reward_clip if config.n_step == 1 else None,  # else the replay clips
        network_spec(config, spaces) if network is None else None,
        (config.optimiser, config.learning_rate, config.optimiser_epsilon),
        config.beta_of,
    )
    own = tuple(network.items()) if isinstance(network, Mapping) else network
    return _configured(settings, spaces, own, optimiser)


class _Settings(NamedTuple):
    """All of a config that a learner depends on."""

    algorithm: str
    options: Options
    loss: Loss
    reward_clip: float | None
    spec: NetworkSpec | None
    optimiser: tuple[OptimiserName, float, float]
    beta: Schedule | None


@shared
def _configured(
    settings: _Settings,
    spaces: Spaces,
    own: nn.Module | tuple[tuple[str, nn.Module], ...] | None,
    optimiser: optax.GradientTransformation | None,
) -> ConfiguredLearner:
    method = settings.options.method(settings.loss, settings.reward_clip)
    network: Networks | None = dict(own) if isinstance(own, tuple) else own
    if settings.spec is not None:
        network = method.build(settings.spec, spaces)
    assert network is not None
    networks = network if isinstance(network, Mapping) else dict.fromkeys(method.networks, network)
    if set(networks) != set(method.networks):
        wanted = ", ".join(method.networks)
        raise UserError(f"network: of {', '.join(networks)}, expected one for each of {wanted}")
    if method.uses_beta and settings.beta is None:
        raise UserError(
            f"algorithm: {settings.algorithm} depends on β, but its options have none; expected a "
            "dataclass of momentum_rl.Averaging"
        )
    rates = {name: method.rates.get(name, settings.optimiser[1]) for name in method.networks}
    named, _, epsilon = settings.optimiser
    learner = make_learner(
        method,
        networks,
        optimiser or {name: make_optimiser(named, own, epsilon) for name, own in rates.items()},
        spaces,
        beta=settings.beta or Constant(0.0),
        rates=rates if optimiser is None else None,
    )
    return ConfiguredLearner(method, networks, settings.spec, spaces, learner)


def check_actions(config: Config, method: Method, spaces: Spaces) -> None:
    """Raises unless the environment has actions that the algorithm takes."""
    found, wanted = "box" if isinstance(spaces.actions, Box) else "discrete", method.actions
    if found != wanted:
        raise UserError(
            f"env: {config.env} has {found.title()} actions, but {config.algorithm} acts by "
            f"{wanted.title()} ones; for {found.title()} ones there are "
            f"{'sac and momentum-sac' if found == 'box' else 'dqn, momentum-dqn and others'}"
        )


def check_learns(config: Config) -> None:
    """Raises if a run would end before its first update."""
    first = (config.learns_after // config.update_period + 1) * config.update_period
    if config.steps < first:
        raise UserError(
            f"steps: {config.steps}, expected at least {first}: with learning_starts "
            f"{config.learning_starts} nothing would be learned"
        )


def check_batch(config: Config, what: ConfiguredLearner) -> None:
    """Raises at once if a minibatch cannot fit: both observations of each transition, as floats.

    A target on n atoms or quantiles is computed by n × n numbers.
    """
    each = 8 * math.prod(what.spaces.observation.shape) + 64
    each += sum(8 * math.prod(kind.shape) ** 2 for kind in what.method.kinds.values())
    require(f"minibatch of {config.batch_size:,}", memory=config.batch_size * each)


# Runs --------------------------------------------------------------------------------------------


@contextmanager
def built(
    configs: Sequence[Config],
    runs: Sequence[Path],
    overrides: Overrides,
    watcher: Watcher,
    *,
    vectorised: bool,
) -> Iterator[Built]:
    """Everything for runs that differ in their seeds alone; closed at the end.

    Args:
      configs: one for each seed; the host loop has one.
      runs: their directories; empty if nothing is written.
      overrides: what a program gives.
      watcher: hears how large the replay will be.
      vectorised: map the seeds of the fused loop inside one program.
    """
    check_learns(configs[0])
    if overrides.is_fused(configs[0]):
        yield _fused(configs, runs, overrides, watcher, vectorised)
        return
    environment = overrides.environment
    make = overrides.make_environment
    if make is None and environment is None:
        make = lambda n: make_by_id(configs[0].env, n, trust=overrides.trust)  # noqa: E731
    if environment is None:
        assert make is not None
        environment = make(configs[0].num_envs)
    assert not isinstance(environment, JaxEnvironment)
    with closing(environment):
        yield _hosted(configs[0], runs[0] if runs else None, overrides, watcher, environment, make)


def _hosted(
    config: Config,
    run: Path | None,
    overrides: Overrides,
    watcher: Watcher,
    environment: Environment,
    make_environment: Callable[[int], Environment] | None,
) -> Built:
    if config.evaluate_every and make_environment is None:
        raise UserError("evaluate_every: with an environment of your own, give make_environment")
    if environment.num_envs != config.num_envs:
        raise UserError(
            f"num_envs: {config.num_envs}, but the environment has {environment.num_envs}"
        )
    files = run / REPLAY if run is not None and config.checkpoint_every else None
    if files is not None:
        check_keepable(environment, overrides.replay)
    if (
        overrides.replay is not None
        and getattr(overrides.replay, "horizon", ONE_STEP) != config.horizon
    ):
        raise UserError(f"replay: expected one with the config's horizon, {config.horizon}")
    what = configured_learner(config, environment.spaces, overrides.network, overrides.optimiser)
    check_batch(config, what)
    if overrides.replay is None:
        check_replay(config, environment, files, watcher)

    def make_replay(snapshot: Mapping[str, Any] | None) -> Replay:
        if overrides.replay is not None:
            return overrides.replay
        return new_replay(config, environment, files, snapshot)

    loop = HostLoop(config, environment, what.learner, make_replay)
    return Built(
        [config],
        loop,
        lambda i, step: what.agent(config, loop.parameters(i), step),
        make_environment,
        fingerprint(what.learner, environment.spaces) if run is not None else "",
        what.method.values_are_returns,
    )


def _fused(
    configs: Sequence[Config],
    runs: Sequence[Path],
    overrides: Overrides,
    watcher: Watcher,
    vectorised: bool,
) -> Built:
    config, seeds = configs[0], [one.seed for one in configs]
    check_count("num_envs", config.num_envs, most=MOST)
    environment = overrides.environment or make_gymnax(config.env)
    assert isinstance(environment, JaxEnvironment)
    spaces = environment.spaces
    what = configured_learner(config, spaces, overrides.network, overrides.optimiser)
    check_batch(config, what)
    held = config.replay_size
    size = len(seeds) * held * device.bytes_per_transition(spaces.observation, spaces.action)
    each = f" for each of {len(seeds)} seeds" if len(seeds) > 1 else ""
    replay = f"replay of {held:,} transitions{each}"
    require(replay, memory=size)
    files = [run / REPLAY for run in runs if config.checkpoint_every]
    if files:
        slots = len(seeds) * config.replay_capacity, len(seeds) * slack_for(config, True)
        row, action = device.packed_space(spaces.observation), spaces.action
        on_disk = uniform.bytes_of(slots[0], row, slots[1], mapped=True, action=action)
        require_space(slots[0], on_disk, files[0])
    announce(configs[0], replay, size, watcher)
    loop = FusedLoop(config, environment, what.learner, seeds, files, vectorised=vectorised)

    @cache  # compiled once, for all evaluations of a run
    def hosted(n: int) -> HostedEnvironment:
        return HostedEnvironment(environment, n)

    return Built(
        configs,
        loop,
        lambda i, step: what.agent(configs[i], loop.parameters(i), step),
        hosted,
        fingerprint(what.learner, spaces) if runs else "",
        what.method.values_are_returns,
    )
