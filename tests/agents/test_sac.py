"""SAC and momentum in it, against a computation by hand in NumPy and against finite differences."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import integrate, stats

from momentum_rl.agents.learner import make_learner, method_of, networks_of
from momentum_rl.agents.method import Context
from momentum_rl.agents.networks import NetworkSpec
from momentum_rl.agents.registry import options_of
from momentum_rl.agents.soft_actor_critic import Gaussian
from momentum_rl.core.schedules import Constant
from momentum_rl.errors import UserError
from momentum_rl.spaces import Box, ObservationSpace, Spaces, Transition

SPACES = Spaces(ObservationSpace((3,), "float32"), Box((-2.0, 0.0), (2.0, 1.0), (2,)))
SPEC = NetworkSpec("mlp", (5, 4))
BETA, RATE, POLYAK, B = 0.75, 0.1, 0.25, 6


def soft(name, **options):
    return method_of(options_of(name, {"polyak": POLYAK, **options}), "squared", None)


def learner_of(name, **options):
    method = soft(name, **options)
    modules = method.build(SPEC, SPACES)
    rates = {"actor": optax.sgd(2 * RATE)}
    optimisers = {network: rates.get(network, optax.sgd(RATE)) for network in modules}
    return make_learner(method, modules, optimisers, SPACES, beta=Constant(BETA))


def batches(m, seed=0):
    rng = np.random.default_rng(seed)
    return Transition(
        rng.normal(size=(m, B, 3)).astype(np.float32),
        rng.uniform(-1, 1, size=(m, B, 2)).astype(np.float32),
        rng.normal(size=(m, B)).astype(np.float32),
        np.where(rng.random((m, B)) < 0.3, 0, 0.9).astype(np.float32),
        rng.normal(size=(m, B, 3)).astype(np.float32),
    )


# By hand: every network as NumPy, its gradient by the chain rule ----------------------------------


def doubles(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), tree)


def dense(layer, x):
    return x @ layer["kernel"] + layer["bias"]


def mlp(layers, x):
    """The outputs of layers with ReLU between, and what the chain rule needs."""
    kept = []
    for i, layer in enumerate(layers):
        kept.append(x)
        x = dense(layer, x)
        if i < len(layers) - 1:
            x = np.maximum(x, 0)
    return x, kept


def mlp_back(layers, kept, dy):
    """Gradients of the layers, and of their input."""
    grads = []
    for i in reversed(range(len(layers))):
        grads.append({"kernel": kept[i].T @ dy, "bias": dy.sum(0)})
        dy = dy @ layers[i]["kernel"].T
        if i > 0:
            dy = dy * (kept[i] > 0)
    return grads[::-1], dy


def critic_layers(params, i):
    torso = params[f"MLP_{i}"]
    return [torso["Dense_0"], torso["Dense_1"], params[f"Dense_{i}"]]


def critic(params, i, s, a):
    value, kept = mlp(critic_layers(params, i), np.concatenate([s, a], 1))
    return value[:, 0], kept


def critic_gradient(params, i, s, a, dy):
    """Of Σ dy · Q_i: by its parameters, and by the action."""
    _, kept = critic(params, i, s, a)
    (first, second, last), dx = mlp_back(critic_layers(params, i), kept, dy[:, None])
    grads = {f"MLP_{i}": {"Dense_0": first, "Dense_1": second}, f"Dense_{i}": last}
    return grads, dx[:, 3:]


def actor(params, s):
    torso = [params["MLP_0"]["Dense_0"], params["MLP_0"]["Dense_1"]]
    x, inputs = s, []
    for layer in torso:
        inputs.append(x)
        x = np.maximum(dense(layer, x), 0)
    return dense(params["mean"], x), np.clip(dense(params["log_std"], x), -20, 2), (inputs, x)


def log_density(mean, log_std, u):
    """By SciPy's normal distribution and the derivative of tanh."""
    normal = stats.norm.logpdf(u, mean, np.exp(log_std))
    return (normal - np.log(1 - np.tanh(u) ** 2)).sum(1)


