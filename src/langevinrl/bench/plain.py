"""Straightforward JAX versions of NC-LQL and SAC: the baselines that timings are compared with.

They concatenate inputs for an ordinary multilayer perceptron, map over critics with `vmap`,
differentiate with `jax.grad` and use textbook activations.  They implement the agents' default
settings with one action per observation; sizes and rates are the agent's own.  They use states and
keys as the agents do, so that the results agree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.agents import nclql, sac
from langevinrl.learner import Learner
from langevinrl.types import Array, Batch, Key, PyTree, Update

Method = nclql.NCLQL | sac.SAC

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "mish": lambda x: x * jnp.tanh(jax.nn.softplus(x)),
    "gelu": partial(jax.nn.gelu, approximate=False),
}


def mlp(agent: Method, params: PyTree, *inputs: Array) -> Array:
    """Apply a perceptron to the concatenation of inputs (B, size): (B, outputs)."""
    x = jnp.concatenate(inputs, axis=-1)
    first, *rest = params["layers"]
    # The weights of the first layer are stored in one block per input.
    x = x @ jnp.concatenate(params["inputs"]) + first["bias"][None]
    for layer in rest:
        x = ACTIVATIONS[agent.activation](x) @ layer["weight"] + layer["bias"][None]
    return x


def embed(agent: Method, params: PyTree, level: Array, size: int) -> Array:
    """Embed noise levels (K,) by sines, cosines and a small perceptron: (K, size)."""
    frequency = 10_000.0 ** (-jnp.arange(size // 2) / (size // 2))
    angle = level[:, None] * frequency[None]
    wave = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1) / size**0.5
    return mlp(agent, params, wave)


def critics(
    agent: Method, params: PyTree, obs: Array, action: Array, level: Array | int | None = None
) -> Array:
    """Evaluate each critic at actions (B, A), and at noise levels () or (B,): (members, B)."""

    def value(member: PyTree) -> Array:
        inputs = [obs, action]
        if level is not None:
            size = len(member["body"]["inputs"][2])
            features = embed(agent, member["embedding"], jnp.atleast_1d(level), size)
            inputs.append(jnp.broadcast_to(features, (len(obs), size)))
        return mlp(agent, member["body"], *inputs)[:, 0]

    return jax.vmap(value)(params)


def td_backup(agent: Method, batch: Batch, next_q: Array) -> Array:
    """Return scaled reward plus discounted minimum of the critics' values (members, B): (B,)."""
    return agent.reward_scale * batch.reward + agent.gamma * batch.bootstrap * next_q.min(axis=0)


def squared(error: Array) -> Array:
    """Average squared errors (members, B) over rows and add up the critics."""
    return jnp.square(error).mean(axis=1).sum()


def train(learner: Learner, rate: float, loss: Callable[[PyTree], Array]) -> Learner:
    """Take one Adam step that lowers `loss(params)`."""
    value, gradient = jax.value_and_grad(loss)(learner.params)
    change, opt_state = optax.adam(rate).update(gradient, learner.opt_state, learner.params)
    params = optax.apply_updates(learner.params, change)
    return Learner(params, learner.target_params, opt_state, value)


def soft_update(learner: Learner, rate: float) -> Learner:
    """Move the target weights a fraction `rate` of the way to the weights."""
    target = jax.tree.map(
        lambda new, old: rate * new + (1 - rate) * old, learner.params, learner.target_params
    )
    return learner._replace(target_params=target)


def sigmas_of(agent: nclql.NCLQL) -> Array:
    """Return the noise levels in equal ratios, the largest first: (L,)."""
    first, last = jnp.log(agent.sigma_max), jnp.log(agent.sigma_min)
    return jnp.exp(jnp.linspace(first, last, agent.num_levels))


def nclql_act(agent: nclql.NCLQL, state: Any, obs: Array, key: Key) -> Array:
    """Run one annealed Langevin chain per observation along the critics' unit gradient: (B, A)."""
    start_key, chain_key = jax.random.split(key)
    params = state.critic.params
    bound, shape, sigmas = agent.spec.act_bound, (len(obs), agent.spec.act_dim), sigmas_of(agent)
    level = jnp.repeat(jnp.arange(agent.num_levels), agent.steps_per_level)

    def step(x: Array, now: tuple[Array, Array, Key]) -> tuple[Array, None]:
        size, level, noise_key = now
        gradient = jax.grad(lambda a: critics(agent, params, obs, a, level).sum())(x)
        direction = gradient / (jnp.linalg.norm(gradient, axis=-1, keepdims=True) + 1e-8)
        drift = size / 2 * agent.inverse_temperature * direction
        x = x + drift + jnp.sqrt(size) * jax.random.normal(noise_key, x.shape)
        return jnp.clip(x, -bound, bound), None

    sizes = agent.step_size * (sigmas[level] / sigmas[-1]) ** 2
    start = jax.random.uniform(start_key, shape, minval=-bound, maxval=bound)
    return jax.lax.scan(step, start, (sizes, level, jax.random.split(chain_key, len(level))))[0]


