"""Layers against NumPy, and the paper's parameter counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.networks import (
    MLP,
    Critic,
    Embedding,
    Norm,
    StateActionNet,
    gelu,
    mish,
    normalise_features,
    sinusoid,
)
from langevinrl.types import Spec

SPEC = Spec(5, 3)


def test_gelu_and_its_slopes() -> None:
    x = jnp.linspace(-12.0, 12.0, 401)
    textbook = partial(jax.nn.gelu, approximate=False)
    for ours, theirs in ((gelu, textbook), (jax.grad(gelu), jax.grad(textbook))):
        np.testing.assert_allclose(jax.vmap(ours)(x), jax.vmap(theirs)(x), atol=2e-6)
    second = jax.vmap(jax.grad(jax.grad(gelu)))(x)
    np.testing.assert_allclose(second, jax.vmap(jax.grad(jax.grad(textbook)))(x), atol=2e-6)


def textbook_mish(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x * np.tanh(np.logaddexp(0.0, x))


def test_mish_and_its_slope() -> None:
    x = np.linspace(-30, 30, 2001)
    np.testing.assert_allclose(mish(jnp.asarray(x, jnp.float32)), textbook_mish(x), atol=3e-6)
    slope = jax.vmap(jax.grad(mish))(jnp.asarray(x, jnp.float32))
    numeric = (textbook_mish(x + 1e-5) - textbook_mish(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(slope, numeric, atol=2e-5)


@pytest.mark.parametrize("x", [-1e30, -1e4, -200.0, 200.0, 1e4, 1e8])
def test_mish_is_finite_far_out(x: float) -> None:
    value, slope = jax.value_and_grad(mish)(jnp.float32(x))
    assert float(value) == pytest.approx(max(x, 0.0), rel=1e-6, abs=1e-6)
    assert float(slope) == pytest.approx(float(x > 0), abs=1e-6)


def test_sinusoid_by_hand() -> None:
    t, size = 3.0, 4
    angles = t * np.array([1.0, 10_000.0 ** (-1 / 2)])
    expected = np.concatenate([np.sin(angles), np.cos(angles)]) / 2.0
    np.testing.assert_allclose(sinusoid(jnp.float32(t), size), expected, rtol=1e-6)


def test_an_mlp_equals_its_concatenated_self() -> None:
    mlp = MLP((4, 2, 3), 2, (8, 8), "relu")
    params = mlp.init(jax.random.key(0))
    rng = np.random.default_rng(0)
    obs, action, index = rng.normal(size=(7, 4)), rng.normal(size=(6, 7, 2)), rng.normal(size=3)
    rows = np.concatenate(
        [np.broadcast_to(obs, (6, 7, 4)), action, np.broadcast_to(index, (6, 7, 3))], axis=-1
    )
    weights = [np.concatenate(params["inputs"]), *(la["weight"] for la in params["layers"][1:])]
    x = rows
    for i, weight in enumerate(weights):
        x = (np.maximum(x, 0) if i else x) @ np.asarray(weight, np.float64)
    out = mlp.apply(params, *(jnp.asarray(a, jnp.float32) for a in (obs, action, index)))
    np.testing.assert_allclose(out, x, rtol=1e-4, atol=1e-5)


def test_initial_weights_are_cut_normals_and_biases_zero() -> None:
    params = MLP((300, 100), 256, (256,), "mish").init(jax.random.key(0))
    first = np.concatenate(params["inputs"]) * np.sqrt(400)
    assert np.abs(first).max() <= 2.0
    assert first.std() == pytest.approx(0.8796, abs=0.01)  # of a normal cut at two deviations
    assert params["layers"][1]["weight"].std() * 16 == pytest.approx(0.8796, abs=0.01)
    assert not any(np.any(layer["bias"]) for layer in params["layers"])


def test_a_learned_embedding_has_1072_parameters() -> None:
    params = Embedding(16, "mish").init(jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 1072
    assert Embedding(32, "mish", learned=False).init(jax.random.key(0)) == {}


def test_one_level_for_all_rows_equals_that_level_per_row() -> None:
    field = StateActionNet(SPEC, 1, (8,), "mish", Embedding(16, "mish"))
    params = field.init(jax.random.key(0))
    obs, action = jnp.ones((6, 5)), jnp.ones((6, 3))
    shared = field.apply(params, obs, action, 4)
    per_row = field.apply(params, obs, action, jnp.full(6, 4))
    np.testing.assert_allclose(shared, per_row, rtol=1e-6)
    assert not np.allclose(shared, field.apply(params, obs, action, 5))


def test_critic_members_differ_and_are_independent() -> None:
    critic = Critic(StateActionNet(SPEC, 1, (8,), "mish"))
    params = critic.init(jax.random.key(0))
    obs, action = jnp.ones((6, 5)), jnp.ones((6, 3))
    q = critic.apply(params, obs, action)
    assert q.shape == (2, 6)
    assert not np.allclose(q[0], q[1])
    alone = critic.network.apply(jax.tree.map(lambda leaf: leaf[1], params), obs, action)[..., 0]
    np.testing.assert_allclose(q[1], alone, rtol=1e-6)


def textbook_norm(x: np.ndarray, norm: Norm) -> np.ndarray:
    if norm == "layer":
        x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + 1e-6)


def test_norms_by_hand() -> None:
    x = jnp.array([[1.0, 3.0], [0.0, 0.0]])
    np.testing.assert_allclose(normalise_features(x, "layer"), [[-1, 1], [0, 0]], rtol=1e-5)
    rms = [[1 / 5**0.5, 3 / 5**0.5], [0, 0]]
    np.testing.assert_allclose(normalise_features(x, "rms"), rms, rtol=1e-5)
    assert normalise_features(x, "none") is x


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_the_gradient_of_a_norm(norm: Norm) -> None:
    rng = np.random.default_rng(0)
    x, weight, way = rng.normal(size=(3, 2, 4, 6)) + 0.5
    ours = partial(normalise_features, norm=norm)
    _, back = jax.vjp(ours, jnp.asarray(x, jnp.float32))
    value, along = jax.jvp(ours, (jnp.asarray(x, jnp.float32),), (jnp.asarray(way, jnp.float32),))
    np.testing.assert_allclose(value, textbook_norm(x, norm), atol=1e-5)
    ends = [textbook_norm(x + h * way, norm) for h in (1e-5, -1e-5)]
    numeric = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(along, numeric, atol=1e-4)
    (gradient,) = back(jnp.asarray(weight, jnp.float32))
    assert float((gradient * way).sum()) == pytest.approx((weight * numeric).sum(), abs=1e-4)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_a_critic_is_normed_before_each_activation_and_its_embedding_is_not(norm: Norm) -> None:
    plain = StateActionNet(SPEC, 1, (8, 7), "relu", Embedding(4, "relu"))
    net = StateActionNet(SPEC, 1, (8, 7), "relu", Embedding(4, "relu"), norm)
    params = net.init(jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, params, plain.init(jax.random.key(0)))
    rng = np.random.default_rng(0)
    obs, action = rng.normal(size=(6, 5)), rng.normal(size=(6, 3))
    told = np.asarray(plain.embedding.apply(params["embedding"], jnp.asarray(2)))  # type: ignore[union-attr]  # is given
    body: Any = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params["body"])
    x = sum(a @ w for a, w in zip((obs, action, told[None]), body["inputs"], strict=True))
    for before, layer in zip(body["layers"], body["layers"][1:], strict=False):
        x = np.maximum(textbook_norm(x + before["bias"], norm), 0) @ layer["weight"]
    out = net.apply(params, jnp.asarray(obs, jnp.float32), jnp.asarray(action, jnp.float32), 2)
    np.testing.assert_allclose(out, x + body["layers"][-1]["bias"], rtol=1e-4, atol=1e-5)
