"""DIPO: action ascent by hand, the losses, clipping, targets and the rewritten column."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parts import (
    KEY,
    SPEC,
    act,
    assert_bellman,
    assert_moved,
    close,
    gradient,
    make_batch,
    make_state,
    update,
)

from langevinrl.agents.dipo import DIPO
from langevinrl.types import Array

# Rates large enough that weights before and after a step differ clearly.
AGENT = DIPO(
    SPEC, hidden=(8, 8), num_steps=3, num_ascent_steps=4, critic_learning_rate=0.05,
    actor_learning_rate=0.05, max_norm=1e6,
)  # fmt: skip
CRITIC = AGENT.critics.network
IMPROVE = jax.jit(AGENT._improve)
STORED = jnp.asarray(np.random.default_rng(1).uniform(-1.9, 1.9, size=(6, 2)), jnp.float32)
BATCH = make_batch(6)._replace(extra={"improved": STORED})


def test_actions_follow_adam_on_clipped_gradients() -> None:
    params = make_state(AGENT).critic.params
    descent = jax.jit(jax.grad(lambda a: -CRITIC.apply(params, BATCH.obs, a).min(axis=0).sum()))
    action = np.asarray(STORED, np.float64)
    first, second = np.zeros_like(action), np.zeros_like(action)
    for step in range(1, AGENT.num_ascent_steps + 1):
        grad = np.asarray(descent(jnp.asarray(action, jnp.float32)), np.float64)
        norm = np.sqrt((grad**2).sum())  # one norm for all rows
        assert norm > AGENT.ascent_max_norm
        grad *= AGENT.ascent_max_norm / norm
        first, second = 0.9 * first + 0.1 * grad, 0.999 * second + 0.001 * grad**2
        scaled = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        action = np.clip(action - AGENT.ascent_rate * scaled, -2, 2)
    np.testing.assert_allclose(IMPROVE(params, BATCH.obs, STORED), action, atol=1e-5)


def test_ascent_stops_at_the_box() -> None:
    agent = replace(AGENT, ascent_rate=3.0)
    improved = jax.jit(agent._improve)(make_state(AGENT).critic.params, BATCH.obs, STORED)
    assert np.abs(improved).max() == SPEC.act_bound


def test_column_is_rewritten_with_actions_improved_by_the_new_critics() -> None:
    state = make_state(AGENT)
    new, metrics, rewrite = update(AGENT, state, BATCH)
    assert rewrite is not None and list(rewrite) == list(AGENT.columns) == ["improved"]
    by_new = IMPROVE(new.critic.params, BATCH.obs, STORED)
    np.testing.assert_allclose(rewrite["improved"], by_new, atol=1e-5)
    assert not close(rewrite["improved"], IMPROVE(state.critic.params, BATCH.obs, STORED))
    moved = np.abs(np.asarray(rewrite["improved"] - STORED)).mean()
    np.testing.assert_allclose(metrics["policy/improvement"], moved, rtol=1e-5)


def test_policy_denoises_the_improved_actions_with_weight_one_half() -> None:
    state = make_state(AGENT)
    new, _, rewrite = update(AGENT, state, BATCH)
    assert rewrite is not None
    step_key, draw_key = jax.random.split(jax.random.split(KEY)[1])
    step = jax.random.randint(step_key, (6,), 0, 3)
    noise = jax.random.normal(draw_key, (6, 2))
    kept = AGENT.actor.schedule.alpha_bar[step][:, None]
    noisy = jnp.sqrt(kept) * rewrite["improved"] + jnp.sqrt(1 - kept) * noise

    @jax.jit
    def loss(params: Any) -> Array:
        error = AGENT.actor.network.apply(params, BATCH.obs, noisy, step) - noise
        return 0.5 * jnp.square(error).mean()

    np.testing.assert_allclose(new.actor.loss, loss(state.actor.params), rtol=1e-4)
    assert close(gradient(new.actor.opt_state), jax.grad(loss)(state.actor.params))


@pytest.mark.parametrize("source", ["target", "online"])
def test_next_actions_come_from_the_named_policy(source: Literal["target", "online"]) -> None:
    agent = replace(AGENT, backup_policy=source)
    state = make_state(AGENT)
    params = state.actor.target_params if source == "target" else state.actor.params
    noise = agent.noise(jax.random.split(KEY)[0], 6)
    next_action = agent.actor.sample(params, BATCH.next_obs, noise)[0]
    assert_bellman(agent, CRITIC, state, BATCH, next_action, update(agent, state, BATCH))


def test_critics_and_policy_descend_clipped_gradients() -> None:
    agent = replace(AGENT, max_norm=1e-3)
    new = update(agent, make_state(agent), BATCH).state
    leaves = jax.tree.leaves(gradient(new.critic.opt_state))
    squares = [jnp.square(g).reshape(2, -1).sum(1) for g in leaves]
    np.testing.assert_allclose(np.sqrt(np.sum(squares, axis=0)), [1e-3, 1e-3], rtol=1e-3)
    square = sum(jnp.square(g).sum() for g in jax.tree.leaves(gradient(new.actor.opt_state)))
    np.testing.assert_allclose(np.sqrt(square), 1e-3, rtol=1e-3)


def test_target_policy_moves_every_second_update_and_target_critics_at_every_one() -> None:
    states = [make_state(AGENT)]
    for _ in range(3):
        states.append(update(AGENT, states[-1], BATCH).state)
    for k, (old, new) in enumerate(pairwise(states)):
        assert_moved(old.critic, new.critic, 0.005)
        if k % 2 == 0:
            assert_moved(old.actor, new.actor, 0.005)
        assert close(new.actor.target_params, old.actor.target_params) == (k % 2 == 1)


def test_online_critics_choose_among_chains_of_the_online_policy() -> None:
    agent = replace(AGENT, best_of=5)
    state, obs = make_state(AGENT), BATCH.obs
    candidates = np.asarray(agent.actor.sample(state.actor.params, obs, agent.noise(KEY, 6)))
    value = np.asarray(CRITIC.apply(state.critic.params, obs, jnp.asarray(candidates))).min(axis=0)
    expected = candidates[value.argmax(axis=0), np.arange(6)]
    np.testing.assert_allclose(act(agent, state, obs), expected, atol=1e-5)