def noises(key, m):
    for_next, for_actor = jax.random.split(key)
    there = np.asarray(jax.random.normal(for_next, (m * B, 2)), float)
    return there.reshape(m, B, 2), np.asarray(jax.random.normal(for_actor, (B, 2)), float)


def targets(state, data, noise, alpha, regularised, scale):
    ys = []
    for j, eps in enumerate(noise):
        s = data.next_observation[j]
        mean, log_std, _ = actor(state.online["actor"], s)
        u = mean + np.exp(log_std) * eps
        old = jax.tree.map(lambda leaf: leaf[0], state.lagged["q"])
        least = np.minimum(*(critic(old, i, s, np.tanh(u))[0] for i in range(2)))
        soft = least - alpha * log_density(mean, log_std, u)
        if regularised:
            before = jax.tree.map(lambda leaf: leaf[0], state.lagged["actor"])
            kl = log_density(mean, log_std, u) - log_density(*actor(before, s)[:2], u)
            soft -= alpha * BETA / (1 - BETA) * kl
        ys.append(scale * data.reward[j] + data.discount[j] * soft)
    return ys


def actor_gradient(params, critics, count, s, eps, alpha):
    """Of mean(α ln π(tanh u|s) − min_i Q_i(s, tanh u)), u = m + σ ε, by the chain rule."""
    mean, log_std, (inputs, x) = actor(params, s)
    u = mean + np.exp(log_std) * eps
    values = np.stack([critic(critics, i, s, np.tanh(u))[0] for i in range(count)])
    chosen = np.eye(count)[np.argmin(values, 0)].T
    dq_da = sum(critic_gradient(critics, i, s, np.tanh(u), chosen[i])[1] for i in range(count))
    # ln π = Σ −ε²/2 − ln σ − … − ln(1 − tanh² u), whose derivative by u is 2 tanh u.
    du = (alpha * 2 * np.tanh(u) - dq_da * (1 - np.tanh(u) ** 2)) / B
    d_log_std = du * np.exp(log_std) * eps - alpha / B
    heads = {
        "mean": {"kernel": x.T @ du, "bias": du.sum(0)},
        "log_std": {"kernel": x.T @ d_log_std, "bias": d_log_std.sum(0)},
    }
    dx = du @ params["mean"]["kernel"].T + d_log_std @ params["log_std"]["kernel"].T
    torso, dy = {}, dx * (x > 0)
    for i in (1, 0):
        torso[f"Dense_{i}"] = {"kernel": inputs[i].T @ dy, "bias": dy.sum(0)}
        dy = dy @ params["MLP_0"][f"Dense_{i}"]["kernel"].T * (inputs[i] > 0)
    return {"MLP_0": torso, **heads}, log_density(mean, log_std, u), values.min(0)


def moved(params, gradient, rate):
    return jax.tree.map(lambda p, g: p - rate * g, params, gradient)


