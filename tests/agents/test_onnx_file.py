"""The ONNX model of an agent acts as the agent does, under another program's runtime."""

import sys

import jax
import numpy as np
import onnxruntime
import pytest

from momentum_rl.agents.agent import Agent, Named, load, save
from momentum_rl.agents.learner import method_of
from momentum_rl.agents.networks import NetworkSpec, make_network
from momentum_rl.agents.onnx_file import encoded_onnx, save_onnx
from momentum_rl.agents.registry import options_of
from momentum_rl.cli import main
from momentum_rl.core.values import NUMBER, Categorical, Quantile
from momentum_rl.errors import UserError
from momentum_rl.spaces import Box, ObservationSpace, Spaces

N = 1_000
KINDS = {"number": NUMBER, "categorical": Categorical(-3.0, 5.0, 11), "quantile": Quantile(9)}
SEEN = {
    "vector": ObservationSpace((4,), "float32"),
    "doubles": ObservationSpace((2, 3), "float64"),
    "category": ObservationSpace((), "int64", categories=7, start=-2),
    "last": ObservationSpace((10, 10, 4), "bool"),
    "first": ObservationSpace((3, 11, 8), "uint8"),
    "frames": ObservationSpace((4, 84, 84), "uint8"),
    "odd": ObservationSpace((41, 52, 3), "uint8"),
}


def observations(space, random):
    if space.categories is not None:
        return random.integers(space.start, space.start + space.categories, size=N)
    if space.dtype in ("bool", "uint8"):
        most = 2 if space.dtype == "bool" else 256
        return random.integers(most, size=(N, *space.shape)).astype(space.dtype)
    return random.normal(size=(N, *space.shape)).astype(space.dtype)


def moved(params, random):
    """Parameters with biases that are not zero."""
    return jax.tree.map(lambda p: np.float32(p + 0.1 * random.normal(size=p.shape)), params)


def greedy(spec, space, kind, random, acts_on="q"):
    spaces = Spaces(space, actions=5, first_action=3)
    network = make_network(spec, spaces, kind)
    params = moved(network.init(jax.random.key(0), space.zeros(1))["params"], random)
    kinds = {} if kind == NUMBER else {acts_on: kind}
    return Agent(network, {acts_on: params}, spaces, acts_on=acts_on, kinds=kinds, spec=spec)


def played(model, seen):
    """The model's outputs by name."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"observations": seen})))


def compare(agent, tmp_path, random):
    """The file that was written acts as the agent that is loaded."""
    save(agent, tmp_path / "agent.safetensors")
    assert main(["export", str(tmp_path / "agent.safetensors"), str(tmp_path / "a.onnx")]) == 0
    loaded, seen = (
        load(tmp_path / "agent.safetensors"),
        observations(agent.spaces.observation, random),
    )
    found = played((tmp_path / "a.onnx").read_bytes(), seen)
    assert found["actions"].dtype == np.int64
    np.testing.assert_array_equal(found["actions"], loaded.act(seen))
    np.testing.assert_allclose(found["values"], loaded.values(seen), rtol=1e-4, atol=1e-4)
    assert len(set(found["actions"].tolist())) > 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("network", "seen"), [("mlp", "vector"), ("minatar", "last")])
def test_a_greedy_policy_takes_the_same_actions(network, seen, kind, tmp_path):
    random = np.random.default_rng(1)
    agent = greedy(NetworkSpec(network), SEEN[seen], KINDS[kind], random, acts_on="h")
    compare(agent, tmp_path, random)


@pytest.mark.parametrize(
    ("network", "seen"), [("mlp", "doubles"), ("mlp", "category"), ("minatar", "first")]
)
def test_every_form_of_observation_is_encoded_as_the_agent_does(network, seen, tmp_path):
    random = np.random.default_rng(2)
    compare(greedy(NetworkSpec(network), SEEN[seen], NUMBER, random), tmp_path, random)


def test_a_network_without_hidden_layers_takes_the_same_actions(tmp_path):
    random, spec = np.random.default_rng(5), NetworkSpec("mlp", ())
    compare(greedy(spec, SEEN["vector"], KINDS["categorical"], random), tmp_path, random)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("seen", "padding"), [("frames", "SAME"), ("frames", "VALID"), ("odd", "SAME")]
)
def test_the_nature_network_takes_the_same_actions(seen, padding, kind, tmp_path):
    random = np.random.default_rng(3)
    spec = NetworkSpec("nature", padding=padding)
    compare(greedy(spec, SEEN[seen], KINDS[kind], random), tmp_path, random)


@pytest.mark.parametrize(("name", "hidden"), [("sac", (64, 64)), ("momentum-sac", ())])
def test_the_mean_action_of_an_actor_is_the_same_in_the_environments_own_bounds(
    name, hidden, tmp_path
):
    random = np.random.default_rng(4)
    spaces = Spaces(SEEN["vector"], Box((-2.0, 0.0), (2.0, 5.0), (2, 1)))
    spec, method = NetworkSpec("mlp", hidden), method_of(options_of(name), "squared", None)
    networks = method.build(spec, spaces)
    shown = {
        "actor": (np.zeros((1, 4), np.float32),),
        "temperature": (),
        **dict.fromkeys("qh", (np.zeros((1, 4), np.float32), np.zeros((1, 2), np.float32))),
    }
    params = {
        own: moved(module.init(jax.random.key(0), *shown[own])["params"], random)
        for own, module in networks.items()
    }
    agent = Agent(
        networks,
        params,
        spaces,
        policy=method.policy,
        acts_on="actor",
        spec=spec,
        named=Named(name),
    )
    seen = observations(spaces.observation, random)
    save_onnx(agent, tmp_path / "actor.onnx")
    found = played((tmp_path / "actor.onnx").read_bytes(), seen)
    assert found["actions"].shape == (N, 2, 1)
    np.testing.assert_allclose(found["actions"], agent.act(seen), rtol=1e-5, atol=1e-5)
    assert found["actions"].std(0).min() > 0.1


def test_the_same_agent_gives_the_same_bytes():
    agent = greedy(NetworkSpec("mlp"), SEEN["vector"], NUMBER, np.random.default_rng(5))
    assert encoded_onnx(agent) == encoded_onnx(agent)


def test_a_network_of_ones_own_is_refused_in_one_line(tmp_path):
    import flax.linen as nn

    network = nn.Dense(5)
    params = network.init(jax.random.key(0), np.zeros((1, 4), np.float32))["params"]
    agent = Agent(network, {"q": params}, Spaces(SEEN["vector"], 5))
    with pytest.raises(UserError, match=r"^export: a network or policy of your own \(Dense\), "):
        save_onnx(agent, tmp_path / "own.onnx")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_it_is_one_line(tmp_path, monkeypatch, capsys):
    agent = greedy(NetworkSpec("mlp"), SEEN["vector"], NUMBER, np.random.default_rng(6))
    save(agent, tmp_path / "agent.safetensors")
    monkeypatch.setitem(sys.modules, "onnx", None)
    words = ["export", str(tmp_path / "agent.safetensors"), str(tmp_path / "a.onnx")]
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "movi: export to ONNX needs the extra `onnx`: pip install 'momentum-rl[onnx]' "
        "(in a clone: '.[onnx]')\n"
    )
    assert not (tmp_path / "a.onnx").exists()
