"""An agent's policy as an ONNX model, for programs without JAX or Python.

    observations [n, ...]  →  actions [n, ...], and of an agent that counts them values [n, A]

in the environment's own types: what ``momentum_rl.load(FILE).act`` gives, the mean action of SAC.
The graph is written node by node from the parameters: our networks have five kinds of layers.
"""

from pathlib import Path
from typing import Any

import flax.linen as nn
import numpy as np

from momentum_rl.agents.agent import Agent
from momentum_rl.agents.method import Greedy
from momentum_rl.agents.networks import MLP, ActionValues, MinAtar, Nature, channels_first
from momentum_rl.agents.soft_actor_critic import Actor, squashed
from momentum_rl.core.values import NUMBER, Categorical, ValueKind
from momentum_rl.errors import MissingExtra, UserError
from momentum_rl.plumbing.files import file_to_write, write_aside, writing
from momentum_rl.plumbing.reading import as_json
from momentum_rl.spaces import Box, ObservationSpace
from momentum_rl.version import __version__

OPSET, IR = 17, 8  # of 2022, which runtimes have long known


class Graph:
    """Nodes and constants of a graph that is being written; a value in it is known by its name."""

    def __init__(self, onnx: Any) -> None:
        """An empty one."""
        self.onnx, self.nodes, self.constants = onnx, list[Any](), list[Any]()

    def constant(self, array: Any, dtype: str = "float32") -> str:
        """An array."""
        name = f"constant_{len(self.constants)}"
        tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array, dtype), name)
        self.constants.append(tensor)
        return name

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """What an operation of ONNX makes of values."""
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def cast(self, x: str, dtype: str) -> str:
        """The value in another type."""
        return self.node("Cast", x, to=_type(self.onnx, dtype))

    def dense(self, x: str, layer: Any) -> str:
        """x W + b."""
        product = self.node("MatMul", x, self.constant(layer["kernel"]))
        return self.node("Add", product, self.constant(layer["bias"]))

    def flat(self, x: str) -> str:
        """[n, ...] as [n, …]."""
        return self.node("Flatten", x, axis=1)


def _type(onnx: Any, dtype: str) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def save_onnx(agent: Agent, path: str | Path) -> None:
    """Writes the model: complete, or not at all."""
    file = file_to_write(path, "file")
    model = encoded_onnx(agent)
    with writing(file):
        write_aside(file, model)


def encoded_onnx(agent: Agent) -> bytes:
    """The bytes of the model."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ModuleNotFoundError:
        raise MissingExtra("export to ONNX", "onnx") from None
    graph, space, actions = Graph(onnx), agent.spaces.observation, agent.spaces.actions
    info = onnx.helper.make_tensor_value_info
    seen = info("observations", _type(onnx, space.dtype), ["n", *space.shape])
    if isinstance(actions, Box):
        _mean_actions(graph, agent, actions)
        outputs = [info("actions", _type(onnx, "float32"), ["n", *actions.shape])]
    else:
        _greedy_actions(graph, agent)
        outputs = [
            info("actions", _type(onnx, "int64"), ["n"]),
            info("values", _type(onnx, "float32"), ["n", actions]),
        ]
    policy = onnx.helper.make_graph(graph.nodes, "policy", [seen], outputs, graph.constants)
    model = onnx.helper.make_model(
        policy,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR,
        producer_name="movi",
        producer_version=__version__,
    )
    about = as_json(agent.about, sort_keys=True)
    onnx.helper.set_model_props(model, {"acts_on": agent.acts_on, "about": about})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def _greedy_actions(graph: Graph, agent: Agent) -> None:
    """The outputs of an agent that is greedy for a network's expected values."""
    name = agent.acts_on
    network = agent.networks[name]
    if not isinstance(agent.policy, Greedy) or not isinstance(network, ActionValues):
        raise _unknown(network)
    params = agent.params[name]
    features = _features(graph, network.torso, params.get("torso", {}), network.space)
    outputs = graph.dense(features, params["Dense_0"])
    if network.shape:
        shape = graph.constant([-1, network.actions, *network.shape], "int64")
        outputs = graph.node("Reshape", outputs, shape)
    values = _expectation(graph, agent.kinds.get(name, NUMBER), outputs)
    values = graph.node("Identity", values, output="values")
    best = graph.node("ArgMax", values, axis=-1, keepdims=0)
    first = graph.constant(agent.spaces.first_action, "int64")
    graph.node("Add", best, first, output="actions")


