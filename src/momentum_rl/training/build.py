"""The objects of a run, made from its config in one place; here it is decided which loop it has."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import optax

from momentum_rl.agents.agent import Agent, Named
from momentum_rl.agents.learner import (
    Learner,
    OptimiserName,
    fingerprint,
    make_learner,
    make_optimiser,
    method_of,
)
from momentum_rl.agents.method import Greedy, Loss, Method
from momentum_rl.agents.networks import NetworkSpec, choose_network
from momentum_rl.agents.registry import find, options_of, register
from momentum_rl.core.options import Options, Unknown, default_kappa
from momentum_rl.core.schedules import Schedule
from momentum_rl.core.targets import Algorithm
from momentum_rl.envs.atari import AtariVector
from momentum_rl.envs.gymnax_env import make_gymnax
from momentum_rl.envs.jax_env import HostedEnvironment, JaxEnvironment
from momentum_rl.envs.make import MOST
from momentum_rl.envs.make import make_environment as make_by_id
from momentum_rl.errors import UserError, check_count
from momentum_rl.plumbing.compilation import shared
from momentum_rl.plumbing.sizes import readable, require
from momentum_rl.replay import device, frames, uniform
from momentum_rl.replay.frames import FrameReplay
from momentum_rl.replay.uniform import UniformReplay, require_space, slack_of
from momentum_rl.runs.config import Config
from momentum_rl.spaces import (
    Box,
    Environment,
    Replay,
    Spaces,
    is_gymnax,
    is_restorable,
)
from momentum_rl.training.fused_loop import FusedLoop
from momentum_rl.training.host_loop import HostLoop
from momentum_rl.training.run_directory import REPLAY

Networks = nn.Module | Mapping[str, nn.Module]
Loop = HostLoop | FusedLoop


@dataclass(frozen=True)
class Overrides:
    """What a program gives in place of what a config means; see ``training.train.train``."""

    environment: Environment | JaxEnvironment | None = None
    make_environment: Callable[[int], Environment] | None = None
    network: Networks | None = None
    optimiser: optax.GradientTransformation | None = None
    trust: Collection[str] = ()
    algorithm: Algorithm | type[Options] | None = None

    @property
    def learner(self) -> bool:
        """Whether the config alone does not describe the learner."""
        return (self.network, self.optimiser, self.algorithm) != (None, None, None)

    def is_fused(self, config: Config) -> bool:
        """Whether a run is compiled end to end: a JAX-native environment, and nothing hosted."""
        hosted = self.make_environment is not None
        if isinstance(self.environment, JaxEnvironment) and hosted:
            raise UserError("make_environment: not with a JaxEnvironment; it's compiled")
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
        trained = algorithm.name if isinstance(algorithm, Algorithm) else name
        register(trained, algorithm)
        if trained != name and not isinstance(given, Unknown):
            usual = type(given)().to_json()
            given = Unknown.of({k: v for k, v in given.to_json().items() if v != usual[k]})
        name = trained
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

    @cached_property
    def fingerprint(self) -> str:
        """The learner's fingerprint on these spaces."""
        return fingerprint(self.learner, self.spaces)

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
        # A greedy policy needs no algorithm to be named.
        greedy = isinstance(self.method.policy, Greedy)
        named = None if greedy else Named(config.algorithm, config.options.to_json())
        return Agent(
            self.networks,
            parameters,
            self.spaces,
            policy=self.method.policy,
            acts_on=self.method.acts_on,
            kinds=self.method.kinds,
            spec=self.spec,
            named=named,
            about=about,
        )


def configured_learner(
    config: Config,
    spaces: Spaces,
    network: Networks | None = None,
    optimiser: optax.GradientTransformation | None = None,
) -> ConfiguredLearner:
    """What a config trains on these spaces, with a network or an optimiser of one's own.

    Configs that differ only in what no learner depends on share one object.
    """
    method = method_of(config.options, config.loss, None)
    check_actions(config, method, spaces)
    if config.average and not isinstance(method.policy, Greedy):
        raise UserError(
            f"average: {config.average}, but {config.algorithm} does not act greedily by values; "
            "expected 0"
        )
    settings = _Settings(
        config.algorithm,
        config.options,
        config.loss,
        config.reward_clip if config.n_step == 1 else None,  # else the replay clips
        network_spec(config, spaces) if network is None else None,
        (config.optimiser, config.learning_rate, config.optimiser_epsilon),
        config.beta_of,
    )
    given = tuple(network.items()) if isinstance(network, Mapping) else network
    return _configured(settings, spaces, given, optimiser)


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
    given: nn.Module | tuple[tuple[str, nn.Module], ...] | None,
    optimiser: optax.GradientTransformation | None,
) -> ConfiguredLearner:
    method = method_of(settings.options, settings.loss, settings.reward_clip)
    network: Networks | None = dict(given) if isinstance(given, tuple) else given
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
        optimiser or {name: make_optimiser(named, rate, epsilon) for name, rate in rates.items()},
        spaces,
        beta=settings.beta,
        rates=rates if optimiser is None else None,
    )
    return ConfiguredLearner(method, networks, settings.spec, spaces, learner)


