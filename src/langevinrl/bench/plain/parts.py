"""What the plain versions share: an ordinary network, a walk, a choice, a step of the optimiser."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import jax
import jax.numpy as jnp
import optax

from langevinrl.learner import Learner
from langevinrl.samplers.langevin import Plan
from langevinrl.types import Array, Batch, Key, PyTree, Spec


class Method(Protocol):
    """The hyperparameters every agent has, as far as they are read here."""

    @property
    def spec(self) -> Spec: ...
    @property
    def gamma(self) -> float: ...
    @property
    def reward_scale(self) -> float: ...
    @property
    def activation(self) -> str: ...


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "mish": lambda x: x * jnp.tanh(jax.nn.softplus(x)),
    "gelu": partial(jax.nn.gelu, approximate=False),
    "relu": jax.nn.relu,
}


def mlp(agent: Method, params: PyTree, *inputs: Array) -> Array:
    """An ordinary perceptron on inputs (B, size) side by side: (B, outputs)."""
    x = jnp.concatenate(inputs, axis=-1)
    first, *rest = params["layers"]
    # The weights of the first layer are stored in one block per input.
    x = x @ jnp.concatenate(params["inputs"]) + first["bias"][None]
    for layer in rest:
        x = ACTIVATIONS[agent.activation](x) @ layer["weight"] + layer["bias"][None]
    return x


def embed(agent: Method, params: PyTree, index: Array, size: int) -> Array:
    """Sines and cosines of indices (K,) and, if it has weights, a small perceptron: (K, size)."""
    frequency = 10_000.0 ** (-jnp.arange(size // 2) / (size // 2))
    angle = index[:, None] * frequency[None]
    wave = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1) / size**0.5
    return mlp(agent, params, wave) if params else wave


def network(
    agent: Method, params: PyTree, obs: Array, action: Array, index: Array | int | None = None
) -> Array:
    """(B, O), (B, A) and perhaps a step or level, () or (B,), to (B, outputs)."""
    inputs = [obs, action]
    if index is not None:
        size = len(params["body"]["inputs"][2])
        features = embed(agent, params["embedding"], jnp.atleast_1d(index), size)
        inputs.append(jnp.broadcast_to(features, (len(obs), size)))
    return mlp(agent, params["body"], *inputs)


def critics(
    agent: Method, params: PyTree, obs: Array, action: Array, level: Array | int | None = None
) -> Array:
    """Each critic's value of actions (B, A): (members, B)."""
    return jax.vmap(lambda member: network(agent, member, obs, action, level)[:, 0])(params)


def lesser(agent: Method, params: PyTree, obs: Array, action: Array) -> Array:
    """The lesser of the critics' values: (B,)."""
    return critics(agent, params, obs, action).min(axis=0)


def best(candidates: Array, value: Callable[[Array], Array]) -> Array:
    """Each row's most valuable of candidates (N, B, A), where value is of (B, A): (B, A)."""
    if len(candidates) == 1:
        return candidates[0]
    chosen = jax.vmap(value)(candidates).argmax(axis=0)
    return candidates[chosen, jnp.arange(len(chosen))]


def walk(
    score: Callable[[Array, Array], Array], start: Array, plan: Plan, key: Key, bound: float
) -> Array:
    """Langevin steps along `score(candidates, level)` from start (N, B, A), held in the box."""

    def step(x: Array, now: tuple[Array, Array, Key]) -> tuple[Array, None]:
        size, level, noise_key = now
        noise = jax.random.normal(noise_key, x.shape)
        x = x + size / 2 * score(x, level) + jnp.sqrt(size) * noise
        return jnp.clip(x, -bound, bound), None

    keys = jax.random.split(key, len(plan.step_size))
    return jax.lax.scan(step, start, (plan.step_size, plan.level, keys))[0]


def td_backup(agent: Method, batch: Batch, next_q: Array) -> Array:
    """Scaled reward plus the discounted least of the critics' values (members, B): (B,)."""
    return agent.reward_scale * batch.reward + agent.gamma * batch.bootstrap * next_q.min(axis=0)


def squared(error: Array) -> Array:
    """Mean over rows and sum over critics of errors (members, B)."""
    return jnp.square(error).mean(axis=1).sum()


def bellman(agent: Method, params: PyTree, batch: Batch, backup: Array) -> Array:
    """The critics' squared distance from backups (B,)."""
    return squared(critics(agent, params, batch.obs, batch.action) - backup[None])


def move(
    learner: Learner, optimiser: optax.GradientTransformation, loss: Array, gradient: PyTree
) -> Learner:
    """One step of the optimiser along a gradient; the loss is kept to be reported."""
    change, opt_state = optimiser.update(gradient, learner.opt_state, learner.params)
    params = optax.apply_updates(learner.params, change)
    return Learner(params, learner.target_params, opt_state, loss)


def train(
    learner: Learner, optimiser: optax.GradientTransformation, loss: Callable[[PyTree], Array]
) -> Learner:
    """One step of the optimiser down `loss(params)`."""
    return move(learner, optimiser, *jax.value_and_grad(loss)(learner.params))


def decaying_adam(rate: float, final_rate: float) -> optax.GradientTransformation:
    """Adam at one rate for 25,000 steps, then down to the other within 50,000."""
    return optax.adam(optax.linear_schedule(rate, final_rate, 50_000, 25_000))


def soft_update(learner: Learner, rate: float) -> Learner:
    """The target copy moved a fraction `rate` of the way to the weights."""
    target = jax.tree.map(
        lambda new, old: rate * new + (1 - rate) * old, learner.params, learner.target_params
    )
    return learner._replace(target_params=target)


def update_critic(
    agent: Method,
    optimiser: optax.GradientTransformation,
    critic: Learner,
    batch: Batch,
    next_q: Array,
) -> tuple[Learner, Array]:
    """The critics one step nearer to the backups of the next values (members, B), and those."""
    backup = td_backup(agent, batch, next_q)
    return train(critic, optimiser, lambda params: bellman(agent, params, batch, backup)), backup


def balance(temperature: Learner, rate: float, excess: Array) -> Learner:
    """A step of log α, which lowers it while the entropy is in excess of its target."""
    return train(temperature, optax.adam(rate), lambda log_alpha: log_alpha * excess)


def select(due: Array, new: Learner, old: Learner) -> Learner:
    """The new learner if due, else the old one; both have been computed."""
    return jax.tree.map(lambda n, o: jnp.where(due, n, o), new, old)