def _expectation(graph: Graph, kind: ValueKind, outputs: str) -> str:
    """Expected values [n, A] of a network's outputs [n, A, …]."""
    if kind == NUMBER:
        return outputs
    if isinstance(kind, Categorical):
        probabilities = graph.node("Softmax", outputs, axis=-1)
        return graph.node("MatMul", probabilities, graph.constant(kind.atoms))
    return graph.node("ReduceMean", outputs, axes=[-1], keepdims=0)


def _mean_actions(graph: Graph, agent: Agent, box: Box) -> None:
    """The output of SAC's actor: tanh of the mean, rescaled to the environment's bounds."""
    actor = agent.networks[agent.acts_on]
    if agent.policy is not squashed or not isinstance(actor, Actor):
        raise _unknown(actor)
    params = agent.params[agent.acts_on]
    x = _mlp(
        graph, graph.flat(_encoded(graph, actor.space)), params.get("MLP_0", {}), len(actor.hidden)
    )
    mean = graph.node("Tanh", graph.dense(x, params["mean"]))
    one, half = graph.constant(1.0), graph.constant(0.5)
    share = graph.node("Mul", graph.node("Add", mean, one), half)
    rest = graph.node("Sub", one, share)
    low, high = graph.constant(box.low), graph.constant(box.high)
    action = graph.node("Add", graph.node("Mul", rest, low), graph.node("Mul", share, high))
    action = graph.node("Min", graph.node("Max", action, low), high)
    shape = graph.constant([-1, *box.shape], "int64")
    graph.node("Reshape", action, shape, output="actions")


def _encoded(graph: Graph, space: ObservationSpace) -> str:
    """`networks.encode`: float32, categories one-hot, uint8 divided by 255."""
    if space.categories is not None:
        number = graph.node("Unsqueeze", "observations", graph.constant([-1], "int64"))
        known = graph.constant(space.start + np.arange(space.categories), "int64")
        return graph.cast(graph.node("Equal", graph.cast(number, "int64"), known), "float32")
    encoded = graph.cast("observations", "float32")
    if space.dtype != "uint8":
        return encoded
    return graph.node("Div", encoded, graph.constant(255.0))


def _features(graph: Graph, torso: nn.Module, params: Any, space: ObservationSpace) -> str:
    """What a torso makes of observations."""
    x = _encoded(graph, space)
    if isinstance(torso, MLP):
        return _mlp(graph, graph.flat(x), params, len(torso.hidden))
    strides: tuple[int, ...]
    if isinstance(torso, Nature):
        strides, padding = (4, 2, 1), torso.padding
    elif isinstance(torso, MinAtar):
        strides, padding = (1,), "VALID"
    else:
        raise _unknown(torso)
    if not channels_first(space.shape):  # as ONNX has them; the parameters are for channels last
        x = graph.node("Transpose", x, perm=[0, 3, 1, 2])
    for i, stride in enumerate(strides):
        layer = params[f"Conv_{i}"]
        convolved = graph.node(
            "Conv",
            x,
            graph.constant(np.transpose(layer["kernel"], (3, 2, 0, 1))),
            graph.constant(layer["bias"]),
            strides=[stride, stride],
            auto_pad="SAME_UPPER" if padding == "SAME" else padding,  # XLA's: the odd one is after
        )
        x = graph.node("Relu", convolved)
    x = graph.flat(graph.node("Transpose", x, perm=[0, 2, 3, 1]))
    return graph.node("Relu", graph.dense(x, params["Dense_0"]))


def _mlp(graph: Graph, x: str, params: Any, layers: int) -> str:
    for i in range(layers):
        x = graph.node("Relu", graph.dense(x, params[f"Dense_{i}"]))
    return x


def _unknown(network: Any) -> UserError:
    return UserError(
        f"export: a network or policy of your own ({type(network).__name__}), "
        "expected one of this package for .onnx"
    )