def check_actions(config: Config, method: Method, spaces: Spaces) -> None:
    """Raises unless the environment has actions that the algorithm takes."""
    actions = "box" if isinstance(spaces.actions, Box) else "discrete"
    if actions != method.actions:
        raise UserError(
            f"env: {config.env} has {actions.title()} actions, but {config.algorithm} acts by "
            f"{method.actions.title()} ones; for {actions.title()} ones there are "
            f"{'sac and momentum-sac' if actions == 'box' else 'dqn, momentum-dqn and others'}"
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


@dataclass(frozen=True)
class Built:
    """Everything that a run needs."""

    config: Config
    loop: Loop
    what: ConfiguredLearner
    make_environment: Callable[[int], Environment] | None
    """Makes n environments, for evaluations; None for none."""

    def agent(self, step: int) -> Agent:
        """The agent at a step."""
        return self.what.agent(self.config, self.loop.parameters(), step)


@contextmanager
def built(
    config: Config, run: Path | None, overrides: Overrides, announce: Callable[[str], None]
) -> Iterator[Built]:
    """Everything for a run in this directory, None if nothing is written; closed at the end."""
    check_learns(config)
    files = run / REPLAY if run is not None and config.checkpoint_every else None
    if overrides.is_fused(config):
        yield _fused(config, files, overrides, announce)
        return
    environment = overrides.environment
    make = overrides.make_environment
    if make is None and environment is None:
        make = lambda n: make_by_id(config.env, n, trust=overrides.trust)  # noqa: E731
    if environment is None:
        assert make is not None
        environment = make(config.num_envs)
    assert not isinstance(environment, JaxEnvironment)
    with closing(environment):
        yield _hosted(config, files, overrides, announce, environment, make)


def _hosted(
    config: Config,
    files: Path | None,
    overrides: Overrides,
    announce: Callable[[str], None],
    environment: Environment,
    make_environment: Callable[[int], Environment] | None,
) -> Built:
    if config.evaluate_every and make_environment is None:
        raise UserError("evaluate_every: with an environment of your own, give make_environment")
    if environment.num_envs != config.num_envs:
        raise UserError(
            f"num_envs: {config.num_envs}, but the environment has {environment.num_envs}"
        )
    spaces = environment.spaces
    if files is not None and not is_restorable(environment):
        raise UserError(
            "environment: cannot be restored in mid-episode; expected one with snapshot and "
            "restore, or set checkpoint_every to 0 to train without checkpoints"
        )
    what = configured_learner(config, spaces, overrides.network, overrides.optimiser)
    check_batch(config, what)
    kind: Any = FrameReplay if isinstance(environment, AtariVector) else UniformReplay
    size = bytes_on_host(config, spaces, files is not None, kind is FrameReplay)
    require_space(config.replay_size, size, files)
    _announce(config, size, announce)

    def make_replay(snapshot: Mapping[str, Any] | None) -> Replay:
        """A new one, or that of the files that are there and have this snapshot."""
        replay: Replay = kind(
            config.replay_capacity,
            spaces.observation,
            slack=_slack(config, files is not None, snapshot),
            horizon=config.horizon,
            action=spaces.action,
            directory=files,
            new=snapshot is None,
            run=config.identity,
        )
        return replay

    loop = HostLoop(config, environment, what.learner, make_replay)
    return Built(config, loop, what, make_environment)


def _fused(
    config: Config, files: Path | None, overrides: Overrides, announce: Callable[[str], None]
) -> Built:
    check_count("num_envs", config.num_envs, most=MOST)
    environment = overrides.environment or make_gymnax(config.env)
    assert isinstance(environment, JaxEnvironment)
    spaces = environment.spaces
    what = configured_learner(config, spaces, overrides.network, overrides.optimiser)
    check_batch(config, what)
    size = bytes_on_device(config, spaces)
    require_space(config.replay_size, size, None)
    if files is not None:
        require_space(config.replay_capacity, _bytes_of_copy(config, spaces), files)
    _announce(config, size, announce)
    loop = FusedLoop(config, environment, what.learner, files)

    @cache  # compiled once, for all evaluations of a run
    def hosted(n: int) -> HostedEnvironment:
        return HostedEnvironment(environment, n)

    return Built(config, loop, what, hosted)


def _announce(config: Config, size: int, announce: Callable[[str], None]) -> None:
    """The first lines of a run that fits: κ where it follows the steps, and its replay."""
    if config.kappa_follows:
        kappa = default_kappa(config.steps)
        announce(f"kappa: {kappa:,}, a twentieth of the {config.steps:,} steps")
    announce(f"replay of {config.replay_size:,} transitions: {readable(size)}")


# What a run takes --------------------------------------------------------------------------------


def _slack(config: Config, in_files: bool, snapshot: Mapping[str, Any] | None = None) -> int:
    interval = config.checkpoint_every if in_files else 0
    return slack_of(config.replay_capacity, interval, config.stored, snapshot)


def bytes_on_host(config: Config, spaces: Spaces, in_files: bool, atari: bool) -> int:
    """The host loop's replay: of single frames for Atari, else of whole transitions."""
    return (frames if atari else uniform).bytes_of(
        config.replay_capacity,
        spaces.observation,
        _slack(config, in_files),
        mapped=in_files,
        action=spaces.action,
    )


def bytes_on_device(config: Config, spaces: Spaces) -> int:
    """A fused run's replay."""
    return config.replay_size * device.bytes_per_transition(spaces.observation, spaces.action)


def _bytes_of_copy(config: Config, spaces: Spaces) -> int:
    """The files of a fused run's replay, which store nothing more for n steps."""
    row, slack = device.packed_space(spaces.observation), _slack(config, True)
    return uniform.bytes_of(config.replay_capacity, row, slack, mapped=True, action=spaces.action)
