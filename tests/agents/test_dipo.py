"""DIPO: action ascent by hand, what each loss sees, clipping, targets and the rewritten column."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from parts import SPEC, close, gradient, make_batch, set_apart

from langevinrl.agents.dipo import DIPO, State
from langevinrl.learner import count_parameters
from langevinrl.types import Array, Batch, Spec, Update

# Rates large enough that "before the step" and "after the step" are far apart.
AGENT = DIPO(
    SPEC,
    hidden=(8, 8),
    num_steps=3,
    num_ascent_steps=4,
    critic_learning_rate=0.05,
    actor_learning_rate=0.05,
    max_norm=1e6,
)
IMPROVE = jax.jit(AGENT._improve)
KEY = jax.random.key(7)


def make_rows() -> Batch:
    rng = np.random.default_rng(1)
    improved = jnp.asarray(rng.uniform(-1.9, 1.9, size=(6, 2)), jnp.float32)
    return make_batch(6)._replace(extra={"improved": improved})


def make_state(agent: DIPO = AGENT) -> State:
    state = agent.init(jax.random.key(0))
    return State(set_apart(state.critic), set_apart(state.actor), state.updates)


@partial(jax.jit, static_argnums=0)
def update(agent: DIPO, state: State, batch: Batch) -> Update:
    return agent.update(state, batch, KEY)


def test_parameter_count_on_humanoid() -> None:
    state = jax.eval_shape(DIPO(Spec(376, 17)).init, KEY)
    assert count_parameters(state) == 710_419


def test_actions_climb_as_adam_would_by_hand() -> None:
    state, batch, bound = make_state(), make_rows(), SPEC.act_bound
    slope = jax.grad(
        lambda a: -AGENT.critic.apply(state.critic.params, batch.obs, a).min(axis=0).sum()
    )
    action = np.asarray(batch.extra["improved"], np.float64)
    first, second = np.zeros_like(action), np.zeros_like(action)
    for step in range(1, AGENT.num_ascent_steps + 1):
        grad = np.asarray(slope(jnp.asarray(action, jnp.float32)), np.float64)
        norm = np.sqrt((grad**2).sum())  # one norm for all rows
        assert norm > AGENT.ascent_max_norm
        grad *= AGENT.ascent_max_norm / norm
        first, second = 0.9 * first + 0.1 * grad, 0.999 * second + 0.001 * grad**2
        scaled = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        action = np.clip(action - AGENT.ascent_rate * scaled, -bound, bound)
    improved = IMPROVE(state.critic.params, batch.obs, batch.extra["improved"])
    np.testing.assert_allclose(improved, action, atol=1e-5)


def test_climbing_stops_at_the_box() -> None:
    agent = replace(AGENT, ascent_rate=3.0)
    state, batch = make_state(agent), make_rows()
    improved = agent._improve(state.critic.params, batch.obs, batch.extra["improved"])
    assert np.abs(improved).max() == SPEC.act_bound


def test_the_column_is_rewritten_with_actions_improved_by_the_new_critics() -> None:
    state, batch = make_state(), make_rows()
    new, _, rewrite = update(AGENT, state, batch)
    assert rewrite is not None and list(rewrite) == list(AGENT.columns) == ["improved"]
    stored = batch.extra["improved"]
    by_new = IMPROVE(new.critic.params, batch.obs, stored)
    np.testing.assert_allclose(rewrite["improved"], by_new, atol=1e-5)
    assert not close(rewrite["improved"], IMPROVE(state.critic.params, batch.obs, stored))


def test_policy_denoises_the_improved_actions_at_half_weight() -> None:
    state, batch = make_state(), make_rows()
    new, _, rewrite = update(AGENT, state, batch)
    assert rewrite is not None
    noise_key = jax.random.split(KEY)[1]
    step_key, draw_key = jax.random.split(noise_key)
    step = jax.random.randint(step_key, (6,), 0, 3)
    noise = jax.random.normal(draw_key, (6, 2))
    kept = AGENT.actor.schedule.alpha_bar[step][:, None]
    noisy = jnp.sqrt(kept) * rewrite["improved"] + jnp.sqrt(1 - kept) * noise

    def loss(params: Any) -> Array:
        error = AGENT.actor.network.apply(params, batch.obs, noisy, step) - noise
        return 0.5 * jnp.square(error).mean()

    np.testing.assert_allclose(new.actor.loss, loss(state.actor.params), rtol=1e-4)
    assert close(gradient(new.actor.opt_state), jax.grad(loss)(state.actor.params))


@pytest.mark.parametrize("source", ["target", "online"])
def test_next_actions_come_from_the_named_policy(source: Literal["target", "online"]) -> None:
    agent = replace(AGENT, backup_policy=source)
    state, batch = make_state(agent), make_rows()
    params = state.actor.target_params if source == "target" else state.actor.params
    next_action = agent.actor.sample(params, batch.next_obs, 1, jax.random.split(KEY)[0])[0]
    next_q = np.asarray(
        agent.critic.apply(state.critic.target_params, batch.next_obs, next_action)
    ).min(axis=0)
    backup = 0.2 * np.asarray(batch.reward) + 0.99 * np.asarray(batch.bootstrap) * next_q
    q = np.asarray(agent.critic.apply(state.critic.params, batch.obs, batch.action))
    _, metrics, _ = update(agent, state, batch)
    np.testing.assert_allclose(metrics["critic/backup"], backup.mean(), rtol=1e-4, atol=1e-6)
    bellman = ((q - backup) ** 2).mean(axis=1).sum()
    np.testing.assert_allclose(metrics["critic/bellman"], bellman, rtol=1e-4)


def test_critics_and_policy_descend_clipped_gradients() -> None:
    agent = replace(AGENT, max_norm=1e-3)
    new = update(agent, make_state(agent), make_rows()).state
    squares = [jnp.square(g).reshape(2, -1).sum(1) for g in
               jax.tree.leaves(gradient(new.critic.opt_state))]  # fmt: skip
    np.testing.assert_allclose(np.sqrt(np.sum(squares, axis=0)), [1e-3, 1e-3], rtol=1e-3)
    square = sum(jnp.square(g).sum() for g in jax.tree.leaves(gradient(new.actor.opt_state)))
    np.testing.assert_allclose(np.sqrt(square), 1e-3, rtol=1e-3)


def test_target_policy_moves_every_second_update_and_target_critics_every_one() -> None:
    batch, states = make_rows(), [make_state()]
    for _ in range(3):
        states.append(update(AGENT, states[-1], batch).state)
    for k, (old, new) in enumerate(pairwise(states)):
        moved = optax.incremental_update(new.critic.params, old.critic.target_params, 0.005)
        assert close(new.critic.target_params, moved)
        stay, go = old.actor.target_params, new.actor.params
        expected = optax.incremental_update(go, stay, 0.005) if k % 2 == 0 else stay
        assert close(new.actor.target_params, expected)
        assert close(new.actor.target_params, stay) == (k % 2 == 1)


def test_acting_is_one_chain_of_the_online_policy() -> None:
    state, obs = make_state(), make_rows().obs
    expected = AGENT.actor.sample(state.actor.params, obs, 1, KEY)[0]
    for explore in (True, False):
        np.testing.assert_allclose(AGENT.act(state, obs, KEY, explore=explore), expected, atol=1e-6)


def test_of_several_chains_the_online_critics_choose() -> None:
    agent = replace(AGENT, best_of=5)
    state, obs = make_state(agent), make_rows().obs
    candidates = agent.actor.sample(state.actor.params, obs, 5, KEY)
    value = agent.critic.apply(state.critic.params, obs, candidates).min(axis=0)
    chosen = agent.act(state, obs, KEY, explore=True)
    best = agent.critic.apply(state.critic.params, obs, chosen).min(axis=0)
    np.testing.assert_allclose(best, value.max(axis=0), rtol=1e-4, atol=1e-5)


def test_fifty_updates_stay_finite_and_improvement_accumulates() -> None:
    state, batch = make_state(), make_rows()
    for _ in range(50):
        state, metrics, rewrite = update(AGENT, state, batch)
        assert rewrite is not None and all(np.isfinite(value) for value in metrics.values())
        batch = batch._replace(extra=rewrite)
    assert np.abs(batch.extra["improved"]).max() <= SPEC.act_bound
