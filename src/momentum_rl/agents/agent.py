"""A trained agent and its file: parameters as safetensors, everything else as JSON inside.

    agent = momentum_rl.load("agent.safetensors")
    action = agent.act(observation)

Loading executes nothing that the file contains.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from momentum_rl.agents.learner import method_of, networks_of
from momentum_rl.agents.method import Greedy, Inputs, Method, Policy, inputs_of
from momentum_rl.agents.networks import NetworkSpec, make_network
from momentum_rl.agents.registry import declared, find, options_for, options_of
from momentum_rl.core.options import Options
from momentum_rl.core.values import NUMBER, ValueKind, from_json, to_json
from momentum_rl.errors import NoRoom, UserError, door
from momentum_rl.plumbing.compilation import shared
from momentum_rl.plumbing.files import file_to_write, write_aside, writing
from momentum_rl.plumbing.reading import as_json, checked, parsed, tensors
from momentum_rl.spaces import Box, Spaces
from momentum_rl.version import __version__

FORMAT = 3  # 1: all values are numbers; 2: a greedy policy; 3: the policy of a named algorithm
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
LARGEST_SPACE = 10**8
AGENT_FILE = "agent.safetensors"
BEST_FILE = "best.safetensors"  # of a run that is evaluated on its way: the highest evaluation's


@dataclass(frozen=True)
class Named:
    """An algorithm by its name and options: where an agent's policy comes from."""

    algorithm: str
    options: dict[str, Any] = field(default_factory=dict)


