"""SAC, QSM and MFP in plain JAX: a Gaussian, a score and a flow that learn from twin critics."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import optax

from langevinrl.agents import mfp, qsm, sac
from langevinrl.bench.plain.parts import (
    balance,
    best,
    critics,
    decaying_adam,
    lesser,
    mlp,
    network,
    soft_update,
    train,
    update_critic,
    walk,
)
from langevinrl.samplers.langevin import Plan
from langevinrl.types import Array, Batch, Key, PyTree, Update


def sac_place(agent: sac.SAC, params: PyTree, obs: Array, noise: Array) -> tuple[Array, Array]:
    """The actions (B, A) that standard noise (B, A) becomes, and their log-probabilities (B,)."""
    mean, log_std = jnp.split(mlp(agent, params, obs), 2, axis=-1)
    log_std = jnp.clip(log_std, -20.0, 0.5)
    raw, bound = mean + jnp.exp(log_std) * noise, agent.spec.act_bound
    log_gaussian = -0.5 * jnp.square(noise) - log_std - 0.5 * jnp.log(2 * jnp.pi)
    log_slope = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw)) + jnp.log(bound)
    return bound * jnp.tanh(raw), (log_gaussian - log_slope).sum(axis=-1)


def sac_draw(agent: sac.SAC, state: sac.State, obs: Array, key: Key) -> tuple[Array, Array]:
    """An action for each observation (B, A) and its log-probability (B,)."""

    def value(noise: Array) -> Array:
        action, _ = sac_place(agent, state.actor.params, obs, noise)
        return lesser(agent, state.critic.params, obs, action)

    candidates = jax.random.normal(key, (agent.best_of, len(obs), agent.spec.act_dim))
    return sac_place(agent, state.actor.params, obs, best(candidates, value))


def sac_act(agent: sac.SAC, state: sac.State, obs: Array, key: Key) -> Array:
    return sac_draw(agent, state, obs, key)[0]


def sac_update(agent: sac.SAC, state: sac.State, batch: Batch, key: Key) -> Update:
    next_key, noise_key = jax.random.split(key)
    alpha = jnp.exp(state.temperature.params)
    next_action, next_log_prob = sac_draw(agent, state, batch.next_obs, next_key)
    next_q = critics(agent, state.critic.target_params, batch.next_obs, next_action)
    soft_q = next_q - alpha * next_log_prob[None]
    adam = optax.adam(agent.critic_learning_rate)
    critic, backup = update_critic(agent, adam, state.critic, batch, soft_q)
    noise = jax.random.normal(noise_key, batch.action.shape)

    def improvement(params: PyTree) -> Array:
        action, log_prob = sac_place(agent, params, batch.obs, noise)
        return (alpha * log_prob - lesser(agent, critic.params, batch.obs, action)).mean()

    actor = train(state.actor, optax.adam(agent.actor_learning_rate), improvement)
    entropy = -sac_place(agent, state.actor.params, batch.obs, noise)[1].mean()
    excess = entropy + agent.target_entropy_scale * agent.spec.act_dim
    temperature = balance(state.temperature, agent.temperature_learning_rate, excess)
    metrics = {
        "critic/bellman": critic.loss,
        "critic/backup": backup.mean(),
        "policy/improvement": actor.loss,
        "policy/entropy": entropy,
        "temperature/loss": temperature.loss,
        "temperature/alpha": alpha,
    }
    return Update(sac.State(soft_update(critic, agent.target_rate), actor, temperature), metrics)


def qsm_act(agent: qsm.QSM, state: qsm.State, obs: Array, key: Key) -> Array:
    chain_key, noise_key = jax.random.split(key)
    start_key, walk_key = jax.random.split(chain_key)
    bound, steps = agent.spec.act_bound, jnp.arange(agent.num_steps)

    def score(candidates: Array, _: Array) -> Array:
        return jax.vmap(lambda a: network(agent, state.actor.params, obs, a))(candidates)

    start = jax.random.normal(start_key, (agent.best_of, len(obs), agent.spec.act_dim))
    candidates = walk(score, start, Plan(1 - steps / agent.num_steps, steps), walk_key, bound)
    action = best(candidates, partial(lesser, agent, state.critic.params, obs))
    action = action + agent.noise_scale * jax.random.normal(noise_key, action.shape)
    return jnp.clip(action, -bound, bound)


def qsm_update(agent: qsm.QSM, state: qsm.State, batch: Batch, key: Key) -> Update:
    next_key, _ = jax.random.split(key)
    next_action = qsm_act(agent, state, batch.next_obs, next_key)
    next_q = critics(agent, state.critic.target_params, batch.next_obs, next_action)
    adam = optax.adam(agent.critic_learning_rate)
    critic, backup = update_critic(agent, adam, state.critic, batch, next_q)

    def value(action: Array) -> Array:
        return lesser(agent, critic.params, batch.obs, action).sum()

    slope = jax.grad(value)(batch.action)

    def matching(params: PyTree) -> Array:
        return jnp.square(network(agent, params, batch.obs, batch.action) - slope).mean()

    adam = decaying_adam(agent.actor_learning_rate, agent.final_actor_learning_rate)
    actor = train(state.actor, adam, matching)
    metrics = {
        "critic/bellman": critic.loss,
        "critic/backup": backup.mean(),
        "policy/matching": actor.loss,
        "policy/slope": jnp.linalg.norm(slope, axis=-1).mean(),
    }
    return Update(qsm.State(soft_update(critic, agent.target_rate), actor), metrics)


def mfp_velocity(
    agent: mfp.MFP, params: PyTree, obs: Array, x: Array, t: Array, rho: Array
) -> Array:
    """Average velocity (B, A) from times t to times ρ, (B,) each."""
    return mlp(agent, params, obs, x, t[:, None], rho[:, None])


def mfp_act(agent: mfp.MFP, state: mfp.State, obs: Array, key: Key) -> Array:
    bound, times = agent.spec.act_bound, jnp.linspace(0.0, 1.0, agent.flow_steps + 1)

    def jump(candidates: Array, now: tuple[Array, Array]) -> tuple[Array, None]:
        t, rho = (jnp.full(len(obs), time) for time in now)

        def one(x: Array) -> Array:
            velocity = mfp_velocity(agent, state.actor.params, obs, x, t, rho)
            return x + (rho - t)[:, None] * velocity

        return jax.vmap(one)(candidates), None

    start = jax.random.normal(key, (agent.best_of, len(obs), agent.spec.act_dim))
    end = jax.lax.scan(jump, start, (times[:-1], times[1:]))[0]
    return best(jnp.clip(end, -bound, bound), partial(lesser, agent, state.critic.params, obs))


def mfp_loss(agent: mfp.MFP, params: PyTree, obs: Array, action: Array, key: Key) -> Array:
    """Squared errors of the mean-flow identity, and of the velocity over no time at all."""
    noise_key, time_key = jax.random.split(key)
    noise = jax.random.normal(noise_key, action.shape)
    t, rho = jnp.sort(jax.random.uniform(time_key, (2, len(action))), axis=0)
    x, direction = (1 - t)[:, None] * noise + t[:, None] * action, action - noise

    def average(x: Array, t: Array) -> Array:
        return mfp_velocity(agent, params, obs, x, t, rho)

    u, rate = jax.jvp(average, (x, t), (direction, jnp.ones_like(t)))
    target = jax.lax.stop_gradient(direction + (rho - t)[:, None] * rate)
    identity = jnp.square(u - target).sum(axis=-1).mean()
    instant = mfp_velocity(agent, params, obs, x, t, t)
    constraint = jnp.square(instant - direction).sum(axis=-1).mean()
    return identity + agent.constraint_weight * constraint


def mfp_update(agent: mfp.MFP, state: mfp.State, batch: Batch, key: Key) -> Update:
    next_key, best_key, flow_key = jax.random.split(key, 3)
    next_action = mfp_act(agent, state, batch.next_obs, next_key)
    next_q = critics(agent, state.critic.target_params, batch.next_obs, next_action)
    adam = optax.adam(agent.critic_learning_rate)
    critic, backup = update_critic(agent, adam, state.critic, batch, next_q)

    model = mfp_act(agent, mfp.State(critic, state.actor), batch.obs, best_key)
    adam = optax.adam(agent.actor_learning_rate)
    actor = train(state.actor, adam, lambda p: mfp_loss(agent, p, batch.obs, model, flow_key))
    metrics = {
        "critic/bellman": critic.loss,
        "critic/backup": backup.mean(),
        "policy/imitation": actor.loss,
    }
    return Update(mfp.State(soft_update(critic, agent.target_rate), actor), metrics)
