"""DACER: its distributional critics, gradient through the chain, delays and entropy."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from parts import KEY, SPEC, act, assert_moved, close, gradient, make_batch, make_state, update

from langevinrl.agents.dacer import DACER, State
from langevinrl.losses import distributional, gaussian_backup
from langevinrl.types import Array, Batch

# Rates large enough that weights before and after a step differ clearly.
AGENT = DACER(
    SPEC, hidden=(8, 8), num_steps=3, critic_learning_rate=0.05, actor_learning_rate=0.05,
    temperature_delay=3, num_entropy_actions=20, num_gaussians=2,
)  # fmt: skip
BACKUP_KEY, ACTOR_KEY, _ = jax.random.split(KEY, 3)
BATCH = make_batch(6)


def backups(state: State, batch: Batch) -> tuple[Array, Array]:
    """Return the mean and the drawn backup of an update."""
    action_key, draw_key = jax.random.split(BACKUP_KEY)
    next_action = act(AGENT, state, batch.next_obs, action_key)
    moments = AGENT.moments(state.critic.target_params, batch.next_obs, jnp.asarray(next_action))
    return gaussian_backup(*moments, jax.random.normal(draw_key, (6,)), batch, 0.99, 0.2)


def test_spread_starts_at_the_batch_and_then_moves_slowly() -> None:
    state = make_state(AGENT)
    new = update(AGENT, state, BATCH).state
    std = AGENT.moments(state.critic.params, BATCH.obs, BATCH.action)[1].mean(axis=1)
    np.testing.assert_allclose(new.spread, std, rtol=1e-5)
    after = update(AGENT, new, BATCH).state
    std = AGENT.moments(new.critic.params, BATCH.obs, BATCH.action)[1].mean(axis=1)
    np.testing.assert_allclose(after.spread, 0.995 * new.spread + 0.005 * std, rtol=1e-5)


def test_critics_descend_with_the_updated_spread() -> None:
    state = make_state(AGENT)
    new, metrics, _ = update(AGENT, state, BATCH)
    y, drawn = backups(state, BATCH)
    np.testing.assert_allclose(metrics["critic/backup"], y.mean(), rtol=1e-4, atol=1e-6)

    @jax.jit
    def loss(params: Any, spread: Array) -> Array:
        moments = AGENT.moments(params, BATCH.obs, BATCH.action)
        return distributional(*moments, y, drawn, spread)

    taken = gradient(new.critic.opt_state)
    assert close(taken, jax.grad(loss)(state.critic.params, new.spread))
    assert not close(taken, jax.grad(loss)(state.critic.params, state.spread))


def test_policy_gradient_of_the_old_critics_passes_through_the_whole_chain() -> None:
    state, batch = make_state(AGENT), BATCH
    taken = gradient(update(AGENT, state, batch).state.actor.opt_state)
    chain_key, noise_key = jax.random.split(ACTOR_KEY)
    chain = AGENT.actor.noise(chain_key, 6, 1)

    @jax.jit
    def loss(params: Any) -> Array:
        action = AGENT.actor.sample(params, batch.obs, chain)
        noise = 0.15 * 3.0 * jax.random.normal(noise_key, action.shape)
        action = jnp.clip(action + noise, -2, 2)[0]
        return -AGENT.critic.apply(state.critic.params, batch.obs, action)[..., 0].min(0).mean()

    # Finite differences of the loss include every step of the chain.
    leaves, tree = jax.tree.flatten(state.actor.params)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    along = jax.tree.unflatten(
        tree, [jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)]
    )

    def shifted(size: float) -> Array:
        return loss(jax.tree.map(lambda p, d: p + size * d, state.actor.params, along))

    derivative = sum(
        (g * d).sum() for g, d in zip(jax.tree.leaves(taken), jax.tree.leaves(along), strict=True)
    )
    assert abs(derivative) > 1e-3
    np.testing.assert_allclose((shifted(1e-3) - shifted(-1e-3)) / 2e-3, derivative, rtol=0.03)


def test_policy_target_critics_and_temperature_move_only_when_due() -> None:
    states = [make_state(AGENT)]
    for _ in range(4):
        states.append(update(AGENT, states[-1], BATCH).state)
    for k, (old, new) in enumerate(pairwise(states)):
        assert not close(new.critic.params, old.critic.params)
        assert close(new.actor.params, old.actor.params) == (k % 2 == 1)
        if k % 2 == 0:
            assert_moved(old.critic, new.critic, 0.005)
        else:
            assert close(new.critic.target_params, old.critic.target_params)
    log_alpha = np.array([state.temperature.params for state in states])
    # The entropy is above its target. Adam's first step has the size of its rate, and the second
    # nearly so where signs agree.
    np.testing.assert_allclose(np.diff(log_alpha), [-0.03, 0.0, 0.0, -0.03], atol=3e-3)
    assert states[1].entropy == states[2].entropy == states[3].entropy != states[4].entropy


def test_entropy_includes_the_exploration_noise() -> None:
    # A chain that starts at zero with zero weights stays there, so exploration is all the noise.
    agent = replace(AGENT, num_steps=1, start_std=0.0, hidden=())
    agent = replace(agent, num_entropy_actions=400, num_gaussians=1, target_entropy_scale=-2.0)
    state = make_state(agent)
    blank = jax.tree.map(jnp.zeros_like, state.actor.params)
    state = state._replace(actor=state.actor._replace(params=blank))
    new, metrics, _ = update(agent, state, BATCH)
    expected = np.log(2 * np.pi * np.e * (0.15 * 3.0) ** 2)  # two axes
    np.testing.assert_allclose(new.entropy, expected, atol=0.1)
    assert metrics["policy/entropy"] == new.entropy
    loss = np.log(3.0) * (float(new.entropy) - 2.0 * 2)
    np.testing.assert_allclose(new.temperature.loss, loss, rtol=1e-4)
    # The target is above the entropy here, so the noise grows.
    np.testing.assert_allclose(new.temperature.params, np.log(3.0) + 0.03, rtol=1e-4)


def test_exploration_adds_clipped_noise_to_the_chain() -> None:
    state, noise = make_state(AGENT), AGENT.noise(KEY, 6)
    chain = np.asarray(AGENT.actor.sample(state.actor.params, BATCH.obs, noise.chain)[0])
    np.testing.assert_allclose(act(AGENT, state, BATCH.obs, explore=False), chain, atol=1e-5)
    explored = np.clip(chain + 0.15 * 3.0 * np.asarray(noise.action), -2, 2)
    np.testing.assert_allclose(act(AGENT, state, BATCH.obs), explored, atol=1e-5)


def test_best_of_takes_the_chain_with_the_highest_mean() -> None:
    agent = replace(AGENT, best_of=5)
    state, obs = make_state(agent), BATCH.obs
    candidates = agent.actor.sample(state.actor.params, obs, agent.noise(KEY, 6).chain)
    mean = agent.critic.apply(state.critic.params, obs, candidates)[..., 0].min(axis=0)
    chosen = jnp.asarray(act(agent, state, obs, explore=False))
    best = agent.critic.apply(state.critic.params, obs, chosen)[..., 0].min(axis=0)
    np.testing.assert_allclose(best, mean.max(axis=0), rtol=1e-4, atol=1e-5)
