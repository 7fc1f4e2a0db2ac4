"""DACER: the distributional critic by hand, the gradient through the chain, delays, entropy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from parts import SPEC, close, gradient, make_batch, set_apart

from langevinrl.agents.dacer import DACER, State
from langevinrl.learner import count_parameters
from langevinrl.losses import distributional
from langevinrl.types import Array, Batch, Spec, Update

# Rates large enough that "before the step" and "after the step" are far apart.
AGENT = DACER(
    SPEC,
    hidden=(8, 8),
    num_steps=3,
    critic_learning_rate=0.05,
    actor_learning_rate=0.05,
    temperature_delay=3,
    num_entropy_actions=20,
    num_gaussians=2,
)
KEY = jax.random.key(7)
BACKUP_KEY, ACTOR_KEY, _ = jax.random.split(KEY, 3)


def make_state(agent: DACER = AGENT) -> State:
    state = agent.init(jax.random.key(0))
    return state._replace(critic=set_apart(state.critic))


@partial(jax.jit, static_argnums=0)
def update(agent: DACER, state: State, batch: Batch) -> Update:
    return agent.update(state, batch, KEY)


def test_parameter_count_on_humanoid() -> None:
    state = jax.eval_shape(DACER(Spec(376, 17)).init, KEY)
    assert count_parameters(state) == 707_909


def test_backups_follow_the_member_with_the_lower_mean() -> None:
    agent = replace(AGENT, hidden=())
    state, batch = make_state(agent), make_batch(400)
    batch = batch._replace(bootstrap=jnp.ones(400).at[:100].set(0.0))
    # Values that see no input: means 2 and -1, raw deviations 0 and 1.
    params = jax.tree.map(jnp.zeros_like, state.critic.target_params)
    params["body"]["layers"][0]["bias"] = jnp.array([[2.0, 0.0], [-1.0, 1.0]])
    state = state._replace(critic=state.critic._replace(target_params=params))
    y, drawn = agent._backups(state, batch, BACKUP_KEY)
    reward, bootstrap = np.asarray(batch.reward), np.asarray(batch.bootstrap)
    np.testing.assert_allclose(y, 0.2 * reward - 0.99 * bootstrap, rtol=1e-4, atol=1e-6)
    z = np.asarray(jax.random.normal(jax.random.split(BACKUP_KEY)[1], (400,)))
    assert np.abs(z).max() > 3  # one draw a row, for both members
    std = np.log1p(np.e)  # softplus(1)
    expected = np.asarray(y) + 0.99 * bootstrap * std * np.clip(z, -3, 3)
    np.testing.assert_allclose(drawn, expected, rtol=1e-4, atol=1e-5)


def test_spread_starts_at_the_batch_and_then_creeps() -> None:
    state, batch = make_state(), make_batch(6)
    new = update(AGENT, state, batch).state
    std = AGENT.moments(state.critic.params, batch.obs, batch.action)[1].mean(axis=1)
    np.testing.assert_allclose(new.spread, std, rtol=1e-5)
    after = update(AGENT, new, batch).state
    std = AGENT.moments(new.critic.params, batch.obs, batch.action)[1].mean(axis=1)
    np.testing.assert_allclose(after.spread, 0.995 * new.spread + 0.005 * std, rtol=1e-5)


def test_critics_descend_with_the_refreshed_spread() -> None:
    state, batch = make_state(), make_batch(6)
    new = update(AGENT, state, batch).state
    y, drawn = AGENT._backups(state, batch, BACKUP_KEY)

    def loss(params: Any, spread: Array) -> Array:
        moments = AGENT.moments(params, batch.obs, batch.action)
        return distributional(*moments, y, drawn, spread)

    taken = gradient(new.critic.opt_state)
    assert close(taken, jax.grad(loss)(state.critic.params, new.spread))
    assert not close(taken, jax.grad(loss)(state.critic.params, state.spread))


def test_policy_climbs_the_old_critics_through_the_whole_chain() -> None:
    state, batch = make_state(), make_batch(6)
    taken = gradient(update(AGENT, state, batch).state.actor.opt_state)
    chain_key, noise_key = jax.random.split(ACTOR_KEY)

    @jax.jit
    def loss(params: Any) -> Array:
        action = AGENT.actor.sample(params, batch.obs, 1, chain_key)
        noise = 0.15 * 3.0 * jax.random.normal(noise_key, action.shape)
        action = jnp.clip(action + noise, -2, 2)[0]
        return -AGENT.critic.apply(state.critic.params, batch.obs, action)[..., 0].min(0).mean()

    # Differences of the loss itself: they see every step of the chain, whatever is differentiated.
    leaves, tree = jax.tree.flatten(state.actor.params)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    along = jax.tree.unflatten(
        tree, [jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)]
    )

    def shifted(size: float) -> Array:
        return loss(jax.tree.map(lambda p, d: p + size * d, state.actor.params, along))

    slope = sum(
        (g * d).sum() for g, d in zip(jax.tree.leaves(taken), jax.tree.leaves(along), strict=True)
    )
    assert abs(slope) > 1e-3
    np.testing.assert_allclose((shifted(1e-3) - shifted(-1e-3)) / 2e-3, slope, rtol=0.03)


def test_policy_and_target_critics_move_every_second_update() -> None:
    batch, states = make_batch(6), [make_state()]
    for _ in range(4):
        states.append(update(AGENT, states[-1], batch).state)
    for k, (old, new) in enumerate(pairwise(states)):
        due = k % 2 == 0
        assert close(new.actor.params, old.actor.params) != due
        still = old.critic.target_params
        moved = optax.incremental_update(new.critic.params, still, 0.005)
        assert close(new.critic.target_params, moved if due else still)
        assert not close(new.critic.params, old.critic.params)


def test_temperature_falls_only_when_due_while_the_entropy_is_above_its_target() -> None:
    batch, states = make_batch(6), [make_state()]
    for _ in range(4):
        states.append(update(AGENT, states[-1], batch).state)
    log_alpha = np.array([state.temperature.params for state in states])
    # Adam's first step is as long as its rate, and so nearly is the second where signs agree.
    np.testing.assert_allclose(np.diff(log_alpha), [-0.03, 0.0, 0.0, -0.03], atol=3e-3)
    assert states[1].entropy == states[2].entropy == states[3].entropy != states[4].entropy


def test_entropy_is_that_of_the_actions_as_explored() -> None:
    # A chain that starts at zero under no network stays there; the noise on top is all there is.
    agent = replace(AGENT, num_steps=1, start_std=0.0, hidden=())
    agent = replace(agent, num_entropy_actions=400, num_gaussians=1, target_entropy_scale=-2.0)
    state, batch = make_state(agent), make_batch(6)
    blank = jax.tree.map(jnp.zeros_like, state.actor.params)
    state = state._replace(actor=state.actor._replace(params=blank))
    new, metrics, _ = update(agent, state, batch)
    expected = np.log(2 * np.pi * np.e * (0.15 * 3.0) ** 2)  # two axes
    np.testing.assert_allclose(new.entropy, expected, atol=0.1)
    assert metrics["policy/entropy"] == new.entropy
    loss = np.log(3.0) * (float(new.entropy) - 2.0 * 2)
    np.testing.assert_allclose(new.temperature.loss, loss, rtol=1e-4)
    # The target is above the entropy here: the noise must grow.
    np.testing.assert_allclose(new.temperature.params, np.log(3.0) + 0.03, rtol=1e-4)


def test_exploring_adds_clipped_noise_to_the_chain() -> None:
    state, obs = make_state(), make_batch(6).obs
    chain_key, noise_key = jax.random.split(KEY)
    chain = np.asarray(AGENT.actor.sample(state.actor.params, obs, 1, chain_key)[0])
    np.testing.assert_allclose(AGENT.act(state, obs, KEY, explore=False), chain, atol=1e-6)
    noise = 0.15 * 3.0 * np.asarray(jax.random.normal(noise_key, chain.shape))
    explored = AGENT.act(state, obs, KEY, explore=True)
    np.testing.assert_allclose(explored, np.clip(chain + noise, -2, 2), atol=1e-5)


def test_of_several_chains_the_higher_mean_is_chosen() -> None:
    agent = replace(AGENT, best_of=5)
    state, obs = make_state(agent), make_batch(6).obs
    candidates = agent.actor.sample(state.actor.params, obs, 5, jax.random.split(KEY)[0])
    mean = agent.critic.apply(state.critic.params, obs, candidates)[..., 0].min(axis=0)
    chosen = agent.act(state, obs, KEY, explore=False)
    best = agent.critic.apply(state.critic.params, obs, chosen)[..., 0].min(axis=0)
    np.testing.assert_allclose(best, mean.max(axis=0), rtol=1e-4, atol=1e-5)


def test_the_originals_chain_is_a_setting() -> None:
    actor = replace(AGENT, num_steps=20, schedule="vp", start_std=1.0).actor
    np.testing.assert_allclose(actor.schedule.beta[jnp.array([0, 19])], [0.0172249, 0.385917], 1e-4)
    assert actor.start_std == 1.0
    default = DACER(SPEC).actor
    np.testing.assert_allclose(default.schedule.alpha_bar[19], 0.034637, rtol=1e-4)
    assert default.start_std == 0.5


def test_fifty_updates_stay_finite() -> None:
    state, batch = make_state(), make_batch(6)
    for _ in range(50):
        state, metrics, rewrite = update(AGENT, state, batch)
        assert rewrite is None and all(np.isfinite(metric) for metric in metrics.values())
    assert np.abs(AGENT.act(state, batch.obs, KEY, explore=True)).max() <= SPEC.act_bound