def close(found, expected, atol=2e-5):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=atol), doubles(found), expected)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sac", {}),
        ("sac", {"temperature": 0.2}),
        ("sac", {"target_entropy": 0.5, "polyak": None}),
        ("sac", {"entropy_each": -0.5, "reward_scale": 0.1}),
        ("momentum-sac", {}),
        ("momentum-sac", {"shared_batch": True, "regularised": True}),
        ("momentum-sac", {"reward_scale": 3.0}),
    ],
    ids=str,
)
def test_one_update_of_every_network_is_the_one_computed_by_hand(name, options):
    learner, key = learner_of(name, **options), jax.random.key(5)
    m = learner.minibatches
    assert m == (2 if name == "momentum-sac" and "shared_batch" not in options else 1)
    state = learner.init(jax.random.key(1))
    # Lagged copies and a temperature that differ from where they begin.
    state = state._replace(lagged=jax.tree.map(lambda leaf: 0.8 * leaf + 0.05, state.lagged))
    if "temperature" in state.online:
        state.online["temperature"]["log"] = jnp.float32(-1.2)
    data = batches(m)
    # The same numbers in double precision; the keys of a dictionary are sorted as JAX has them.
    before = doubles(state)
    after, metrics = learner.update(state, data, np.int32(7), key)
    there, here = noises(key, m)
    alpha = options.get("temperature", np.exp(-1.2))
    scale = options.get("reward_scale", 1.0)
    ys = targets(before, data, there, alpha, options.get("regularised", False), scale)
    s, a = data.observation[0].astype(float), data.action[0].astype(float)

    gradient = {}
    for i in range(2):
        error = critic(before.online["q"], i, s, a)[0] - ys[0]
        gradient |= critic_gradient(before.online["q"], i, s, a, 2 * error / B)[0]
    close(after.online["q"], moved(before.online["q"], gradient, RATE))
    climbed = "q" if name == "sac" else "h"
    if name == "momentum-sac":
        old = jax.tree.map(lambda leaf: leaf[0], before.lagged["h"])
        sh, ah = data.observation[-1].astype(float), data.action[-1].astype(float)
        grads, values = {}, []
        for i in range(2):  # each towards an average of its own
            values.append(critic(before.online["h"], i, sh, ah)[0])
            goal = BETA * critic(old, i, sh, ah)[0] + (1 - BETA) * ys[-1]
            error = values[i] - goal
            grads |= critic_gradient(before.online["h"], i, sh, ah, 2 * error / B)[0]
        close(after.online["h"], moved(before.online["h"], grads, RATE))
        np.testing.assert_allclose(metrics["mean_h"], np.mean(values), atol=1e-5)
    grads, density, height = actor_gradient(
        before.online["actor"], before.online[climbed], 2, s, here, alpha
    )
    close(after.online["actor"], moved(before.online["actor"], grads, 2 * RATE))
    np.testing.assert_allclose(metrics["loss_actor"], (alpha * density - height).mean(), atol=1e-5)
    np.testing.assert_allclose(metrics["entropy"], -density.mean(), atol=1e-5)
    np.testing.assert_allclose(metrics["alpha"], alpha, rtol=1e-6)
    if "temperature" in options:
        assert "temperature" not in after.online
    else:
        # d/d ln α of −α (ln π + H̄), with H̄ = −2 for two numbers (Dopamine: −1).
        wanted = {-0.5: -1.0}.get(options.get("entropy_each"), -2.0)
        excess = density + options.get("target_entropy", wanted)
        expected = -1.2 + RATE * alpha * excess.mean()
        np.testing.assert_allclose(after.online["temperature"]["log"], expected, atol=1e-6)
    if options.get("polyak", POLYAK) is not None:
        for network in after.lagged:
            expected = jax.tree.map(
                lambda old, new: old + POLYAK * (np.asarray(new, float)[None] - old),
                before.lagged[network],
                doubles(after.online[network]),
            )
            close(after.lagged[network], expected)
    else:  # copied at a synchronisation
        close(after.lagged, before.lagged)
        jax.tree.map(
            lambda copy, new: np.testing.assert_array_equal(copy[0], new),
            learner.sync(after).lagged["q"],
            after.online["q"],
        )