class Agent:
    """Networks with parameters, and the policy over them that is the result."""

    def __init__(
        self,
        networks: nn.Module | Mapping[str, nn.Module],
        params: Mapping[str, Any],
        spaces: Spaces,
        *,
        policy: Policy | None = None,
        acts_on: str = "q",
        kinds: Mapping[str, ValueKind] | None = None,
        spec: NetworkSpec | None = None,
        named: Named | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """An agent.

        Args:
          networks: the flax module of all its networks, or one for each by name.
          params: the parameters of each network, by its name.
          spaces: what it sees and does.
          policy: acts on the networks; by default greedy for the one that ``acts_on`` names.
          acts_on: the name of the network that acts.
          kinds: what the values of its networks are, by name; numbers if it is not named.
          spec: the networks' description, if they are this package's.
          named: the algorithm that the policy is of, if it is not the greedy one.
          about: what else its file should say (algorithm, env, step, config), of JSON's types.
        """
        self.networks: dict[str, nn.Module] = (
            dict(networks) if isinstance(networks, Mapping) else dict.fromkeys(params, networks)
        )
        self.params, self.spaces, self.kinds = dict(params), spaces, dict(kinds or {})
        self.acts_on, self.spec, self.about = acts_on, spec, dict(about or {})
        self.named = named
        self.policy = policy or Greedy(acts_on, self.kinds.get(acts_on, NUMBER))
        self._acting: tuple[Any, Any] | None = None

    def __repr__(self) -> str:
        weights = sum(np.size(leaf) for leaf in jax.tree.leaves(self.params))
        parts = [str(self.about[key]) for key in ("algorithm", "env") if key in self.about]
        step = self.about.get("step")
        parts += [f"step {step:,}"] if isinstance(step, int) else []
        evaluation = self.about.get("evaluation")
        mean = evaluation.get("mean") if isinstance(evaluation, dict) else None
        parts += [f"evaluated at {mean:.6g}"] if isinstance(mean, int | float) else []
        networks = f"networks {', '.join(sorted(self.params))} with {weights:,} weights"
        return f"Agent({', '.join([*parts, networks])}; acts by {self.acts_on})"

    def values(self, observation: Any, name: str | None = None) -> np.ndarray:
        """The expected action values [A] of one observation, or [n, A] of n of them."""
        self._check_values("values")
        single, batch = self._batch(observation)
        name = self.acts_on if name is None else name
        values_of = _values_of(self.networks[name], self.kinds.get(name, NUMBER))
        values = np.asarray(values_of(self.params[name], batch))
        return values[0] if single else values

    def distribution(self, observation: Any, name: str | None = None) -> np.ndarray:
        """The values as the network has them, [A, …] or [n, A, …]: probabilities, quantiles, …"""
        self._check_values("distribution")
        single, batch = self._batch(observation)
        name = self.acts_on if name is None else name
        outputs = self.networks[name].apply({"params": self.params[name]}, batch)
        values = np.asarray(self.kinds.get(name, NUMBER).read(outputs))
        return values[0] if single else values

    def actions(self, observation: Any, key: Any = None) -> np.ndarray:
        """The policy's action for one observation, or for n of them, as agents number actions.

        With a key, an integer or JAX's, actions of a policy that is random are drawn; without, its
        best ones are taken.
        """
        single, batch = self._batch(observation)
        if key is not None and not isinstance(key, jax.Array):
            key = jax.random.key(key)
        actions = np.asarray(self.acting(self.params, batch, key))
        return actions[0] if single else actions

    @property
    def acting(self) -> Any:
        """The policy, compiled: ``acting(params, observations, key)``, for compiled loops too."""
        parts = self.policy, tuple(self.networks.items())
        if self._acting is None or self._acting[0] != parts:
            self._acting = parts, _policy_of(*parts)
        return self._acting[1]

    def act(self, observation: Any, key: Any = None) -> Any:
        """The environment's own action for one observation, or for n of them (an array).

        A discrete action is an int. With a key, an integer or JAX's, it is drawn from a policy that
        is random; without, it is the best one, such as the mean.
        """
        actions = self.spaces.own(self.actions(observation, key))
        return actions if actions.ndim or isinstance(self.spaces.actions, Box) else int(actions)

    def _check_values(self, what: str) -> None:
        """Only discrete actions have a value each."""
        if isinstance(self.spaces.actions, Box):
            raise UserError(f"{what}: an agent with Box actions has none; expected act")

    def _batch(self, observation: Any) -> tuple[bool, np.ndarray]:
        space = self.spaces.observation
        array = space.checked(observation, "observation")
        if array.shape == space.shape:
            return True, array[None]
        if array.shape[1:] == space.shape and array.ndim == len(space.shape) + 1 and len(array):
            return False, array
        raise UserError(
            f"observation: shape {array.shape}, expected {space.shape} or (n, *{space.shape})"
        )


@shared
def _values_of(network: nn.Module, kind: ValueKind) -> Any:
    """The network's expected values, compiled."""
    return jax.jit(
        lambda params, x: kind.expectation(kind.read(network.apply({"params": params}, x)))
    )


@shared
def _policy_of(policy: Policy, networks: tuple[tuple[str, nn.Module], ...]) -> Any:
    """The policy's actions, compiled."""
    modules = dict(networks)
    return jax.jit(lambda params, x, key: policy(networks_of(modules, params, params, {}), x, key))


def save(agent: Agent, path: str | Path) -> None:
    """Writes the agent's file: complete, or not at all."""
    file = file_to_write(path, "file")
    with writing(file):
        write_aside(file, encoded(agent))


def encoded(agent: Agent) -> bytes:
    """The bytes of the agent's file."""
    from safetensors.numpy import save as to_bytes

    arrays = {
        key: np.asarray(leaf) for key, leaf in flatten_dict(dict(agent.params), sep="/").items()
    }
    header = {
        "format": 3 if agent.named is not None else 2 if agent.kinds else 1,
        "version": __version__,
        "acts_on": agent.acts_on,
        "network": None if agent.spec is None else asdict(agent.spec),
        "spaces": agent.spaces.to_json(),
        "kinds": {name: to_json(kind) for name, kind in agent.kinds.items()},
        **({} if agent.named is None else {"named": asdict(agent.named)}),
        "about": agent.about,
    }
    return to_bytes(arrays, metadata={"movi": as_json(header, sort_keys=True)})


@door
def load(
    path: str | Path,
    network: nn.Module | Mapping[str, nn.Module] | None = None,
    *,
    algorithm: type[Options] | None = None,
    trust: Collection[str] = (),
    best: bool = False,
) -> Agent:
    """The agent of a file, or of a run directory.

    Args:
      path: an agent's file, or a run directory that holds one.
      network: the flax module, needed when the agent was trained with one of your own; or one for
        each network, by name.
      algorithm: the dataclass of its options, needed when the agent acts by a policy of your own
        and its algorithm is not registered.
      trust: modules that the file's algorithm may name (MODULE:NAME): importing one runs its code.
      best: of a run directory, the agent with the highest evaluation during the run instead of the
        last one.
    """
    file = _file(Path(path), best)
    if not file.is_file():
        raise UserError(f"{file}: no such file, expected an agent's file or a run directory")
    header, params = _read(file)
    spaces, spec = header.spaces, header.network
    if network is None and spec is None:
        raise UserError(f"{file}: trained with a network of your own: load(FILE, network=…)")
    method = None if header.named is None else _method(file, header.named, algorithm, trust)
    try:
        kinds = {name: from_json(data, f"kinds: {name}") for name, data in header.kinds.items()}
        if network is None:
            assert spec is not None
            if method is not None:
                network = method.build(spec, spaces)
            else:
                network = {n: make_network(spec, spaces, kinds.get(n, NUMBER)) for n in params}
        networks = network if isinstance(network, Mapping) else dict.fromkeys(params, network)
        inputs = inputs_of({} if method is None else method.inputs, params, spaces)
        _check_parameters(file, networks, params, inputs)
    except UserError:
        raise
    except Exception as error:  # whatever flax and JAX say to a description that makes no sense
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{file}: its network cannot be built: {reason}") from None
    return Agent(
        networks,
        params,
        spaces,
        policy=None if method is None else method.policy,
        acts_on=header.acts_on,
        kinds=kinds,
        spec=spec,
        named=header.named,
        about=header.about,
    )


def _file(path: Path, best: bool) -> Path:
    """The file of a run directory's last or best agent; the path itself, if it is no directory."""
    if not best:
        return path / AGENT_FILE if path.is_dir() else path
    if path.exists() and not path.is_dir():
        raise UserError(f"best: {path} is an agent's file, expected a run directory")
    if path.is_dir() and not (path / BEST_FILE).is_file():
        raise UserError(
            f"{path}: no {BEST_FILE}, expected a run with evaluations on its way (--evaluate-every)"
        )
    return path / BEST_FILE


def _method(
    file: Path, named: Named, algorithm: type[Options] | None, trust: Collection[str]
) -> Method:
    """The method whose policy an agent acts by: of a registered algorithm, or of a given one."""
    try:
        if algorithm is None:
            find(named.algorithm, trust)
            options = options_of(named.algorithm, named.options)
        else:
            given: Any = algorithm
            options = options_for(declared(given), named.algorithm, named.options)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    return method_of(options, "squared", None)


@dataclass(frozen=True)
class _Header:
    """The description in an agent's file."""

    format: int
    acts_on: str
    spaces: Spaces
    about: dict[str, Any]
    network: NetworkSpec | None
    kinds: dict[str, dict[str, Any]] = field(default_factory=dict)
    named: Named | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.format <= FORMAT:
            raise UserError(f"format {self.format}, this version of movi reads up to {FORMAT}")
        seen = self.spaces.observation
        if seen.dtype not in DTYPES:
            raise UserError(f"dtype: {seen.dtype!r}, expected one of {', '.join(DTYPES)}")
        categories = 1 if seen.categories is None else seen.categories
        actions = self.spaces.actions
        count = actions.size if isinstance(actions, Box) else actions
        sizes = (*seen.shape, count, categories)
        if min(sizes) < 1 or math.prod(sizes) > LARGEST_SPACE:
            raise UserError(
                f"spaces: {sizes}, expected sizes of at least 1 and {LARGEST_SPACE:,} in all"
            )


def _read(file: Path) -> tuple[_Header, dict[str, Any]]:
    """The description and the parameters, by network and name."""
    try:
        texts, arrays = tensors(file)
        data = parsed(texts.get("movi", ""), str(file))
    except NoRoom:
        raise
    except UserError:
        raise UserError(f"{file}: not an agent's file (damaged, or of another program)") from None
    header: _Header = checked(data, _Header, str(file))
    names = {name.partition("/")[0] for name in arrays}
    if header.acts_on not in names or names & set(arrays):
        raise UserError(
            f"{file}: parameters of {', '.join(sorted(names)) or 'nothing'}, "
            f"expected those of {header.acts_on!r}"
        )
    return header, unflatten_dict(arrays, sep="/")


def _check_parameters(
    file: Path, networks: Mapping[str, Any], params: Mapping[str, Any], inputs: Inputs
) -> None:
    if set(networks) != set(params):
        read, wanted = (", ".join(sorted(names)) for names in (params, networks))
        raise UserError(f"{file}: parameters of {read}, expected those of {wanted}")
    for name, tree in params.items():
        expected = jax.eval_shape(networks[name].init, jax.random.key(0), *inputs[name])["params"]
        forms = [jax.tree.map(lambda x: (x.shape, x.dtype), of) for of in (tree, expected)]
        if forms[0] != forms[1]:
            raise UserError(f"{file}: the parameters of {name!r} do not fit its network")
        if not all(np.isfinite(array).all() for array in jax.tree.leaves(tree)):
            raise UserError(f"{file}: the parameters of {name!r} are not finite")
