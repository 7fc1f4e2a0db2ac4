"""SAC: its log-probability, its losses by hand and the order of an update."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parts import KEY, SPEC, act, assert_moved, make_batch, make_state, update

from langevinrl.actors import TanhGaussianActor
from langevinrl.agents.sac import SAC, State
from langevinrl.networks import MLP
from langevinrl.types import Array, Batch, Spec

# A rate large enough that weights before and after a step differ clearly.
AGENT = SAC(
    SPEC, hidden=(8,), critic_learning_rate=0.05, actor_learning_rate=0.05,
    temperature_learning_rate=0.05,
)  # fmt: skip
FORWARD = jax.jit(MLP.apply, static_argnums=0)
SAMPLE = jax.jit(TanhGaussianActor.sample_with_log_prob, static_argnums=0)
VALUE = jax.jit(AGENT.critic.apply)
ORIGIN = jnp.zeros((1, 1))  # an observation


def gaussian_actor(
    mean: list[float], log_std: list[float], bound: float = 2.0, correction: bool = True
) -> tuple[TanhGaussianActor, Any]:
    """Return an actor and weights that give these moments for every observation."""
    network = MLP((1,), 2 * len(mean), (), "gelu")
    params = network.init(jax.random.key(0))
    params["layers"][0]["bias"] = jnp.asarray(mean + log_std)
    params["inputs"] = [jnp.zeros_like(params["inputs"][0])]
    return TanhGaussianActor(network, bound, correction), params


def cumulative_normal(z: np.ndarray) -> np.ndarray:
    return np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in z])


def log_prob_by_hand(agent: SAC, params: Any, obs: Array, noise: Array) -> np.ndarray:
    """Return the log-density of bound x tanh(u), u Gaussian, from 1 - tanh² in float64."""
    out = np.asarray(FORWARD(agent.actor.network, params, obs), np.float64)
    mean, log_std = np.split(out, 2, axis=-1)
    log_std, z = np.clip(log_std, -20, 0.5), np.asarray(noise, np.float64)
    derivative = agent.spec.act_bound * (1 - np.tanh(mean + np.exp(log_std) * z) ** 2)
    return (-(z**2) / 2 - log_std - math.log(2 * math.pi) / 2 - np.log(derivative)).sum(axis=-1)


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, -1.0), (-0.4, 0.4)])
def test_log_probability_follows_from_the_change_of_variables(mean: float, log_std: float) -> None:
    actor, params = gaussian_actor([mean], [log_std])
    z = np.linspace(-6, 6, 20_001)
    noise = jnp.asarray(z, jnp.float32)[:, None, None]
    action, log_prob = SAMPLE(actor, params, ORIGIN, noise)
    # In float64, because differences of saturated float32 actions are mostly rounding.
    a = 2.0 * np.tanh(mean + np.exp(log_std) * z)
    np.testing.assert_allclose(action[:, 0, 0], a, atol=1e-5)
    density = np.exp(np.asarray(log_prob[:, 0], np.float64))
    assert abs(np.trapezoid(density, a) - 1) < 1e-3
    inside = slice(2_000, -2_000)  # without the tails, which have almost no mass
    expected = np.gradient(cumulative_normal(z), a)
    np.testing.assert_allclose(density[inside], expected[inside], rtol=2e-3)


def test_log_probability_is_summed_over_axes() -> None:
    noise = jnp.asarray([[[0.3, -1.2]]])
    both, params = gaussian_actor([0.5, -0.2], [-0.5, 0.1])
    total = SAMPLE(both, params, ORIGIN, noise)[1]
    parts = [gaussian_actor([m], [s]) for m, s in [(0.5, -0.5), (-0.2, 0.1)]]
    single = [
        SAMPLE(actor, params, ORIGIN, noise[..., i : i + 1])[1]
        for i, (actor, params) in enumerate(parts)
    ]
    np.testing.assert_allclose(total, single[0] + single[1], rtol=1e-6)


def test_without_correction_the_log_probability_is_the_gaussians() -> None:
    actor, params = gaussian_actor([0.4], [-0.3], correction=False)
    action, log_prob = SAMPLE(actor, params, ORIGIN, jnp.full((1, 1), 1.5))
    u, std = 0.4 + 1.5 * math.exp(-0.3), math.exp(-0.3)
    density = math.exp(-0.5 * ((u - 0.4) / std) ** 2) / (std * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(log_prob, [math.log(density)], rtol=1e-5)
    np.testing.assert_allclose(action, [[2 * math.tanh(u)]], rtol=1e-6)


def test_deviation_is_clipped_and_saturated_actions_have_finite_gradients() -> None:
    wide, params = gaussian_actor([0.0], [3.0])
    action = SAMPLE(wide, params, ORIGIN, jnp.ones((1, 1)))[0]
    np.testing.assert_allclose(action, [[2 * math.tanh(math.exp(0.5))]], rtol=1e-6)
    narrow, params = gaussian_actor([50.0], [-90.0])

    def log_prob(params: Any) -> Array:
        return SAMPLE(narrow, params, ORIGIN, jnp.ones((1, 1)))[1].sum()

    # log N = -1/2 + 20 - log √2π; the squash at u = 50 takes 2 (log 2 - 50), the box log 2.
    expected = -0.5 + 20 - math.log(2 * math.pi) / 2 - 2 * (math.log(2) - 50) - math.log(2)
    np.testing.assert_allclose(log_prob(params), expected, rtol=1e-6)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(jax.grad(log_prob)(params)))


def test_evaluation_is_the_squashed_mean() -> None:
    state, obs = make_state(AGENT), make_batch(8).obs
    mean = FORWARD(AGENT.actor.network, state.actor.params, obs)[:, :2]
    for seed in (0, 1):
        action = act(AGENT, state, obs, jax.random.key(seed), explore=False)
        np.testing.assert_allclose(action, 2 * np.tanh(mean), rtol=1e-5)


def test_exploration_samples_the_gaussian() -> None:
    state, obs, noise = make_state(AGENT), make_batch(8).obs, AGENT.noise(KEY, 8)
    mean, log_std = np.split(FORWARD(AGENT.actor.network, state.actor.params, obs), 2, axis=1)
    raw = mean + np.exp(np.clip(log_std, -20, 0.5)) * np.asarray(noise)[:, 0]
    np.testing.assert_allclose(act(AGENT, state, obs), 2 * np.tanh(raw), rtol=1e-4, atol=1e-5)


def test_best_of_takes_the_most_valuable_sample() -> None:
    agent = replace(AGENT, best_of=5)
    state, obs = make_state(AGENT), make_batch(8).obs
    noise = jnp.moveaxis(agent.noise(KEY, 8), 1, 0)
    candidates = np.asarray(SAMPLE(agent.actor, state.actor.params, obs, noise)[0])
    scores = np.stack(
        [np.asarray(VALUE(state.critic.params, obs, c)).min(axis=0) for c in candidates]
    )
    expected = candidates[scores.argmax(axis=0), np.arange(8)]
    np.testing.assert_allclose(act(agent, state, obs), expected, rtol=1e-5)


def test_temperature_starts_at_e_and_its_target_is_minus_the_action_size() -> None:
    np.testing.assert_allclose(make_state(AGENT).temperature.params, 1.0, rtol=1e-6)
    assert AGENT.temperature.target_entropy == -2.0
    assert replace(AGENT, target_entropy_scale=0.5).temperature.target_entropy == -1.0


def test_backup_includes_the_entropy_of_the_next_action() -> None:
    state, batch = make_state(AGENT), make_batch(8)
    noise = AGENT.noise(jax.random.split(KEY)[0], 8)[:, 0]
    action = SAMPLE(AGENT.actor, state.actor.params, batch.next_obs, noise)[0]
    log_prob = log_prob_by_hand(AGENT, state.actor.params, batch.next_obs, noise)
    q = np.asarray(VALUE(state.critic.target_params, batch.next_obs, action))
    soft = q.min(axis=0) - math.e * log_prob  # log α = 1
    expected = 0.2 * np.asarray(batch.reward) + 0.99 * np.asarray(batch.bootstrap) * soft
    before = np.asarray(VALUE(state.critic.params, batch.obs, batch.action))
    metrics = update(AGENT, state, batch).metrics
    np.testing.assert_allclose(metrics["critic/backup"], expected.mean(), rtol=1e-4)
    bellman = ((before - expected) ** 2).mean(axis=1).sum()
    np.testing.assert_allclose(metrics["critic/bellman"], bellman, rtol=1e-4)


@pytest.mark.parametrize("correction", [True, False])
def test_order_of_an_update(correction: bool) -> None:
    agent = replace(AGENT, squash_correction=correction)
    state, batch = make_state(AGENT), make_batch(8)
    new, metrics, _ = update(agent, state, batch)
    noise = jax.random.normal(jax.random.split(KEY)[1], batch.action.shape)
    action, log_prob = SAMPLE(agent.actor, state.actor.params, batch.obs, noise)

    def improvement(critic_params: Any) -> float:
        q = np.asarray(VALUE(critic_params, batch.obs, action)).min(axis=0)
        return float((math.e * np.asarray(log_prob) - q).mean())

    # The policy uses the updated critics and the old temperature.
    after, before = improvement(new.critic.params), improvement(state.critic.params)
    np.testing.assert_allclose(metrics["policy/improvement"], after, rtol=1e-4)
    assert abs(after - before) > 1e-2
    # The temperature uses the log-probability before the policy's step.
    loss = -1.0 * (float(log_prob.mean()) + agent.temperature.target_entropy)
    np.testing.assert_allclose(metrics["temperature/loss"], loss, rtol=1e-4)
    np.testing.assert_allclose(metrics["policy/entropy"], -log_prob.mean(), rtol=1e-4)
    # Adam's first step has the size of its rate.
    step = -0.05 * np.sign(-float(log_prob.mean()) - agent.temperature.target_entropy)
    np.testing.assert_allclose(new.temperature.params, 1.0 + step, rtol=1e-4)
    assert_moved(state.critic, new.critic, 0.005)
    if correction:
        hand = log_prob_by_hand(agent, state.actor.params, batch.obs, noise)
        np.testing.assert_allclose(log_prob, hand, rtol=1e-3, atol=1e-3)


def test_policy_finds_the_rewarded_action() -> None:
    agent = SAC(
        Spec(1, 1, 2.0), gamma=0.0, reward_scale=1.0, hidden=(32,), critic_learning_rate=1e-2,
        actor_learning_rate=3e-3, initial_alpha=1.0, temperature_learning_rate=1e-2,
    )  # fmt: skip
    action = np.linspace(-2, 2, 64, dtype=np.float32)[:, None]
    obs, ones = np.ones((64, 1), np.float32), np.ones(64, np.float32)
    reward = -4 * np.square(action[:, 0] - 1.2)
    rows: Any = (obs, action, reward, ones, obs, np.arange(64), {})
    batch = Batch(*rows)

    def learn(state: State, key: Array) -> tuple[State, dict[str, Array]]:
        new, metrics, _ = agent.update(state, batch, key)
        return new, metrics

    state, metrics = jax.lax.scan(learn, agent.init(KEY), jax.random.split(KEY, 600))
    assert all(np.isfinite(value).all() for value in metrics.values())
    assert abs(float(act(agent, state, obs[:1], explore=False)[0, 0]) - 1.2) < 0.15
    entropy = np.asarray(metrics["policy/entropy"])[-100:].mean()
    assert abs(entropy + 1.0) < 0.3  # its target