def test_the_actors_gradient_is_that_of_finite_differences_and_leaves_the_critics_alone():
    method = soft("sac")
    modules, data, key = method.build(SPEC, SPACES), batches(1), jax.random.key(3)
    state = learner_of("sac").init(jax.random.key(1))
    # Away from where a unit that nothing reaches has its kink.
    state.online["actor"] = jax.tree.map(lambda p: p + 0.05, state.online["actor"])
    context = Context(jnp.float32(0), jnp.int32(1), key)

    def cost(actor, q):
        online = {**state.online, "actor": actor, "q": q}
        networks = networks_of(modules, online, state.online, state.lagged)
        return jnp.mean(method.losses(networks, data, context)[0]["actor"])

    params, q = state.online["actor"], state.online["q"]
    gradient, none = jax.jit(jax.grad(cost, (0, 1)))(params, q)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(none))
    there = np.asarray(noises(key, 1)[1])
    s = data.observation[0].astype(float)

    def by_hand(params):
        mean, log_std, _ = actor(params, s)
        u = mean + np.exp(log_std) * there
        least = np.minimum(*(critic(doubles(q), i, s, np.tanh(u))[0] for i in range(2)))
        return (log_density(mean, log_std, u) - least).mean()

    rng = np.random.default_rng(1)
    for _ in range(5):  # along random directions
        direction = jax.tree.map(lambda p: rng.normal(size=p.shape), doubles(params))
        ahead, behind = (
            jax.tree.map(lambda p, d, h=h: p + h * d, doubles(params), direction)
            for h in (1e-6, -1e-6)
        )
        slope = (by_hand(ahead) - by_hand(behind)) / 2e-6
        found = sum(
            np.sum(np.asarray(g, float) * d)
            for g, d in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction))
        )
        np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("mean", "log_std"), [(0.3, -0.5), (-1.0, 0.4), (2.0, -1.5)])
def test_the_density_of_actions_integrates_to_one(mean, log_std):
    policy = Gaussian(np.array([mean]), np.array([log_std]))

    def density(action):
        return float(np.exp(policy.log_density(np.arctanh(np.array([action])))))

    total, _ = integrate.quad(density, -1, 1, limit=200, epsabs=1e-5)
    np.testing.assert_allclose(total, 1.0, atol=1e-4)


@pytest.mark.parametrize("u", [-60.0, -12.0, 12.0, 60.0])
def test_the_log_density_is_finite_where_tanh_is_one_in_float32(u):
    policy = Gaussian(jnp.array([u], jnp.float32), jnp.array([0.0], jnp.float32))
    value, slope = jax.value_and_grad(lambda x: policy.log_density(x).sum())(jnp.array([u]))
    # ln(1 − tanh² u) → 2 ln 2 − 2 |u|.
    expected = -0.5 * np.log(2 * np.pi) - (2 * np.log(2) - 2 * abs(u))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(slope, [2 * np.sign(u)], atol=1e-5)


def test_beta_zero_is_sac_with_another_network():
    """H then regresses to the fresh target alone, and is to the actor what Q is: beginning as Q it
    moves as Q does, and so does the actor."""
    plain, key = learner_of("sac"), jax.random.key(2)
    method = soft("momentum-sac", shared_batch=True)
    modules = method.build(SPEC, SPACES)
    optimisers = {n: optax.sgd(2 * RATE if n == "actor" else RATE) for n in modules}
    other = make_learner(method, modules, optimisers, SPACES, beta=Constant(0.0))
    state = other.init(jax.random.key(1))
    state.online["h"], state.lagged["h"] = state.online["q"], state.lagged["q"]
    common = plain.init(jax.random.key(0))._replace(
        online={name: state.online[name] for name in ("q", "actor", "temperature")},
        lagged={"q": state.lagged["q"]},
    )
    ours, _ = other.update(state, batches(1), np.int32(1), key)
    theirs, _ = plain.update(common, batches(1), np.int32(1), key)
    for network in ("q", "actor", "temperature"):
        close(ours.online[network], doubles(theirs.online[network]), atol=1e-6)
    close(ours.online["h"], doubles(theirs.online["q"]), atol=1e-6)


