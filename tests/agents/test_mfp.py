"""MFP: the mean-flow losses by hand and against exact fields, and the order of an update."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from parts import SPEC, make_batch, set_apart

from langevinrl.actors import MeanFlowActor
from langevinrl.agents.mfp import MFP, State
from langevinrl.learner import Learner, count_parameters, descend, init_learner
from langevinrl.losses import mean_flow
from langevinrl.networks import MLP
from langevinrl.types import Array, Spec

# A rate large enough that "before the step" and "after the step" are far apart.
AGENT = MFP(
    SPEC,
    hidden=(8,),
    flow_steps=3,
    best_of=4,
    critic_learning_rate=0.05,
    actor_learning_rate=0.05,
)
KEY = jax.random.key(7)
# Compiled whole: operation by operation, JAX compiles each of them.
INIT = jax.jit(MFP.init, static_argnums=0)
ACT = jax.jit(MFP.act, static_argnums=0, static_argnames="explore")
UPDATE = jax.jit(MFP.update, static_argnums=0)
VELOCITY = jax.jit(MeanFlowActor.velocity, static_argnums=0)
LOSS = jax.jit(MeanFlowActor.loss, static_argnums=(0, 4))
VALUE = jax.jit(AGENT.critic.apply)


def make_state() -> State:
    state = INIT(AGENT, jax.random.key(0))
    return state._replace(critic=set_apart(state.critic))


def paths(size: int) -> tuple[Any, Any, Any, Any]:
    """Noise, actions and two ordered times of `size` paths in the plane."""
    rng = np.random.default_rng(1)
    noise, action = rng.normal(size=(2, size, 2)).astype(np.float32)
    t, rho = np.sort(rng.uniform(size=(2, size)), axis=0).astype(np.float32)
    return noise, action, t, rho


def chosen_by_hand(state: State, obs: Array, key: Array) -> np.ndarray:
    """Best of four flows of three jumps, one candidate and one jump at a time."""
    x = np.asarray(jax.random.normal(key, (4, len(obs), 2)))
    for j in range(3):
        times = jnp.float32(j / 3), jnp.float32((j + 1) / 3)
        u = [VELOCITY(AGENT.actor, state.actor.params, obs, c, *times) for c in x]
        x = x + np.asarray(u) / 3
    x = np.clip(x, -2, 2)
    scores = np.stack([np.asarray(VALUE(state.critic.params, obs, c)).min(axis=0) for c in x])
    return x[scores.argmax(axis=0), np.arange(len(obs))]


def test_losses_by_hand_for_a_linear_field() -> None:
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


def test_no_gradient_through_the_regression_target() -> None:
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


def test_exact_field_of_a_point_target_has_no_loss() -> None:
    noise, _, t, rho = paths(64)
    t, rho = 0.95 * t, 0.95 * rho  # t < 1: the field's denominator
    target = jnp.asarray(np.tile([[0.3, -0.8]], (64, 1)), jnp.float32)

    def field(x: Array, t: Array, rho: Array) -> Array:
        return (target - x) / (1 - t)[:, None]

    ours = jax.jit(lambda *args: mean_flow(field, *args))(noise, target, t, rho)
    np.testing.assert_allclose(ours, (0.0, 0.0), atol=1e-8)


@pytest.mark.parametrize(("t", "rho"), [(0.0, 1.0), (0.2, 0.6), (0.5, 0.9)])
def test_exact_field_of_a_gaussian_is_stationary(t: float, rho: float) -> None:
    """No shift or stretch of the true average velocity lowers the loss, whatever the two times."""
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

    slope = jax.jit(jax.grad(loss))(jnp.zeros(2))
    np.testing.assert_allclose(slope, np.zeros(2), atol=0.03)


def test_actor_draws_two_times_in_order() -> None:
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


def test_one_step_policy_is_one_call() -> None:
    agent = replace(AGENT, flow_steps=1, best_of=1)
    state, obs = make_state(), make_batch(8).obs
    noise = jax.random.normal(KEY, (1, 8, 2))[0]
    times = jnp.float32(0), jnp.float32(1)
    jump = noise + VELOCITY(AGENT.actor, state.actor.params, obs, noise, *times)
    action = ACT(agent, state, obs, KEY, explore=True)
    np.testing.assert_allclose(action, np.clip(jump, -2, 2), rtol=1e-5, atol=1e-6)


def test_times_per_row_and_for_all_rows_agree() -> None:
    state, batch = make_state(), make_batch(8)
    single = jnp.float32(0.25), jnp.float32(0.75)
    rows = tuple(jnp.full(8, time) for time in single)
    one, each = (
        VELOCITY(AGENT.actor, state.actor.params, batch.obs, batch.action, *times)
        for times in (single, rows)
    )
    np.testing.assert_allclose(one, each, rtol=1e-5)


@pytest.mark.parametrize("explore", [True, False])
def test_acting_keeps_the_best_of_its_flows(explore: bool) -> None:
    state, obs = make_state(), make_batch(8).obs
    action = ACT(AGENT, state, obs, KEY, explore=explore)
    np.testing.assert_allclose(action, chosen_by_hand(state, obs, KEY), rtol=1e-4, atol=1e-5)
    assert float(np.abs(action).max()) <= 2.0


def test_parameter_count_on_humanoid() -> None:
    state = jax.eval_shape(MFP(Spec(376, 17)).init, KEY)
    assert count_parameters(state) == 702_739


@pytest.mark.parametrize("imitate", ["best", "replay"])
def test_order_of_an_update(imitate: Any) -> None:
    agent = replace(AGENT, imitate=imitate, constraint_weight=0.5)
    state, batch = make_state(), make_batch(8)
    new, metrics, rewrite = UPDATE(agent, state, batch, KEY)
    next_key, best_key, flow_key = jax.random.split(KEY, 3)
    # The backup: best candidate of the online networks, valued by the target copy's minimum.
    next_action = chosen_by_hand(state, batch.next_obs, next_key)
    next_q = np.asarray(VALUE(state.critic.target_params, batch.next_obs, next_action))
    bootstrap = 0.99 * np.asarray(batch.bootstrap) * next_q.min(axis=0)
    backup = 0.2 * np.asarray(batch.reward) + bootstrap
    np.testing.assert_allclose(metrics["critic/backup"], backup.mean(), rtol=1e-4)
    q = np.asarray(VALUE(state.critic.params, batch.obs, batch.action))
    bellman = ((q - backup) ** 2).mean(axis=1).sum()
    np.testing.assert_allclose(metrics["critic/bellman"], bellman, rtol=1e-4)

    def imitation(model: Array | np.ndarray) -> float:
        return float(LOSS(AGENT.actor, state.actor.params, batch.obs, model, 0.5, flow_key))

    # The policy: imitates what the updated critics, not the old ones, like best.
    chosen = chosen_by_hand(state._replace(critic=new.critic), batch.obs, best_key)
    model = chosen if imitate == "best" else batch.action
    np.testing.assert_allclose(metrics["policy/imitation"], imitation(model), rtol=1e-4)
    assert not np.allclose(chosen, chosen_by_hand(state, batch.obs, best_key))
    # The target copy follows the critics after their step.
    slow = optax.incremental_update(new.critic.params, state.critic.target_params, 0.005)
    same = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    jax.tree.map(same, new.critic.target_params, slow)
    assert rewrite is None


def test_flow_learns_the_law_it_imitates() -> None:
    """Trained towards N(0.7, 0.6²), one jump and four draw that law, not its mean alone."""
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
        sample = jax.jit(partial(replace(actor, num_steps=num_steps).sample, num_candidates=16))
        drawn = np.asarray(sample(params, obs, key=KEY))
        assert drawn.shape == (16, 256, 1)
        assert abs(drawn.mean() - 0.7) < 0.1
        assert abs(drawn.std() - 0.6) < 0.15
