"""DACER, SDAC and DPMD in plain JAX: denoising policies with noise as wide as a temperature."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import optax

from langevinrl.agents import dacer, dpmd, sdac
from langevinrl.bench.plain.denoising import choose, denoise, denoising_loss, schedule_of
from langevinrl.bench.plain.parts import (
    balance,
    bellman,
    critics,
    decaying_adam,
    lesser,
    move,
    network,
    select,
    soft_update,
    td_backup,
    train,
    update_critic,
)
from langevinrl.learner import Learner
from langevinrl.mixture import mean_entropy
from langevinrl.types import Array, Batch, Key, PyTree, Update


def dacer_moments(
    agent: dacer.DACER, params: PyTree, obs: Array, action: Array
) -> tuple[Array, Array]:
    """Mean, which alone counts in `critics`, and deviation of each value: (members, B) each."""
    out = jax.vmap(lambda member: network(agent, member, obs, action))(params)
    return out[..., 0], jax.nn.softplus(out[..., 1])


def dacer_jitter(agent: dacer.DACER, state: dacer.State, action: Array, key: Key) -> Array:
    std = agent.noise_scale * jnp.exp(state.temperature.params)
    noisy = action + std * jax.random.normal(key, action.shape)
    return jnp.clip(noisy, -agent.spec.act_bound, agent.spec.act_bound)


def dacer_act(agent: dacer.DACER, state: dacer.State, obs: Array, key: Key) -> Array:
    chain_key, noise_key = jax.random.split(key)
    action = choose(agent, state.actor.params, state.critic.params, obs, chain_key)
    return dacer_jitter(agent, state, action, noise_key)


def dacer_critic(
    agent: dacer.DACER, state: dacer.State, batch: Batch, key: Key
) -> tuple[Learner, Array, Array]:
    """The critics a step on, the mean backups (B,), and the running deviation (members,)."""
    action_key, draw_key = jax.random.split(key)
    next_action = dacer_act(agent, state, batch.next_obs, action_key)
    slow = state.critic.target_params
    next_mean, next_std = dacer_moments(agent, slow, batch.next_obs, next_action)
    std = jnp.take_along_axis(next_std, next_mean.argmin(axis=0)[None], axis=0)[0]
    y = td_backup(agent, batch, next_mean)
    z = jnp.clip(jax.random.normal(draw_key, y.shape), -3.0, 3.0)
    drawn = y + agent.gamma * batch.bootstrap * std * z

    deviation = dacer_moments(agent, state.critic.params, batch.obs, batch.action)[1].mean(axis=1)
    rate = jnp.where(state.updates == 0, 1.0, agent.target_rate)
    spread = state.spread + rate * (deviation - state.spread)

    def likelihood(params: PyTree) -> Array:
        mean, std = dacer_moments(agent, params, batch.obs, batch.action)
        mu, sigma = jax.lax.stop_gradient((mean, std))
        near = jnp.clip(drawn[None] - mu, -3 * spread[:, None], 3 * spread[:, None])
        mean_pull = (y[None] - mu) / (sigma**2 + 0.1)
        std_pull = (near**2 - sigma**2) / (sigma**3 + 0.1)
        gain = (mean * mean_pull + std * std_pull).mean(axis=1)
        return -((spread**2 + 0.1) * gain).sum()

    critic = train(state.critic, optax.adam(agent.critic_learning_rate), likelihood)
    return critic, y, spread


def dacer_temperature(
    agent: dacer.DACER, state: dacer.State, obs: Array, key: Key
) -> tuple[Learner, Array]:
    """A step of log α and a fresh estimate of the entropy, if due."""

    def estimate() -> Array:
        act_key, fit_key = jax.random.split(key)
        chain_key, noise_key = jax.random.split(act_key)
        actions = denoise(agent, state.actor.params, obs, agent.num_entropy_actions, chain_key)
        noisy = dacer_jitter(agent, state, actions, noise_key)
        return mean_entropy(noisy, agent.num_gaussians, fit_key)

    due = state.updates % agent.temperature_delay == 0
    # Due so seldom, and so dear, that any version would wait for it.
    entropy = jax.lax.cond(due, estimate, lambda: state.entropy)
    excess = entropy + agent.target_entropy_scale * agent.spec.act_dim
    temperature = balance(state.temperature, agent.temperature_learning_rate, excess)
    return select(due, temperature, state.temperature), entropy


def dacer_update(agent: dacer.DACER, state: dacer.State, batch: Batch, key: Key) -> Update:
    backup_key, actor_key, entropy_key = jax.random.split(key, 3)
    critic, backup, spread = dacer_critic(agent, state, batch, backup_key)

    def ascent(params: PyTree) -> Array:
        chain_key, noise_key = jax.random.split(actor_key)
        actions = denoise(agent, params, batch.obs, 1, chain_key)
        action = dacer_jitter(agent, state, actions, noise_key)[0]
        return -lesser(agent, state.critic.params, batch.obs, action).mean()

    adam = decaying_adam(agent.actor_learning_rate, agent.final_actor_learning_rate)
    due = state.updates % agent.delay == 0
    actor = select(due, train(state.actor, adam, ascent), state.actor)
    temperature, entropy = dacer_temperature(agent, state, batch.obs, entropy_key)
    metrics = {
        "critic/likelihood": critic.loss,
        "critic/backup": backup.mean(),
        "critic/spread": spread.mean(),
        "policy/ascent": actor.loss,
        "policy/entropy": entropy,
        "temperature/alpha": jnp.exp(temperature.params),
    }
    critic = select(due, soft_update(critic, agent.target_rate), critic)
    after = dacer.State(critic, actor, temperature, spread, entropy, state.updates + 1)
    return Update(after, metrics)


def explore(
    agent: sdac.SDAC | dpmd.DPMD,
    state: sdac.State | dpmd.State,
    actor: PyTree,
    obs: Array,
    key: Key,
) -> Array:
    """The most valuable of N chains with noise on it, which may leave the box: (B, A)."""
    chain_key, noise_key = jax.random.split(key)
    action = choose(agent, actor, state.critic.params, obs, chain_key)
    std = agent.noise_scale * jnp.exp(state.temperature.params)
    return action + std * jax.random.normal(noise_key, action.shape)


def cool(agent: sdac.SDAC | dpmd.DPMD, state: sdac.State | dpmd.State) -> Learner:
    """A step of log α by the entropy of the noise, if due."""
    std, size = agent.noise_scale * jnp.exp(state.temperature.params), agent.spec.act_dim
    entropy = size / 2 * (jnp.log(2 * jnp.pi) + 1 + 2 * jnp.log(std))
    excess = entropy + agent.target_entropy_scale * size
    temperature = balance(state.temperature, agent.temperature_learning_rate, excess)
    return select(state.updates % agent.temperature_delay == 0, temperature, state.temperature)


def sdac_act(agent: sdac.SDAC, state: sdac.State, obs: Array, key: Key) -> Array:
    return explore(agent, state, state.actor.target_params, obs, key)


def sdac_loss(
    agent: sdac.SDAC, state: sdac.State, params: PyTree, obs: Array, clean: Array, key: Key
) -> Array:
    """Error against K noises that may have led to a noisy action, each weighed by exp(Q/α)."""
    step_key, forward_key, reverse_key = jax.random.split(key, 3)
    constants, bound = schedule_of(agent), agent.spec.act_bound
    t = jax.random.randint(step_key, clean.shape[:1], 0, agent.num_steps)
    forward = jax.random.normal(forward_key, clean.shape)
    noisy = constants.signal[t][:, None] * clean + constants.noise[t][:, None] * forward
    noises = jax.random.normal(reverse_key, (agent.num_noises, *clean.shape))
    heat = jnp.exp(state.temperature.params) / agent.initial_alpha

    def log_weight(noise: Array) -> Array:
        scaled = constants.inverse_signal[t][:, None] * noisy
        beginning = scaled - constants.noise_to_signal[t][:, None] * noise
        beginning = jnp.clip(beginning, -bound, bound)
        return lesser(agent, state.critic.params, obs, beginning) / heat

    weight = jax.nn.softmax(jax.vmap(log_weight)(noises), axis=0)
    error = network(agent, params, obs, noisy, t)[None] - noises
    return (weight[..., None] * jnp.square(error)).mean()


def sdac_update(agent: sdac.SDAC, state: sdac.State, batch: Batch, key: Key) -> Update:
    next_key, actor_key = jax.random.split(key)
    action_key, noise_key = jax.random.split(actor_key)
    critic, actor = state.critic, state.actor
    next_action = explore(agent, state, actor.params, batch.next_obs, next_key)
    next_q = critics(agent, critic.target_params, batch.next_obs, next_action)
    adam = optax.adam(agent.critic_learning_rate)
    critic, backup = update_critic(agent, adam, critic, batch, next_q)

    clean = explore(agent, state, actor.params, batch.obs, action_key)
    adam = decaying_adam(agent.actor_learning_rate, agent.final_actor_learning_rate)
    loss = partial(sdac_loss, agent, state, obs=batch.obs, clean=clean, key=noise_key)
    due = state.updates % agent.delay == 0
    actor = select(due, train(actor, adam, loss), actor)
    temperature = cool(agent, state)
    metrics = {
        "critic/bellman": critic.loss,
        "critic/backup": backup.mean(),
        "policy/denoising": actor.loss,
        "temperature/alpha": jnp.exp(temperature.params),
    }
    critic = select(due, soft_update(critic, agent.target_rate), critic)
    actor = select(due, soft_update(actor, agent.target_rate), actor)
    return Update(sdac.State(critic, actor, temperature, state.updates + 1), metrics)


def dpmd_act(agent: dpmd.DPMD, state: dpmd.State, obs: Array, key: Key) -> Array:
    return explore(agent, state, state.actor.target_params, obs, key)


def dpmd_update(agent: dpmd.DPMD, state: dpmd.State, batch: Batch, key: Key) -> Update:
    next_key, noise_key = jax.random.split(key)
    obs, actor = batch.next_obs, state.actor
    action = explore(agent, state, actor.params, obs, next_key)
    backup = td_backup(agent, batch, critics(agent, state.critic.target_params, obs, action))
    regression = jax.value_and_grad(lambda params: bellman(agent, params, batch, backup))
    loss, gradient = regression(state.critic.params)
    adam = optax.adam(agent.critic_learning_rate)
    once = move(state.critic, adam, loss, gradient)
    critic = move(once, adam, loss, gradient)  # the same gradient again

    q = lesser(agent, once.params, obs, action)
    score = jnp.clip(q - state.mean_q / state.std_q, -3.0, 3.0)
    weight = jnp.exp(score / jnp.exp(state.temperature.params))
    rows = (obs, action[None], weight[None], noise_key)
    adam = decaying_adam(agent.actor_learning_rate, agent.final_actor_learning_rate)
    improved = train(actor, adam, lambda params: denoising_loss(agent, params, *rows))
    due = state.updates % agent.delay == 0
    actor = select(due, improved, actor)
    temperature = cool(agent, state)
    metrics = {
        "critic/bellman": critic.loss,
        "critic/backup": backup.mean(),
        "policy/denoising": actor.loss,
        "policy/weight": weight.mean(),
        "temperature/alpha": jnp.exp(temperature.params),
    }
    critic = select(due, soft_update(critic, agent.target_rate), critic)
    actor = select(due, soft_update(actor, agent.target_rate), actor)
    mean_q = state.mean_q + agent.statistics_rate * (q.mean() - state.mean_q)
    std_q = state.std_q + agent.statistics_rate * (q.std() - state.std_q)
    after = dpmd.State(critic, actor, temperature, state.updates + 1, mean_q, std_q)
    return Update(after, metrics)