def test_an_exact_actor_of_h_is_the_kl_regularised_greedy_policy_with_lambda():
    """π ∝ exp(h/α), h = β h' + (1 − β) q, maximises ⟨π, q⟩ − λ KL(π‖π') + α H(π)."""
    rng, alpha, beta = np.random.default_rng(0), 0.3, 0.7
    before, q = rng.normal(size=5), rng.normal(size=5)
    old, lam = np.exp(before / alpha), alpha * beta / (1 - beta)
    old /= old.sum()
    h = beta * before + (1 - beta) * q
    policy = np.exp(h / alpha) / np.exp(h / alpha).sum()

    def objective(pi):
        return pi @ q - lam * (pi @ np.log(pi / old)) - alpha * (pi @ np.log(pi))

    for _ in range(200):
        other = rng.dirichlet(np.ones(5))
        assert objective(policy) >= objective(0.999 * policy + 0.001 * other)


def test_actions_are_in_the_box_drawn_by_a_key_and_the_means_without():
    learner = learner_of("sac")
    state = learner.init(jax.random.key(0))
    s = batches(1).observation[0]
    mean = learner.act(state, s, None)
    np.testing.assert_allclose(
        mean, np.tanh(actor(doubles(state.online["actor"]), s)[0]), atol=1e-6
    )
    drawn = [np.asarray(learner.act(state, s, jax.random.key(k))) for k in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.allclose(drawn[0], drawn[2])
    assert np.abs(drawn[2]).max() <= 1


def test_log_std_is_bounded_by_tanh_as_cleanrl_has_it():
    method = soft("sac", log_std="tanh", log_std_min=-5.0)
    policy = method.build(SPEC, SPACES)["actor"]
    params = policy.init(jax.random.key(0), batches(1).observation[0])["params"]
    params["log_std"]["bias"] = jnp.array([-50.0, 0.0])
    params["log_std"]["kernel"] *= 0
    log_std = policy.apply({"params": params}, batches(1).observation[0]).log_std
    np.testing.assert_allclose(log_std[0], [-5.0, -5 + 7 / 2], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"polyak": 0.0}, "polyak: 0.0, expected a number in"),
        ({"temperature": 0.0}, "temperature: 0.0"),
        ({"actor_rate": -1.0}, "actor_rate: -1.0"),
        ({"log_std_min": 3.0}, "log_std_min: 3.0, expected less than log_std_max"),
        ({"log_std": "none"}, "log_std: 'none', expected one of clip, tanh"),
        ({"beta": 0.5}, "sac has no 'beta'"),
        ({"reward_scale": 0.0}, "reward_scale: 0.0, expected a number above 0"),
        ({"target_entropy": np.inf}, "target_entropy: inf, expected a finite number"),
        ({"entropy_each": np.nan}, "entropy_each: nan, expected a finite number"),
        ({"log_std_min": -np.inf}, "log_std_min: -inf, expected a finite number"),
        ({"log_std_max": np.inf}, "log_std_max: inf, expected a finite number"),
    ],
)
def test_an_option_out_of_range_is_one_line(options, says):
    with pytest.raises(UserError, match=says):
        options_of("sac", options)


def test_images_need_another_network():
    spaces = replace(SPACES, observation=ObservationSpace((84, 84, 3), "uint8"))
    with pytest.raises(UserError, match="network: 'nature', expected mlp"):
        soft("sac").build(NetworkSpec("nature"), spaces)


def test_the_log_density_of_a_draw_knows_its_noise_however_small_the_deviation_is():
    """By the noise itself, in double precision; u alone does not tell it in single precision."""
    key, shape = jax.random.key(3), (50, 1)
    noise = np.asarray(jax.random.normal(key, shape), np.float64)[:, 0]
    for log_std in (-1.0, -8.0, -16.0, -20.0):
        u, found = Gaussian(jnp.full(shape, 1.3), jnp.full(shape, log_std)).drawn(key)
        change = np.log1p(-(np.tanh(np.asarray(u, np.float64)[:, 0]) ** 2))
        expected = stats.norm.logpdf(noise) - log_std - change
        np.testing.assert_allclose(found, expected, atol=2e-5)
        np.testing.assert_allclose(u[:, 0], 1.3 + np.exp(log_std) * noise, rtol=3e-7)