def nclql_update(agent: nclql.NCLQL, state: nclql.State, batch: Batch, key: Key) -> Update:
    """Take the Bellman step (Eq. 8), then the smoothing step (Eq. 9)."""
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

    once = train(critic, agent.learning_rate, bellman)
    twice = train(once, agent.learning_rate, smoothing)
    metrics = {
        "critic/bellman": once.loss,
        "critic/smoothing": twice.loss,
        "critic/backup": backup.mean(),
    }
    return Update(state._replace(critic=soft_update(twice, agent.target_rate)), metrics)


def sac_sample(agent: sac.SAC, params: PyTree, obs: Array, noise: Array) -> tuple[Array, Array]:
    """Turn standard normal noise (B, A) into actions (B, A) and their log-probabilities (B,)."""
    mean, log_std = jnp.split(mlp(agent, params, obs), 2, axis=-1)
    log_std = jnp.clip(log_std, -20.0, 0.5)
    raw, bound = mean + jnp.exp(log_std) * noise, agent.spec.act_bound
    log_gaussian = -0.5 * jnp.square(noise) - log_std - 0.5 * jnp.log(2 * jnp.pi)
    log_derivative = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw)) + jnp.log(bound)
    return bound * jnp.tanh(raw), (log_gaussian - log_derivative).sum(axis=-1)


def sac_act(agent: sac.SAC, state: sac.State, obs: Array, key: Key) -> Array:
    """Sample one action per observation: (B, A)."""
    noise = jax.random.normal(key, (len(obs), agent.spec.act_dim))
    return sac_sample(agent, state.actor.params, obs, noise)[0]


def sac_update(agent: sac.SAC, state: sac.State, batch: Batch, key: Key) -> Update:
    """Update the critics, then the policy, then the temperature."""
    next_key, noise_key = jax.random.split(key)
    alpha = jnp.exp(state.temperature.params)
    noise = jax.random.normal(next_key, batch.action.shape)
    next_action, log_prob = sac_sample(agent, state.actor.params, batch.next_obs, noise)
    next_q = critics(agent, state.critic.target_params, batch.next_obs, next_action)
    backup = td_backup(agent, batch, next_q - alpha * log_prob[None])

    def bellman(params: PyTree) -> Array:
        return squared(critics(agent, params, batch.obs, batch.action) - backup[None])

    critic = train(state.critic, agent.critic_learning_rate, bellman)
    noise = jax.random.normal(noise_key, batch.action.shape)

    def improvement(params: PyTree) -> Array:
        action, log_prob = sac_sample(agent, params, batch.obs, noise)
        return (alpha * log_prob - critics(agent, critic.params, batch.obs, action).min(0)).mean()

    actor = train(state.actor, agent.actor_learning_rate, improvement)
    entropy = -sac_sample(agent, state.actor.params, batch.obs, noise)[1].mean()
    excess = entropy + agent.target_entropy_scale * agent.spec.act_dim
    temperature = train(
        state.temperature, agent.temperature_learning_rate, lambda log_alpha: log_alpha * excess
    )
    metrics = {
        "critic/bellman": critic.loss,
        "critic/backup": backup.mean(),
        "policy/improvement": actor.loss,
        "policy/entropy": entropy,
        "temperature/loss": temperature.loss,
        "temperature/alpha": alpha,
    }
    critic = soft_update(critic, agent.target_rate)
    return Update(state._replace(critic=critic, actor=actor, temperature=temperature), metrics)


class Plain(NamedTuple):
    """The straightforward version of one agent."""

    update: Callable[[Any, Any, Batch, Key], Update]
    act: Callable[[Any, Any, Array, Key], Array]


PLAIN = {"nclql": Plain(nclql_update, nclql_act), "sac": Plain(sac_update, sac_act)}
