"""One pure function per equation."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from langevinrl.samplers.diffusion import Schedule, add_noise
from langevinrl.samplers.flow import AverageVelocity, interpolate
from langevinrl.types import Array, Batch, Key


def td_backup(next_q: Array, batch: Batch, gamma: float, reward_scale: float) -> Array:
    """Scaled reward plus the discounted least of the members' values (members, B), Eq. 8: (B,)."""
    return reward_scale * batch.reward + gamma * batch.bootstrap * next_q.min(axis=0)


def squared(error: Array) -> Array:
    """Mean over the batch, summed over members (members, B): each member descends its own mean."""
    return jnp.square(error).mean(axis=-1).sum()


def denoising(
    predict_noise: Callable[[Array, Array], Array],
    schedule: Schedule,
    clean: Array,
    weight: Array,
    key: Key,
) -> Array:
    """Weighted error of the noise predicted at a random step of each row; weight (B,)."""
    step_key, noise_key = jax.random.split(key)
    t = jax.random.randint(step_key, clean.shape[:1], 0, len(schedule.beta))
    noise = jax.random.normal(noise_key, clean.shape)
    error = predict_noise(add_noise(schedule, clean, t, noise), t) - noise
    return (weight[:, None] * jnp.square(error)).mean()


def mean_flow(
    average_velocity: AverageVelocity, noise: Array, action: Array, t: Array, rho: Array
) -> tuple[Array, Array]:
    """How far u is from the identity u = v + (ρ - t) du/dt, and from v itself over no time at all.

    Squared norms for paths from noise to action (B, A), met at times t and until ρ (B,).
    """
    x, velocity = interpolate(noise, action, t), action - noise
    u, rate = jax.jvp(
        lambda x, t: average_velocity(x, t, rho), (x, t), (velocity, jnp.ones_like(t))
    )
    target = jax.lax.stop_gradient(velocity + (rho - t)[:, None] * rate)
    instant = average_velocity(x, t, t)
    identity = jnp.square(u - target).sum(axis=-1).mean()
    return identity, jnp.square(instant - velocity).sum(axis=-1).mean()


def temperature(log_alpha: Array, entropy: Array, target_entropy: float) -> Array:
    """Raises α while the entropy is short of its target and lowers it beyond."""
    return log_alpha * jax.lax.stop_gradient(entropy - target_entropy)
