"""NC-LQL and LQL in plain JAX: actions walk up the critics' gradient; there is no actor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import optax

from langevinrl.agents import lql, nclql
from langevinrl.bench.plain.parts import (
    best,
    critics,
    lesser,
    soft_update,
    squared,
    td_backup,
    train,
    update_critic,
    walk,
)
from langevinrl.samplers.langevin import Plan, annealed_plan, constant_plan, geometric_sigmas
from langevinrl.types import Array, Batch, Key, PyTree, Update


def climb(
    agent: lql.LQL | nclql.NCLQL,
    value: Callable[[Array, Array], Array],
    plan: Plan,
    obs: Array,
    key: Key,
) -> Array:
    """Chains along the unit gradient of `value(action, level)`, of (B, A): (N, B, A)."""
    start_key, walk_key = jax.random.split(key)
    bound = agent.spec.act_bound

    def score(candidates: Array, level: Array) -> Array:
        slope = jax.grad(lambda action: value(action, level).sum())
        gradient = jax.vmap(slope)(candidates)
        length = jnp.linalg.norm(gradient, axis=-1, keepdims=True)
        return agent.inverse_temperature * gradient / (length + 1e-8)

    shape = (agent.best_of, len(obs), agent.spec.act_dim)
    start = jax.random.uniform(start_key, shape, minval=-bound, maxval=bound)
    if agent.start == "zero":
        start = jnp.zeros(shape)
    return walk(score, start, plan, walk_key, bound)


def lql_act(agent: lql.LQL, state: lql.State, obs: Array, key: Key) -> Array:
    params = state.critic.params
    plan = constant_plan(agent.num_steps, agent.step_size)
    candidates = climb(agent, lambda a, _: critics(agent, params, obs, a), plan, obs, key)
    return best(candidates, partial(lesser, agent, params, obs))


def lql_update(agent: lql.LQL, state: lql.State, batch: Batch, key: Key) -> Update:
    next_action = lql_act(agent, state, batch.next_obs, key)
    next_q = critics(agent, state.critic.target_params, batch.next_obs, next_action)
    adam = optax.adam(agent.learning_rate)
    critic, backup = update_critic(agent, adam, state.critic, batch, next_q)
    metrics = {"critic/bellman": critic.loss, "critic/backup": backup.mean()}
    return Update(lql.State(soft_update(critic, agent.target_rate)), metrics)


def sigmas_of(agent: nclql.NCLQL) -> Array:
    return geometric_sigmas(agent.sigma_max, agent.sigma_min, agent.num_levels)


def nclql_act(agent: nclql.NCLQL, state: nclql.State, obs: Array, key: Key) -> Array:
    value = partial(critics, agent, state.critic.params, obs)
    plan = annealed_plan(sigmas_of(agent), agent.steps_per_level, agent.step_size)
    candidates = climb(agent, value, plan, obs, key)
    return best(candidates, lambda action: value(action, agent.num_levels - 1).min(axis=0))


def nclql_update(agent: nclql.NCLQL, state: nclql.State, batch: Batch, key: Key) -> Update:
    next_key, level_key, noise_key = jax.random.split(key, 3)
    critic, obs, action, clean = state.critic, batch.obs, batch.action, agent.num_levels - 1
    next_action = nclql_act(agent, state, batch.next_obs, next_key)
    next_q = critics(agent, critic.target_params, batch.next_obs, next_action, clean)
    backup = td_backup(agent, batch, next_q)

    level = jax.random.randint(level_key, (len(action),), 0, clean)  # never the clean one
    noisy = action + sigmas_of(agent)[level, None] * jax.random.normal(noise_key, action.shape)
    anchor = critics(agent, critic.params, obs, action, clean).mean(axis=0)

    def bellman(params: PyTree) -> Array:
        return squared(critics(agent, params, obs, action, clean) - backup[None])

    def smoothing(params: PyTree) -> Array:
        return squared(critics(agent, params, obs, noisy, level) - anchor[None])

    adam = optax.adam(agent.learning_rate)
    once = train(critic, adam, bellman)
    twice = train(once, adam, smoothing)
    metrics = {
        "critic/bellman": once.loss,
        "critic/smoothing": twice.loss,
        "critic/backup": backup.mean(),
    }
    return Update(nclql.State(soft_update(twice, agent.target_rate)), metrics)
