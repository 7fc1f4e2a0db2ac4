"""MFP: mean-flow losses by hand and for exact fields, and the order of an update."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from parts import KEY, SPEC, act, assert_bellman, make_batch, make_state, update

from langevinrl.actors import MeanFlowActor
from langevinrl.agents.mfp import MFP, State
from langevinrl.learner import Learner, descend, init_learner
from langevinrl.losses import mean_flow
from langevinrl.networks import MLP
from langevinrl.types import Array

# A rate large enough that weights before and after a step differ clearly.
AGENT = MFP(
    SPEC, hidden=(8,), flow_steps=3, best_of=4, critic_learning_rate=0.05, actor_learning_rate=0.05
)
VELOCITY = jax.jit(MeanFlowActor.velocity, static_argnums=0)
LOSS = jax.jit(MeanFlowActor.loss, static_argnums=(0, 4))
CRITIC = AGENT.critics.network
VALUE = jax.jit(CRITIC.apply)


def paths(size: int) -> tuple[Any, Any, Any, Any]:
    """Return noise, actions and two ordered times of `size` paths."""
    rng = np.random.default_rng(1)
    noise, action = rng.normal(size=(2, size, 2)).astype(np.float32)
    t, rho = np.sort(rng.uniform(size=(2, size)), axis=0).astype(np.float32)
    return noise, action, t, rho


def chosen_by_hand(state: State, obs: Array, key: Array) -> np.ndarray:
    """Return the best of four flows of three steps, one candidate and one step at a time."""
    x = np.asarray(jax.random.normal(key, (4, len(obs), 2)))
    for j in range(3):
        times = jnp.float32(j / 3), jnp.float32((j + 1) / 3)
        u = [VELOCITY(AGENT.actor, state.actor.params, obs, c, *times) for c in x]
        x = x + np.asarray(u) / 3
    x = np.clip(x, -2, 2)
    scores = np.stack([np.asarray(VALUE(state.critic.params, obs, c)).min(axis=0) for c in x])
    return x[scores.argmax(axis=0), np.arange(len(obs))]


def test_losses_of_a_linear_field_equal_the_formula() -> None:
    # u = 2x + 3t - ρ along each axis, so du/dt = 2v + 3.
    noise, action, t, rho = paths(5)
    x = (1 - t)[:, None] * noise + t[:, None] * action
    v, gap = action - noise, (rho - t)[:, None]
    u = 2 * x + (3 * t - rho)[:, None]
    identity = ((u - v - gap * (2 * v + 3)) ** 2).sum(axis=1).mean()
    constraint = ((2 * x + 2 * t[:, None] - v) ** 2).sum(axis=1).mean()

    def field(x: Array, t: Array, rho: Array) -> Array:
        return 2 * x + (3 * t - rho)[:, None]

    ours = jax.jit(lambda *args: mean_flow(field, *args))(noise, action, t, rho)
    np.testing.assert_allclose(ours, (identity, constraint), rtol=1e-5)


def test_gradient_does_not_pass_through_the_regression_target() -> None:
    # u = θ x with θ = 0.5: the target v + (ρ - t) θ v is a constant though it holds θ.
    noise, action, t, rho = paths(5)
    x, v = (1 - t)[:, None] * noise + t[:, None] * action, action - noise
    target = v + (rho - t)[:, None] * 0.5 * v
    expected = (2 * (0.5 * x - target) * x).sum(axis=1).mean()

    def identity(theta: Array) -> Array:
        return mean_flow(lambda x, t, rho: theta * x, noise, action, t, rho)[0]

    np.testing.assert_allclose(jax.jit(jax.grad(identity))(0.5), expected, rtol=1e-5)


def test_constant_field_makes_both_losses_equal() -> None:
    noise, action, t, rho = paths(64)

    def field(x: Array, t: Array, rho: Array) -> Array:
        return jnp.zeros_like(x) + jnp.array([[0.4, -1.3]])

    identity, constraint = jax.jit(lambda *args: mean_flow(field, *args))(noise, action, t, rho)
    assert float(identity) > 0.1
    np.testing.assert_allclose(identity, constraint, rtol=1e-6)


def test_exact_field_of_a_single_action_has_zero_loss() -> None:
    noise, _, t, rho = paths(64)
    t, rho = 0.95 * t, 0.95 * rho  # t < 1: the field's denominator
    target = jnp.asarray(np.tile([[0.3, -0.8]], (64, 1)), jnp.float32)

    def field(x: Array, t: Array, rho: Array) -> Array:
        return (target - x) / (1 - t)[:, None]

    ours = jax.jit(lambda *args: mean_flow(field, *args))(noise, target, t, rho)
    np.testing.assert_allclose(ours, (0.0, 0.0), atol=1e-8)


@pytest.mark.parametrize(("t", "rho"), [(0.0, 1.0), (0.2, 0.6)])
def test_exact_field_of_a_gaussian_is_stationary(t: float, rho: float) -> None:
    """No shift or scale of the true average velocity lowers the loss."""
    mean, std, size = 0.7, 0.3, 200_000
    rng = np.random.default_rng(2)
    noise = jnp.asarray(rng.normal(size=(size, 1)), jnp.float32)
    action = jnp.asarray(mean + std * rng.normal(size=(size, 1)), jnp.float32)

    def loss(change: Array) -> Array:
        def field(x: Array, t: Array, rho: Array) -> Array:
            x = x[:, 0]
            begin, end = (jnp.hypot(1 - time, std * time) for time in (t, rho))
            u = (mean * rho + end / begin * (x - mean * t) - x) / (rho - t)
            return (u + change[0] + change[1] * x)[:, None]

        times = jnp.full(size, t), jnp.full(size, rho)
        return mean_flow(field, noise, action, *times)[0]

    gradient = jax.jit(jax.grad(loss))(jnp.zeros(2))
    np.testing.assert_allclose(gradient, np.zeros(2), atol=0.03)


def test_loss_draws_two_times_in_order() -> None:
    """With weights that return ρ - t as the velocity, the loss has the moments of sorted pairs."""
    network = MLP((1, 1, 1, 1), 1, (), "gelu")
    weights = [jnp.full((1, 1), w) for w in (0.0, 0.0, -1.0, 1.0)]
    params = {"inputs": weights, "layers": [{"bias": jnp.zeros(1)}]}
    actor = MeanFlowActor(network, 1, 1.0)
    obs = action = jnp.zeros((50_000, 1))
    ours = [float(LOSS(actor, params, obs, action, weight, KEY)) for weight in (0.0, 1.0, 3.0)]
    # u̇ = -1 and v = -a(0): the identity's residual is 2(ρ - t) - v; E(ρ - t)² = 1/6, E v² = 1.
    # The constraint's is 0 - v.
    np.testing.assert_allclose(ours, [5 / 3, 8 / 3, 14 / 3], rtol=0.03)


def test_one_flow_step_is_one_call_of_the_network() -> None:
    agent = replace(AGENT, flow_steps=1, best_of=1)
    state, obs, noise = make_state(AGENT), make_batch(8).obs, agent.noise(KEY, 8)
    times = jnp.float32(0), jnp.float32(1)
    jump = noise[:, 0] + VELOCITY(AGENT.actor, state.actor.params, obs, noise[:, 0], *times)
    np.testing.assert_allclose(act(agent, state, obs), np.clip(jump, -2, 2), rtol=1e-5, atol=1e-6)


def test_times_per_row_equal_a_shared_time() -> None:
    state, batch = make_state(AGENT), make_batch(8)
    single = jnp.float32(0.25), jnp.float32(0.75)
    rows = tuple(jnp.full(8, time) for time in single)
    one, each = (
        VELOCITY(AGENT.actor, state.actor.params, batch.obs, batch.action, *times)
        for times in (single, rows)
    )
    np.testing.assert_allclose(one, each, rtol=1e-5)


def test_action_is_the_best_of_the_flows() -> None:
    state, obs = make_state(AGENT), make_batch(8).obs
    for explore in (True, False):
        action = act(AGENT, state, obs, explore=explore)
        np.testing.assert_allclose(action, chosen_by_hand(state, obs, KEY), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("imitate", ["best", "replay"])
def test_order_of_an_update(imitate: Any) -> None:
    agent = replace(AGENT, imitate=imitate, constraint_weight=0.5)
    state, batch = make_state(AGENT), make_batch(8)
    done = update(agent, state, batch)
    next_key, best_key, flow_key = jax.random.split(KEY, 3)
    next_action = chosen_by_hand(state, batch.next_obs, next_key)
    assert_bellman(agent, CRITIC, state, batch, next_action, done)
    # The updated critics choose the actions to imitate.
    chosen = chosen_by_hand(state._replace(critic=done.state.critic), batch.obs, best_key)
    model = chosen if imitate == "best" else batch.action
    loss = LOSS(AGENT.actor, state.actor.params, batch.obs, model, 0.5, flow_key)
    np.testing.assert_allclose(done.metrics["policy/imitation"], loss, rtol=1e-4)
    assert not np.allclose(chosen, chosen_by_hand(state, batch.obs, best_key))


def test_flow_learns_a_gaussian() -> None:
    """After training on N(0.7, 0.6²), one step and four give its mean and deviation."""
    network, optimiser = MLP((1, 1, 1, 1), 1, (32,), "gelu"), optax.adam(1e-2)
    actor, obs = MeanFlowActor(network, 1, 2.0), jnp.ones((256, 1))

    def learn(learner: Learner, key: Array) -> tuple[Learner, None]:
        action_key, flow_key = jax.random.split(key)
        action = 0.7 + 0.6 * jax.random.normal(action_key, (256, 1))
        return descend(
            learner, optimiser, lambda p: actor.loss(p, obs, action, 1.0, flow_key)
        ), None

    @jax.jit
    def train(key: Array) -> Learner:
        fresh = init_learner(actor.init(key), optimiser)
        return jax.lax.scan(learn, fresh, jax.random.split(key, 600))[0]

    params = train(KEY).params
    for num_steps in (1, 4):
        sample = jax.jit(replace(actor, num_steps=num_steps).sample)
        drawn = np.asarray(sample(params, obs, actor.noise(KEY, 256, 16)))
        assert drawn.shape == (16, 256, 1)
        assert abs(drawn.mean() - 0.7) < 0.1
        assert abs(drawn.std() - 0.6) < 0.15
