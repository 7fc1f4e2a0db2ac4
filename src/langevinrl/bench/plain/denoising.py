"""DIPO and QVPO in plain JAX, and the denoising chain that three more policies share with them."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp
import optax

from langevinrl.agents import dacer, dipo, dpmd, qvpo, sdac
from langevinrl.bench.plain.parts import (
    best,
    critics,
    decaying_adam,
    lesser,
    network,
    select,
    soft_update,
    train,
    update_critic,
)
from langevinrl.learner import Learner
from langevinrl.samplers.diffusion import Schedule, make_schedule
from langevinrl.types import Array, Batch, Key, PyTree, Update

Diffusion: TypeAlias = dipo.DIPO | qvpo.QVPO | dacer.DACER | sdac.SDAC | dpmd.DPMD


def schedule_of(agent: Diffusion) -> Schedule:
    return make_schedule(agent.schedule, agent.num_steps, agent.schedule_scale)


def denoise(agent: Diffusion, params: PyTree, obs: Array, num: int, key: Key) -> Array:
    """Independent chains from noise to actions: (num, B, A)."""
    start_key, chain_key = jax.random.split(key)
    shape, bound = (num, len(obs), agent.spec.act_dim), agent.spec.act_bound
    constants = schedule_of(agent)

    def step(x: Array, now: tuple[Array, Key]) -> tuple[Array, None]:
        t, noise_key = now
        guess = jax.vmap(lambda one: network(agent, params, obs, one, t))(x)
        clean = constants.inverse_signal[t] * x - constants.noise_to_signal[t] * guess
        clean = jnp.clip(clean, -bound, bound)
        mean = constants.clean_weight[t] * clean + constants.noisy_weight[t] * x
        return mean + constants.std[t] * jax.random.normal(noise_key, shape), None

    start = agent.start_std * jax.random.normal(start_key, shape)
    steps = jnp.arange(agent.num_steps - 1, -1, -1)
    keys = jax.random.split(chain_key, agent.num_steps)
    return jnp.clip(jax.lax.scan(step, start, (steps, keys))[0], -bound, bound)


def choose(agent: Diffusion, actor: PyTree, critic: PyTree, obs: Array, key: Key) -> Array:
    """The most valuable of N chains for each observation: (B, A)."""
    candidates = denoise(agent, actor, obs, agent.best_of, key)
    return best(candidates, partial(lesser, agent, critic, obs))


def denoising_loss(
    agent: Diffusion, params: PyTree, obs: Array, clean: Array, weight: Array, key: Key
) -> Array:
    """Weighted error of the noise predicted in C actions per row (C, B, A); weight (C, B)."""
    step_key, noise_key = jax.random.split(key)
    constants = schedule_of(agent)
    t = jax.random.randint(step_key, clean.shape[:-1], 0, agent.num_steps)
    noise = jax.random.normal(noise_key, clean.shape)
    noisy = constants.signal[t][..., None] * clean + constants.noise[t][..., None] * noise
    guess = jax.vmap(lambda x, t: network(agent, params, obs, x, t))(noisy, t)
    return (weight[..., None] * jnp.square(guess - noise)).mean()


def dipo_act(agent: dipo.DIPO, state: dipo.State, obs: Array, key: Key) -> Array:
    return choose(agent, state.actor.params, state.critic.params, obs, key)


def dipo_improve(agent: dipo.DIPO, critic: PyTree, obs: Array, action: Array) -> Array:
    """Actions (B, A) after some Adam steps up the critics' minimum, held in the box."""
    clip = optax.clip_by_global_norm(agent.ascent_max_norm)
    optimiser = optax.chain(clip, optax.adam(agent.ascent_rate))
    bound = agent.spec.act_bound

    def cost(action: Array) -> Array:
        return -lesser(agent, critic, obs, action).sum()

    def step(now: tuple[Array, PyTree], _: None) -> tuple[tuple[Array, PyTree], None]:
        action, opt_state = now
        change, opt_state = optimiser.update(jax.grad(cost)(action), opt_state)
        return (jnp.clip(action + change, -bound, bound), opt_state), None

    start = (action, optimiser.init(action))
    return jax.lax.scan(step, start, length=agent.num_ascent_steps)[0][0]


