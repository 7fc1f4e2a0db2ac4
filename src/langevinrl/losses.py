"""One pure function per equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.samplers.diffusion import Schedule, add_noise, predict_clean
from langevinrl.samplers.flow import AverageVelocity, interpolate
from langevinrl.types import Array, Batch, Key

MirrorForm: TypeAlias = Literal["coded", "intended"]


def td_backup(next_q: Array, batch: Batch, gamma: float, reward_scale: float) -> Array:
    """Scaled reward plus the discounted least of the members' values (members, B), Eq. 8: (B,)."""
    if gamma == 0.0:  # a bandit: nothing looks at the next action, so the compiler drops its draw
        return reward_scale * batch.reward
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
    """Weighted error of the noise predicted at a random step of each row (..., A); weight (...)."""
    step_key, noise_key = jax.random.split(key)
    t = jax.random.randint(step_key, clean.shape[:-1], 0, len(schedule.beta))
    noise = jax.random.normal(noise_key, clean.shape)
    error = predict_noise(add_noise(schedule, clean, t, noise), t) - noise
    return (weight[..., None] * jnp.square(error)).mean()


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


def gaussian_entropy(std: Array, num_axes: int) -> Array:
    """Of isotropic Gaussian noise: (m/2) log(2πe σ²)."""
    return num_axes / 2 * (jnp.log(2 * jnp.pi) + 1 + 2 * jnp.log(std))


def noise_temperature(
    log_alpha: Array, noise_scale: float, num_axes: int, target_entropy: float
) -> Array:
    """The temperature's loss where the entropy is that of exploration noise; it sees no data."""
    entropy = gaussian_entropy(noise_scale * jnp.exp(log_alpha), num_axes)
    return temperature(log_alpha, entropy, target_entropy)


def reverse_denoising(
    predict_noise: Callable[[Array, Array], Array],
    schedule: Schedule,
    clean: Array,
    log_weight: Callable[[Array], Array],
    key: Key,
    *,
    num_noises: int,
    bound: float,
) -> Array:
    """Error against K noises that may have led to a noisy action, each weighed by where it began.

    Clean actions (B, A) only place the noisy ones.  `log_weight` takes the beginnings that the
    noises imply (K, B, A) to (K, B); its softmax over K is self-normalised importance sampling.
    """
    step_key, forward_key, reverse_key = jax.random.split(key, 3)
    t = jax.random.randint(step_key, clean.shape[:1], 0, len(schedule.beta))
    noisy = add_noise(schedule, clean, t, jax.random.normal(forward_key, clean.shape))
    noise = jax.random.normal(reverse_key, (num_noises, *clean.shape))
    beginning = jnp.clip(predict_clean(schedule, noisy[None], t[None], noise), -bound, bound)
    weight = jax.nn.softmax(log_weight(beginning), axis=0)
    error = predict_noise(noisy, t)[None] - noise
    return (weight[..., None] * jnp.square(error)).mean()  # the mean over K too (released code)


def mirror_weight(q: Array, mean: Array, std: Array, alpha: Array, form: MirrorForm) -> Array:
    """DPMD's weight of an action worth q, exp(standardised q / α), cut at three deviations."""
    # As coded, the division binds before the subtraction and reaches the mean alone.
    score = q - mean / std if form == "coded" else (q - mean) / std
    return jnp.exp(jnp.clip(score, -3.0, 3.0) / alpha)


def cutoff_weight(q: Array) -> Array:
    """QVPO's weight as released: the best candidate's value (N, B) where it exceeds 1, else 0."""
    best = q.max(axis=0)
    return jnp.where(best > 1.0, best, 0.0)


def advantage_weight(q: Array) -> Array:
    """QVPO's original weight: what the best candidate (N, B) is worth above the average one."""
    return jax.nn.relu(q.max(axis=0) - q.mean(axis=0))


def distributional(mean: Array, std: Array, y: Array, drawn: Array, spread: Array) -> Array:
    """Regression of Gaussian values (members, B) on mean backups y (B,) and `drawn` ones (B,).

    A likelihood's gradients, made safe: small deviations hardly divide, drawn backups stay within
    three of the running `spread` (members,), and its square undoes the division by the variance.
    """
    mu, sigma, y = jax.lax.stop_gradient((mean, std, y[None]))
    near = mu + jnp.clip(drawn[None] - mu, -3 * spread[:, None], 3 * spread[:, None])
    mean_pull = (y - mu) / (sigma**2 + 0.1)
    std_pull = ((mu - near) ** 2 - sigma**2) / (sigma**3 + 0.1)
    return -((spread**2 + 0.1) * (mean * mean_pull + std * std_pull).mean(axis=-1)).sum()
