"""SAC: its log-probability, its losses by hand, and the order of an update."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from parts import SPEC, make_batch, set_apart

from langevinrl import losses
from langevinrl.actors import TanhGaussianActor
from langevinrl.agents.sac import SAC, State
from langevinrl.learner import count_parameters
from langevinrl.networks import MLP
from langevinrl.types import Array, Batch, Spec

# A rate large enough that "before the step" and "after the step" are far apart.
AGENT = SAC(
    SPEC,
    hidden=(8,),
    critic_learning_rate=0.05,
    actor_learning_rate=0.05,
    temperature_learning_rate=0.05,
)
KEY = jax.random.key(7)
# Compiled whole: operation by operation, JAX compiles each of them.
INIT = jax.jit(SAC.init, static_argnums=0)
FORWARD = jax.jit(MLP.apply, static_argnums=0)
PLACE = jax.jit(TanhGaussianActor.sample_with_log_prob, static_argnums=0)
VALUE = jax.jit(AGENT.critic.apply)
UPDATE = jax.jit(SAC.update, static_argnums=0)
ACT = jax.jit(SAC.act, static_argnums=0, static_argnames="explore")


def make_state(agent: SAC = AGENT) -> State:
    state = INIT(agent, jax.random.key(0))
    return state._replace(critic=set_apart(state.critic))


def gaussian_actor(
    mean: list[float], log_std: list[float], bound: float = 2.0, correction: bool = True
) -> tuple[TanhGaussianActor, Any]:
    """An actor without hidden layers, and weights that give these moments for every observation."""
    network = MLP((1,), 2 * len(mean), (), "gelu")
    params = network.init(jax.random.key(0))
    params["layers"][0]["bias"] = jnp.asarray(mean + log_std)
    params["inputs"] = [jnp.zeros_like(params["inputs"][0])]
    return TanhGaussianActor(network, bound, correction), params


def cumulative_normal(z: np.ndarray) -> np.ndarray:
    return np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in z])


def log_prob_by_hand(agent: SAC, params: Any, obs: Array, noise: Array) -> np.ndarray:
    """Log-density of bound x tanh(u), u Gaussian, from 1 - tanh² itself in float64."""
    out = np.asarray(FORWARD(agent.actor.network, params, obs), np.float64)
    mean, log_std = np.split(out, 2, axis=-1)
    log_std, z = np.clip(log_std, -20, 0.5), np.asarray(noise, np.float64)
    slope = agent.spec.act_bound * (1 - np.tanh(mean + np.exp(log_std) * z) ** 2)
    return (-(z**2) / 2 - log_std - math.log(2 * math.pi) / 2 - np.log(slope)).sum(axis=-1)


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, -1.0), (0.8, 0.0), (-0.4, 0.4)])
def test_log_probability_is_the_change_of_variables(mean: float, log_std: float) -> None:
    actor, params = gaussian_actor([mean], [log_std])
    z = np.linspace(-6, 6, 20_001)
    noise = jnp.asarray(z, jnp.float32)[:, None, None]
    action, log_prob = PLACE(actor, params, jnp.zeros((1, 1)), noise)
    # Actions again in float64: differences of saturated float32 actions are mostly rounding.
    a = 2.0 * np.tanh(mean + np.exp(log_std) * z)
    np.testing.assert_allclose(action[:, 0, 0], a, atol=1e-5)
    density = np.exp(np.asarray(log_prob[:, 0], np.float64))
    assert abs(np.trapezoid(density, a) - 1) < 1e-3
    inside = slice(2_000, -2_000)  # both tails have next to no mass
    slope = np.gradient(cumulative_normal(z), a)
    np.testing.assert_allclose(density[inside], slope[inside], rtol=2e-3)


def test_log_probability_adds_up_over_axes() -> None:
    noise = jnp.asarray([[[0.3, -1.2]]])
    both, params = gaussian_actor([0.5, -0.2], [-0.5, 0.1])
    total = PLACE(both, params, jnp.zeros((1, 1)), noise)[1]
    parts = [gaussian_actor([m], [s]) for m, s in [(0.5, -0.5), (-0.2, 0.1)]]
    single = [
        PLACE(actor, params, jnp.zeros((1, 1)), noise[..., i : i + 1])[1]
        for i, (actor, params) in enumerate(parts)
    ]
    np.testing.assert_allclose(total, single[0] + single[1], rtol=1e-6)


def test_without_correction_the_gaussian_alone_counts() -> None:
    actor, params = gaussian_actor([0.4], [-0.3], correction=False)
    action, log_prob = PLACE(actor, params, jnp.zeros((1, 1)), jnp.full((1, 1), 1.5))
    u, std = 0.4 + 1.5 * math.exp(-0.3), math.exp(-0.3)
    density = math.exp(-0.5 * ((u - 0.4) / std) ** 2) / (std * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(log_prob, [math.log(density)], rtol=1e-5)
    np.testing.assert_allclose(action, [[2 * math.tanh(u)]], rtol=1e-6)


def test_deviation_is_clipped_and_saturation_stays_finite() -> None:
    wide, params = gaussian_actor([0.0], [3.0])
    action = PLACE(wide, params, jnp.zeros((1, 1)), jnp.ones((1, 1)))[0]
    np.testing.assert_allclose(action, [[2 * math.tanh(math.exp(0.5))]], rtol=1e-6)
    narrow, params = gaussian_actor([50.0], [-90.0])

    def log_prob(params: Any) -> Array:
        return PLACE(narrow, params, jnp.zeros((1, 1)), jnp.ones((1, 1)))[1].sum()

    # log N = -1/2 + 20 - log √2π; the squash at u = 50 takes 2 (log 2 - 50), the box log 2.
    expected = -0.5 + 20 - math.log(2 * math.pi) / 2 - 2 * (math.log(2) - 50) - math.log(2)
    np.testing.assert_allclose(log_prob(params), expected, rtol=1e-6)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(jax.grad(log_prob)(params)))


def test_evaluation_is_the_squashed_mean() -> None:
    state, obs = make_state(), make_batch(8).obs
    mean = FORWARD(AGENT.actor.network, state.actor.params, obs)[:, :2]
    for agent in (AGENT, replace(AGENT, best_of=4)):
        for seed in (0, 1):
            action = ACT(agent, state, obs, jax.random.key(seed), explore=False)
            np.testing.assert_allclose(action, 2 * np.tanh(mean), rtol=1e-5)


def test_exploration_draws_from_the_gaussian() -> None:
    state, obs = make_state(), np.tile(np.array([0.5, -1.0, 2.0], np.float32), (4_000, 1))
    out = FORWARD(AGENT.actor.network, state.actor.params, obs)[0]
    action = np.asarray(ACT(AGENT, state, obs, KEY, explore=True))
    assert np.abs(action).max() <= 2.0
    raw = np.arctanh(np.clip(action / 2, -1 + 1e-7, 1 - 1e-7))
    np.testing.assert_allclose(raw.mean(axis=0), out[:2], atol=0.08)
    np.testing.assert_allclose(raw.std(axis=0), np.exp(np.minimum(out[2:], 0.5)), rtol=0.05)
    assert not np.allclose(action, ACT(AGENT, state, obs, jax.random.key(1), explore=True))


def test_best_of_keeps_the_most_valuable_draw() -> None:
    agent = replace(AGENT, best_of=5)
    state, obs = make_state(), make_batch(8).obs
    noise = jax.random.normal(KEY, (5, 8, 2))
    candidates = np.asarray(PLACE(agent.actor, state.actor.params, obs, noise)[0])
    scores = np.stack(
        [np.asarray(VALUE(state.critic.params, obs, c)).min(axis=0) for c in candidates]
    )
    expected = candidates[scores.argmax(axis=0), np.arange(8)]
    np.testing.assert_allclose(ACT(agent, state, obs, KEY, explore=True), expected, rtol=1e-5)


def test_parameter_count_on_humanoid() -> None:
    state = jax.eval_shape(SAC(Spec(376, 17)).init, KEY)
    assert count_parameters(state) == 702_244


def test_temperature_starts_at_one_in_logs() -> None:
    state = make_state()
    np.testing.assert_allclose(state.temperature.params, 1.0, rtol=1e-6)
    assert AGENT.temperature.target_entropy == -2.0
    assert replace(AGENT, target_entropy_scale=0.5).temperature.target_entropy == -1.0


@pytest.mark.parametrize(
    ("log_alpha", "log_prob", "loss"),
    # -log α x mean(log π + H̄) with H̄ = -2
    [(1.0, [1.0, 2.0], 0.5), (1.0, [3.0, 2.0], -0.5), (-0.5, [-1.0, 0.0], -1.25)],
)
def test_temperature_loss_by_hand(log_alpha: float, log_prob: list[float], loss: float) -> None:
    entropy = -jnp.asarray(log_prob).mean()
    value = losses.temperature(jnp.asarray(log_alpha), entropy, AGENT.temperature.target_entropy)
    np.testing.assert_allclose(value, loss, rtol=1e-6)


def test_backup_pays_for_the_entropy_of_the_next_action() -> None:
    state, batch = make_state(), make_batch(8)
    noise = jax.random.normal(jax.random.split(KEY)[0], (1, 8, 2))[0]
    action = PLACE(AGENT.actor, state.actor.params, batch.next_obs, noise)[0]
    log_prob = log_prob_by_hand(AGENT, state.actor.params, batch.next_obs, noise)
    q = np.asarray(VALUE(state.critic.target_params, batch.next_obs, action))
    soft = q.min(axis=0) - math.e * log_prob  # log α = 1
    expected = 0.2 * np.asarray(batch.reward) + 0.99 * np.asarray(batch.bootstrap) * soft
    before = np.asarray(VALUE(state.critic.params, batch.obs, batch.action))
    metrics = UPDATE(AGENT, state, batch, KEY).metrics
    np.testing.assert_allclose(metrics["critic/backup"], expected.mean(), rtol=1e-4)
    bellman = ((before - expected) ** 2).mean(axis=1).sum()
    np.testing.assert_allclose(metrics["critic/bellman"], bellman, rtol=1e-4)


@pytest.mark.parametrize("correction", [True, False])
def test_order_of_an_update(correction: bool) -> None:
    agent = replace(AGENT, squash_correction=correction)
    state, batch = make_state(agent), make_batch(8)
    new, metrics, rewrite = UPDATE(agent, state, batch, KEY)
    noise = jax.random.normal(jax.random.split(KEY)[1], batch.action.shape)
    action, log_prob = PLACE(agent.actor, state.actor.params, batch.obs, noise)

    def improvement(critic_params: Any) -> float:
        q = np.asarray(VALUE(critic_params, batch.obs, action)).min(axis=0)
        return float((math.e * np.asarray(log_prob) - q).mean())

    # The policy climbs the updated critics at the old temperature ...
    after, before = improvement(new.critic.params), improvement(state.critic.params)
    np.testing.assert_allclose(metrics["policy/improvement"], after, rtol=1e-4)
    assert abs(after - before) > 1e-2
    # ... the temperature sees the log-probability of the policy before its step ...
    loss = -1.0 * (float(log_prob.mean()) + agent.temperature.target_entropy)
    np.testing.assert_allclose(metrics["temperature/loss"], loss, rtol=1e-4)
    np.testing.assert_allclose(metrics["policy/entropy"], -log_prob.mean(), rtol=1e-4)
    # ... and by Adam's first step moves its whole rate against the surplus of entropy.
    step = -0.05 * np.sign(-float(log_prob.mean()) - agent.temperature.target_entropy)
    np.testing.assert_allclose(new.temperature.params, 1.0 + step, rtol=1e-4)
    # The target copy follows the critics after their step.
    slow = optax.incremental_update(new.critic.params, state.critic.target_params, 0.005)
    same = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    jax.tree.map(same, new.critic.target_params, slow)
    assert rewrite is None
    if correction:
        hand = log_prob_by_hand(agent, state.actor.params, batch.obs, noise)
        np.testing.assert_allclose(log_prob, hand, rtol=1e-3, atol=1e-3)


def test_policy_finds_the_rewarded_action() -> None:
    agent = SAC(
        Spec(1, 1, 2.0),
        gamma=0.0,
        reward_scale=1.0,
        hidden=(32,),
        critic_learning_rate=1e-2,
        actor_learning_rate=3e-3,
        initial_alpha=1.0,
        temperature_learning_rate=1e-2,
    )
    action = np.linspace(-2, 2, 64, dtype=np.float32)[:, None]
    obs, ones = np.ones((64, 1), np.float32), np.ones(64, np.float32)
    reward = -4 * np.square(action[:, 0] - 1.2)
    rows: Any = (obs, action, reward, ones, obs, np.arange(64), {})
    batch = Batch(*rows)

    def learn(state: State, key: Array) -> tuple[State, dict[str, Array]]:
        new, metrics, _ = agent.update(state, batch, key)
        return new, metrics

    start = INIT(agent, KEY)
    state, metrics = jax.lax.scan(learn, start, jax.random.split(KEY, 600))
    assert all(np.isfinite(value).all() for value in metrics.values())
    assert abs(float(ACT(agent, state, obs[:1], KEY, explore=False)[0, 0]) - 1.2) < 0.15
    entropy = np.asarray(metrics["policy/entropy"])[-100:].mean()
    assert abs(entropy + 1.0) < 0.3  # held at H̄ = -1