def dipo_update(agent: dipo.DIPO, state: dipo.State, batch: Batch, key: Key) -> Update:
    next_key, noise_key = jax.random.split(key)
    slow, critic, replayed = state.actor.target_params, state.critic, batch.extra["improved"]
    next_action = choose(agent, slow, critic.params, batch.next_obs, next_key)
    next_q = critics(agent, critic.target_params, batch.next_obs, next_action)
    clip = optax.clip_by_global_norm(agent.max_norm)
    clip_each = optax.stateless(  # each critic by its own norm
        lambda grads, _: jax.vmap(lambda g: clip.update(g, optax.EmptyState())[0])(grads)
    )
    adam = optax.chain(clip_each, optax.adam(agent.critic_learning_rate))
    critic, backup = update_critic(agent, adam, critic, batch, next_q)

    improved = dipo_improve(agent, critic.params, batch.obs, replayed)
    half = jnp.full((1, len(improved)), 0.5)

    def denoising(params: PyTree) -> Array:
        return denoising_loss(agent, params, batch.obs, improved[None], half, noise_key)

    adam = optax.chain(clip, optax.adam(agent.actor_learning_rate))
    actor = train(state.actor, adam, denoising)
    due = state.updates % agent.actor_delay == 0
    actor = select(due, soft_update(actor, agent.target_rate), actor)
    metrics = {
        "critic/bellman": critic.loss,
        "critic/backup": backup.mean(),
        "policy/denoising": actor.loss,
        "policy/improvement": jnp.abs(improved - replayed).mean(),
    }
    after = dipo.State(soft_update(critic, agent.target_rate), actor, state.updates + 1)
    return Update(after, metrics, {"improved": improved})


def qvpo_act(agent: qvpo.QVPO, state: qvpo.State, obs: Array, key: Key) -> Array:
    return choose(agent, state.actor.target_params, state.critic.params, obs, key)


def qvpo_improve(
    agent: qvpo.QVPO, actor: Learner, critic: PyTree, obs: Array, omega: Array, key: Key
) -> Learner:
    """A step of the policy to its own best actions, weighted by value, and to uniform ones."""
    draw_key, uniform_key, _, noise_key = jax.random.split(key, 4)
    candidates = denoise(agent, actor.params, obs, agent.best_of, draw_key)
    value = partial(lesser, agent, critic, obs)
    action, q = best(candidates, value), jax.vmap(value)(candidates).max(axis=0)
    weight = jnp.where(q > 1.0, q, 0.0)

    shape, bound = (agent.num_uniform, *action.shape), agent.spec.act_bound
    uniform = jax.random.uniform(uniform_key, shape, minval=-bound, maxval=bound)
    actions = jnp.concatenate([action[None], uniform])
    weights = jnp.stack([weight, *[omega * weight] * agent.num_uniform])
    adam = decaying_adam(agent.actor_learning_rate, agent.final_actor_learning_rate)
    rows = (obs, actions, weights, noise_key)
    return train(actor, adam, lambda params: denoising_loss(agent, params, *rows))


def qvpo_update(agent: qvpo.QVPO, state: qvpo.State, batch: Batch, key: Key) -> Update:
    next_key, actor_key = jax.random.split(key)
    critic, actor = state.critic, state.actor
    next_action = choose(agent, actor.params, critic.params, batch.next_obs, next_key)
    next_q = critics(agent, critic.target_params, batch.next_obs, next_action)
    adam = optax.adam(agent.critic_learning_rate)
    critic, backup = update_critic(agent, adam, critic, batch, next_q)

    omega = agent.entropy_weight * (1 - state.updates / agent.entropy_decay)
    omega = jnp.maximum(omega, agent.final_entropy_weight)
    due = state.updates % agent.delay == 0
    improved = qvpo_improve(agent, actor, critic.params, batch.obs, omega, actor_key)
    actor = select(due, improved, actor)
    metrics = {
        "critic/bellman": critic.loss,
        "critic/backup": backup.mean(),
        "policy/denoising": actor.loss,
        "policy/entropy_weight": omega,
    }
    critic = select(due, soft_update(critic, agent.target_rate), critic)
    actor = select(due, soft_update(actor, agent.target_rate), actor)
    return Update(qvpo.State(critic, actor, state.updates + 1), metrics)
