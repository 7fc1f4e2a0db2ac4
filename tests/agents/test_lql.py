"""LQL: its update written out by hand, and the reach of its chain."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
from parts import KEY, SPEC, act, assert_bellman, assert_near, make_batch, make_state, update

from langevinrl.agents.lql import LQL
from langevinrl.losses import td_backup
from langevinrl.types import Array, PyTree

AGENT = LQL(SPEC, hidden=(8, 8), learning_rate=1e-2)


def test_one_update_equals_the_formula() -> None:
    state, batch = make_state(AGENT), make_batch(12)
    next_action = jnp.asarray(act(AGENT, state, batch.next_obs))
    done = update(AGENT, state, batch)
    assert_bellman(AGENT, AGENT.critic, state, batch, next_action, done)
    next_q = AGENT.critic.apply(state.critic.target_params, batch.next_obs, next_action)
    y = td_backup(next_q, batch, 0.99, 0.2)

    def bellman(p: PyTree) -> Array:
        return sum(jnp.mean((q - y) ** 2) for q in AGENT.critic.apply(p, batch.obs, batch.action))

    grads = jax.jit(jax.grad(bellman))(state.critic.params)
    change, _ = optax.adam(1e-2).update(grads, state.critic.opt_state)
    assert_near(done.state.critic.params, optax.apply_updates(state.critic.params, change))
    assert int(done.state.critic.opt_state[0].count) == 1


def test_twenty_steps_move_an_action_by_at_most_half_a_unit_and_noise() -> None:
    state, obs = make_state(AGENT), jnp.ones((400, 3))
    for start in ("zero", "uniform"):
        agent = replace(AGENT, start=start)
        path = jax.jit(agent.trace)(state, obs, agent.noise(KEY, 400))
        assert bool((path[0] == 0).all()) == (start == "zero")
        moved = jnp.linalg.norm(path[-1] - path[0], axis=-1)
        assert float(moved.max()) < 0.5 + 0.25  # the drift's length, and noise of 0.045 an axis
        assert float(np.mean(moved)) > 0.2
