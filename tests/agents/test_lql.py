"""LQL's update against one written out by hand."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from langevinrl.agents.lql import LQL, State
from langevinrl.types import Array, Batch, PyTree, Spec

AGENT = LQL(Spec(3, 2), hidden=(8, 8), learning_rate=1e-2)


def test_one_update_equals_the_one_written_out_by_hand() -> None:
    rng = np.random.default_rng(1)
    obs, next_obs = (jnp.asarray(rng.normal(size=(12, 3)), jnp.float32) for _ in range(2))
    action = jnp.asarray(rng.uniform(-1, 1, size=(12, 2)), jnp.float32)
    reward, ends = jnp.asarray(rng.normal(size=12), jnp.float32), jnp.tile(jnp.array([0.0, 1.0]), 6)
    batch = Batch(obs, action, reward, ends, next_obs, jnp.arange(12), {})
    critic = AGENT.init(jax.random.key(0)).critic
    target = jax.tree.map(lambda leaf: leaf * 1.5 + 0.1, critic.params)
    state, key = State(critic._replace(target_params=target)), jax.random.key(3)

    next_action = AGENT.act(state, next_obs, key, explore=True)
    next_q = np.asarray(AGENT.critic.apply(target, next_obs, next_action))
    y = 0.2 * np.asarray(reward) + 0.99 * np.asarray(ends) * next_q.min(0)

    def td(p: PyTree) -> Array:
        return sum(jnp.mean((qj - y) ** 2) for qj in AGENT.critic.apply(p, obs, action))

    loss, grads = jax.value_and_grad(td)(critic.params)
    change, _ = optax.adam(1e-2).update(grads, critic.opt_state)
    params = optax.apply_updates(critic.params, change)

    after, metrics, _ = AGENT.update(state, batch, key)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)  # noqa: E731
    jax.tree.map(close, after.critic.params, params)
    follow = jax.tree.map(lambda t, p: 0.995 * t + 0.005 * p, target, params)
    jax.tree.map(close, after.critic.target_params, follow)
    assert float(metrics["critic/bellman"]) == pytest.approx(float(loss), rel=1e-4)
    assert int(after.critic.opt_state[0].count) == 1


def test_twenty_steps_move_an_action_by_no_more_than_half() -> None:
    state, obs = AGENT.init(jax.random.key(0)), jnp.ones((400, 3))
    for start in ("zero", "uniform"):
        path = replace(AGENT, start=start).trace(state, obs, jax.random.key(5))
        assert bool((path[0] == 0).all()) == (start == "zero")
        moved = jnp.linalg.norm(path[-1] - path[0], axis=-1)
        assert float(moved.max()) < 0.5 + 0.25  # the drift's length, and noise of 0.045 an axis
        assert float(moved.mean()) > 0.2
