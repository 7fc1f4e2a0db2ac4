"""Networks compared with NumPy, and gradients at critical points."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.networks import (
    MLP,
    Critic,
    Embedding,
    StateActionNet,
    gelu,
    mish,
    sinusoid,
    smallest,
)
from langevinrl.types import Spec

SPEC = Spec(5, 3)


def test_gelu_and_its_derivatives() -> None:
    x = jnp.linspace(-12.0, 12.0, 401)
    textbook = partial(jax.nn.gelu, approximate=False)
    for ours, theirs in ((gelu, textbook), (jax.grad(gelu), jax.grad(textbook))):
        np.testing.assert_allclose(jax.vmap(ours)(x), jax.vmap(theirs)(x), atol=2e-6)
    second = jax.vmap(jax.grad(jax.grad(gelu)))(x)
    np.testing.assert_allclose(second, jax.vmap(jax.grad(jax.grad(textbook)))(x), atol=2e-6)


def textbook_mish(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x * np.tanh(np.logaddexp(0.0, x))


def test_mish_and_its_derivative() -> None:
    x = np.linspace(-30, 30, 2001)
    np.testing.assert_allclose(mish(jnp.asarray(x, jnp.float32)), textbook_mish(x), atol=3e-6)
    derivative = jax.vmap(jax.grad(mish))(jnp.asarray(x, jnp.float32))
    numeric = (textbook_mish(x + 1e-5) - textbook_mish(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(derivative, numeric, atol=2e-5)


@pytest.mark.parametrize("x", [-1e30, -1e4, -200.0, 200.0, 1e4, 1e8])
def test_mish_is_finite_for_large_inputs(x: float) -> None:
    value, derivative = jax.value_and_grad(mish)(jnp.float32(x))
    assert float(value) == pytest.approx(max(x, 0.0), rel=1e-6, abs=1e-6)
    assert float(derivative) == pytest.approx(float(x > 0), abs=1e-6)


def test_sinusoid_equals_the_formula() -> None:
    t, size = 3.0, 4
    angles = t * np.array([1.0, 10_000.0 ** (-1 / 2)])
    expected = np.concatenate([np.sin(angles), np.cos(angles)]) / 2.0
    np.testing.assert_allclose(sinusoid(jnp.float32(t), size), expected, rtol=1e-6)


def test_mlp_over_several_inputs_equals_one_over_their_concatenation() -> None:
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


def test_initial_weights_are_truncated_normal_and_biases_zero() -> None:
    params = MLP((300, 100), 256, (256,), "mish").init(jax.random.key(0))
    first = np.concatenate(params["inputs"]) * np.sqrt(400)
    assert np.abs(first).max() <= 2.0
    assert first.std() == pytest.approx(0.8796, abs=0.01)  # of a normal truncated at two deviations
    assert params["layers"][1]["weight"].std() * 16 == pytest.approx(0.8796, abs=0.01)
    assert not any(np.any(layer["bias"]) for layer in params["layers"])


def test_learned_embedding_has_1072_parameters() -> None:
    params = Embedding(16, "mish").init(jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 1072
    assert Embedding(32, "mish", learned=False).init(jax.random.key(0)) == {}


def test_shared_level_equals_the_same_level_per_row() -> None:
    field = StateActionNet(SPEC, 1, (8,), "mish", Embedding(16, "mish"))
    params = field.init(jax.random.key(0))
    obs, action = jnp.ones((6, 5)), jnp.ones((6, 3))
    shared = field.apply(params, obs, action, 4)
    per_row = field.apply(params, obs, action, jnp.full(6, 4))
    np.testing.assert_allclose(shared, per_row, rtol=1e-6)
    assert not np.allclose(shared, field.apply(params, obs, action, 5))


def test_critic_members_are_independent() -> None:
    critic = Critic(StateActionNet(SPEC, 1, (8,), "mish"))
    params = critic.init(jax.random.key(0))
    obs, action = jnp.ones((6, 5)), jnp.ones((6, 3))
    q = critic.apply(params, obs, action)
    assert q.shape == (2, 6)
    assert not np.allclose(q[0], q[1])
    alone = critic.network.apply(jax.tree.map(lambda leaf: leaf[1], params), obs, action)[..., 0]
    np.testing.assert_allclose(q[1], alone, rtol=1e-6)


def test_smallest_is_the_minimum_with_finite_gradients() -> None:
    """At a tie the gradient belongs to one member; `jnp.min` may divide by zero there."""
    values = jnp.array([[1.0, 5.0, 2.0], [3.0, 4.0, 2.0]])
    np.testing.assert_array_equal(smallest(values), [1.0, 4.0, 2.0])
    gradient = np.asarray(jax.jit(jax.grad(lambda v: smallest(v).sum()))(values))
    np.testing.assert_array_equal(gradient, [[1, 0, 1], [0, 1, 0]])
    critic = Critic(StateActionNet(SPEC, 1, (8,), "relu"), num_members=3)
    params, obs = critic.init(jax.random.key(0)), jnp.ones((6, 5))
    twins = jax.tree.map(lambda leaf: jnp.stack([leaf[0]] * 3), params)  # equal everywhere
    value = lambda action: smallest(critic.apply(twins, obs, action)).sum()  # noqa: E731
    gradient = np.asarray(jax.jit(jax.grad(value))(jnp.ones((6, 3))))
    assert np.isfinite(gradient).all() and gradient.any()
