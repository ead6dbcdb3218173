"""A trained agent and its file: parameters as safetensors, everything else as JSON inside.

    agent = movi.load("agent.safetensors")
    action = agent.act(observation)

Loading executes nothing that the file contains.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from movi.agents.networks import NetworkSpec, make_network
from movi.errors import UserError
from movi.files import write_aside
from movi.spaces import Spaces
from movi.version import __version__

FORMAT = 1
AGENT_FILE = "agent.safetensors"


class Agent:
    """Networks with parameters, and the one of them whose greedy policy is the result."""

    def __init__(
        self,
        network: nn.Module,
        params: Mapping[str, Any],
        spaces: Spaces,
        *,
        acts_on: str = "q",
        spec: NetworkSpec | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """An agent.

        Args:
          network: the flax module of all its networks.
          params: the parameters of each network, by its name.
          spaces: what it sees and does.
          acts_on: the name of the network that acts.
          spec: the network's description, if it is one of this package's.
          about: what else its file should say (algorithm, env, step, config), of JSON's types.
        """
        self.network, self.params, self.spaces = network, dict(params), spaces
        self.acts_on, self.spec, self.about = acts_on, spec, dict(about or {})
        self._values = _values_of(network)

    def values(self, observation: Any, name: str | None = None) -> np.ndarray:
        """The action values [A] of one observation, or [n, A] of n of them."""
        single, batch = self._batch(observation)
        params = self.params[self.acts_on if name is None else name]
        values = np.asarray(self._values(params, batch))
        return values[0] if single else values

    def act(self, observation: Any) -> Any:
        """The greedy action of one observation (an int), or of n of them (an array)."""
        actions = np.argmax(self.values(observation), axis=-1) + self.spaces.first_action
        return int(actions) if actions.ndim == 0 else actions

    def _batch(self, observation: Any) -> tuple[bool, np.ndarray]:
        space = self.spaces.observation
        array = np.asarray(observation)
        if array.shape == space.shape:
            return True, array.astype(space.dtype, copy=False)[None]
        if array.shape[1:] == space.shape and array.ndim == len(space.shape) + 1:
            return False, array.astype(space.dtype, copy=False)
        raise UserError(
            f"observation: shape {array.shape}, expected {space.shape} or (n, *{space.shape})"
        )


def _values_of(network: nn.Module) -> Any:
    """The network's values, compiled once for equal networks."""
    try:
        return _compiled(network)
    except TypeError:  # a module of the user's that cannot be hashed
        return _compiled.__wrapped__(network)


@lru_cache(maxsize=16)
def _compiled(network: nn.Module) -> Any:
    return jax.jit(lambda params, x: network.apply({"params": params}, x))


def save(agent: Agent, path: str | Path) -> None:
    """Writes the agent's file: complete, or not at all."""
    from safetensors.numpy import save as to_bytes

    tensors = {
        key: np.asarray(leaf) for key, leaf in flatten_dict(dict(agent.params), sep="/").items()
    }
    header = {
        "format": FORMAT,
        "version": __version__,
        "acts_on": agent.acts_on,
        "network": None if agent.spec is None else asdict(agent.spec),
        "spaces": agent.spaces.to_json(),
        "about": agent.about,
    }
    write_aside(
        Path(path), to_bytes(tensors, metadata={"movi": json.dumps(header, sort_keys=True)})
    )


def load(path: str | Path, network: nn.Module | None = None) -> Agent:
    """The agent of a file, or of a run directory.

    Args:
      path: an agent's file, or a run directory that holds one.
      network: the flax module, needed when the agent was trained with one of your own.
    """
    file = Path(path) / AGENT_FILE if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise UserError(f"{file}: no such file, expected an agent's file or a run directory")
    header, params = _read(file)
    try:
        spaces = Spaces.from_json(header["spaces"])
        spec = None
        if header["network"] is not None:
            data = dict(header["network"])
            spec = NetworkSpec(**{**data, "hidden": tuple(data["hidden"])})
        acts_on, about = str(header["acts_on"]), dict(header["about"])
        if acts_on not in params:
            raise KeyError(acts_on)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: not an agent's file (its description lacks {error})") from None
    if network is None and spec is None:
        raise UserError(f"{file}: trained with a network of your own: load(FILE, network=…)")
    try:
        if network is None:
            assert spec is not None
            network = make_network(spec, spaces)
        _check_parameters(file, network, params, spaces)
    except UserError:
        raise
    except Exception as error:  # whatever flax and JAX say to a description that makes no sense
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{file}: its network cannot be built: {reason}") from None
    return Agent(network, params, spaces, acts_on=acts_on, spec=spec, about=about)


def _read(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as content:
            header = json.loads((content.metadata() or {})["movi"])
            tensors = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118
        number = int(header["format"])
    except (SafetensorError, KeyError, TypeError, ValueError, OSError):
        raise UserError(f"{file}: not an agent's file (damaged, or of another program)") from None
    if number > FORMAT:
        raise UserError(f"{file}: format {number}, this version of movi reads up to {FORMAT}")
    return header, unflatten_dict(tensors, sep="/")


def _check_parameters(
    file: Path, network: nn.Module, params: Mapping[str, Any], spaces: Spaces
) -> None:
    expected = jax.eval_shape(
        network.init,
        jax.random.key(0),
        jax.ShapeDtypeStruct((1, *spaces.observation.shape), spaces.observation.dtype),
    )["params"]
    shapes = flatten_dict(jax.tree.map(lambda leaf: tuple(leaf.shape), expected), sep="/")
    for name, tree in params.items():
        found = {key: tuple(leaf.shape) for key, leaf in flatten_dict(tree, sep="/").items()}
        if found != shapes:
            raise UserError(f"{file}: the parameters of {name!r} do not fit its network")
