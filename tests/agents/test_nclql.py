"""NC-LQL: its update written out by hand for every setting, and its choice among chains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from parts import KEY, SPEC, act, assert_near, make_batch, make_state, update

from langevinrl.agents.nclql import NCLQL, State
from langevinrl.errors import UserError
from langevinrl.samplers.noise import ChainNoise
from langevinrl.types import Array, Batch, PyTree

AGENT = NCLQL(SPEC, hidden=(8, 8), learning_rate=1e-2)
BATCH = make_batch(16)


def update_by_hand(agent: NCLQL, state: State, batch: Batch, steps: list[str]) -> dict[str, Any]:
    """Take Adam steps down the named losses with one optimiser state, then move the target."""
    q, clean = agent.critic.apply, agent.num_levels - 1
    params, target = state.critic.params, state.critic.target_params
    next_key, level_key, noise_key = jax.random.split(KEY, 3)
    next_action = act(agent, state, batch.next_obs, next_key)
    next_q = np.asarray(q(target, batch.next_obs, next_action, clean))
    y = 0.2 * np.asarray(batch.reward) + 0.99 * np.asarray(batch.bootstrap) * next_q.min(0)
    num_smoothed = agent.num_levels - (not agent.smooth_clean_level)
    level = np.asarray(jax.random.randint(level_key, (16,), 0, num_smoothed))
    z = np.asarray(jax.random.normal(noise_key, (16, 2)))
    noisy = jnp.asarray(np.asarray(batch.action) + np.asarray(agent.sigmas)[level, None] * z)
    anchor = np.asarray(q(params, batch.obs, batch.action, clean))
    if agent.anchor == "mean":
        anchor = anchor.mean(0, keepdims=True)

    def bellman(p: PyTree) -> Array:
        return sum(jnp.mean((qj - y) ** 2) for qj in q(p, batch.obs, batch.action, clean))

    def smoothing(p: PyTree) -> Array:
        error = q(p, batch.obs, noisy, jnp.asarray(level)) - anchor
        return sum(jnp.mean(e**2) for e in error)

    table = {"bellman": bellman, "smoothing": smoothing}
    table["joint"] = lambda p: bellman(p) + smoothing(p)
    opt_state, metrics = state.critic.opt_state, {"critic/backup": y.mean()}
    for name in steps:
        metrics[f"critic/{name}"], grads = jax.jit(jax.value_and_grad(table[name]))(params)
        change, opt_state = optax.adam(1e-2).update(grads, opt_state)
        params = optax.apply_updates(params, change)
    target = jax.tree.map(lambda t, p: 0.995 * t + 0.005 * p, target, params)
    return {"params": params, "target": target, "metrics": metrics}


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        ({}, ["bellman", "smoothing"]),
        ({"optimisation": "joint"}, ["joint"]),
        ({"anchor": "own", "smooth_clean_level": True}, ["bellman", "smoothing"]),
        ({"num_levels": 1}, ["bellman"]),  # nothing to smooth
    ],
)
def test_one_update_equals_the_formula(fields: dict[str, Any], steps: list[str]) -> None:
    agent = replace(AGENT, **fields)
    state = make_state(agent)
    expected = update_by_hand(agent, state, BATCH, steps)
    after, metrics, rewrite = update(agent, state, BATCH)
    assert rewrite is None
    assert_near(after.critic.params, expected["params"])
    assert_near(after.critic.target_params, expected["target"])
    assert_near(metrics, expected["metrics"])
    assert int(after.critic.opt_state[0].count) == len(steps)


def test_a_single_level_takes_steps_at_the_clean_level_only() -> None:
    agent = replace(AGENT, num_levels=1, steps_per_level=5)
    np.testing.assert_allclose(agent.sigmas, [1e-3])
    np.testing.assert_allclose(agent.plan.step_size, [1e-4] * 5)
    noise = agent.noise(KEY, 4)
    assert noise.steps.shape == (4, 5, 1, 2)
    assert agent.trace(make_state(agent), BATCH.obs[:4], noise).shape == (6, 4, 2)


def test_best_of_returns_the_chain_with_the_highest_clean_value() -> None:
    agent = replace(AGENT, best_of=4, inverse_temperature=0.0)  # else all end in one corner
    state, obs = make_state(agent), BATCH.obs
    noise = agent.noise(KEY, 16)
    chains = [ChainNoise(noise.start[:, [n]], noise.steps[:, :, [n]]) for n in range(4)]
    each = [agent.policy(state, obs, chain, explore=True) for chain in chains]
    value = np.stack([agent.critic.apply(state.critic.params, obs, a, 9).min(0) for a in each])
    expected = np.stack(each)[value.argmax(axis=0), np.arange(16)]
    np.testing.assert_allclose(act(agent, state, obs), expected, atol=1e-5)
    assert len(set(value.argmax(axis=0))) > 1


def test_trace_scores_are_gradients_of_both_critics_at_each_level() -> None:
    state, obs = make_state(AGENT), BATCH.obs
    path = AGENT.trace(state, obs, AGENT.noise(KEY, 16))
    scores = AGENT.trace_scores(state, obs, path)
    assert scores.shape == (20, 16, 2)
    for step, level in ((0, 0), (19, 9)):
        value = lambda a: AGENT.critic.apply(state.critic.params, obs, a, level).sum()  # noqa: B023, E731
        np.testing.assert_allclose(scores[step], jax.grad(value)(path[step]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sigma_min": 0.0}, "more than 0"),
        ({"sigma_min": 0.1}, "less than sigma_max"),
        ({"sigma_max": 1e-4}, r"less than sigma_max, 0\.0001"),
    ],
)
def test_noise_levels_must_be_positive_and_decreasing(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        NCLQL(SPEC, **fields)
