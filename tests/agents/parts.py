"""Batches, states and comparisons shared by the tests of agents."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from langevinrl.learner import Learner
from langevinrl.losses import td_backup
from langevinrl.types import Array, Batch, Key, PyTree, Spec, Update

SPEC = Spec(obs_dim=3, act_dim=2, act_bound=2.0)
KEY = jax.random.key(7)


def make_batch(size: int) -> Batch:
    """Return random transitions; some episodes end."""
    rng = np.random.default_rng(0)
    return Batch(
        obs=jnp.asarray(rng.normal(size=(size, 3)), jnp.float32),
        action=jnp.asarray(rng.uniform(-2, 2, size=(size, 2)), jnp.float32),
        reward=jnp.asarray(rng.normal(size=size), jnp.float32),
        bootstrap=jnp.asarray(rng.integers(0, 2, size), jnp.float32),
        next_obs=jnp.asarray(rng.normal(size=(size, 3)), jnp.float32),
        row=jnp.arange(size),
        extra={},
    )


@cache
def _compiled(agent: Any, name: str) -> Any:
    return jax.jit(getattr(agent, name), static_argnames="explore" if name == "act" else None)


def make_state(agent: Any) -> Any:
    """Return a state whose target copies differ from the weights, so that a mix-up shows."""
    state = _compiled(agent, "init")(jax.random.key(0))
    learners = {n: getattr(state, n) for n in ("critic", "actor") if n in state._fields}
    return state._replace(**{name: set_apart(learner) for name, learner in learners.items()})


def set_apart(learner: Learner) -> Learner:
    """Move the target copy away from the weights."""
    moved = jax.tree.map(lambda x: np.asarray(x) * np.float32(1.2) + 0.1, learner.params)
    return learner._replace(target_params=moved)


def update(agent: Any, state: Any, batch: Batch, key: Key = KEY) -> Update:
    """Do one update, compiled once per agent."""
    return _compiled(agent, "update")(state, batch, key)


def act(agent: Any, state: Any, obs: Array, key: Key = KEY, *, explore: bool = True) -> np.ndarray:
    """Return actions of one agent, compiled once."""
    return np.asarray(_compiled(agent, "act")(state, obs, key, explore=explore))


def assert_bellman(
    agent: Any, critic: Any, state: Any, batch: Batch, next_action: Any, done: Update
) -> None:
    """Check backup and Bellman loss for this next action, and the move of the target critics."""
    next_q = critic.apply(state.critic.target_params, batch.next_obs, jnp.asarray(next_action))
    backup = td_backup(next_q, batch, agent.gamma, agent.reward_scale)
    np.testing.assert_allclose(done.metrics["critic/backup"], backup.mean(), rtol=1e-4, atol=1e-6)
    q = critic.apply(state.critic.params, batch.obs, batch.action)
    bellman = jnp.square(q - backup[None]).mean(axis=1).sum()
    np.testing.assert_allclose(done.metrics["critic/bellman"], bellman, rtol=1e-3)
    assert_moved(state.critic, done.state.critic, agent.target_rate)


def assert_moved(old: Learner, new: Learner, rate: float) -> None:
    """Check that the target copy moved towards the weights as they are after the update."""
    assert_near(new.target_params, optax.incremental_update(new.params, old.target_params, rate))


def gradient(opt_state: optax.OptState) -> Any:
    """Return the gradient of Adam's first step: ten times its first moment."""
    return jax.tree.map(lambda mu: 10 * mu, optax.tree_utils.tree_get(opt_state, "mu"))


def close(left: PyTree, right: PyTree) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in pairs)


def assert_near(left: PyTree, right: PyTree) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), left, right)
