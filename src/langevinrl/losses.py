"""Loss functions, one per equation, with formula and source.

Letters as in the papers: r reward, κ its scale, γ discount, b 0 if the episode terminated, else 1,
s and a state and action, Q̄ target copy of a critic, ε noise, ᾱ_t cumulative noise schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.samplers.diffusion import Schedule, add_noise, predict_clean
from langevinrl.samplers.flow import AverageVelocity, interpolate
from langevinrl.types import Array, Batch, Key

MirrorForm: TypeAlias = Literal["coded", "intended"]
PredictNoise: TypeAlias = Callable[[Array, Array], Array]  # takes noisy actions and steps


def td_backup(next_q: Array, batch: Batch, gamma: float, reward_scale: float) -> Array:
    """y = κ r + γ b min_j Q̄_j(s', a'), from the members' values (members, B): (B,).

    The target in Eq. 8 of the Langevin paper, with the twin minimum of its released code.
    """
    if gamma == 0.0:  # a bandit: the compiler then drops the unused next action
        return reward_scale * batch.reward
    return reward_scale * batch.reward + gamma * batch.bootstrap * next_q.min(axis=0)


def squared(error: Array) -> Array:
    """Σ_j mean_i e_ji² over members j and rows i: each member descends its own mean.

    Eq. 8 with e = Q(s, a) - y, and Eq. 9 with e = Q(s, a + σz, level) - sg[Q(s, a, clean)].
    """
    return jnp.square(error).mean(axis=-1).sum()


def denoising(
    predict_noise: PredictNoise, schedule: Schedule, clean: Array, weight: Array, key: Key
) -> Array:
    """mean W ‖ε_θ(√ᾱ_t a + √(1-ᾱ_t) ε, t) - ε‖²: actions a (..., A), weights W (...).

    One random step t and noise ε a row. Denoising Diffusion Probabilistic Models (2020), Eq. 14;
    DIPO has W = 1/2, QVPO its Q-weights, DPMD exp(Q/α).
    """
    step_key, noise_key = jax.random.split(key)
    t = jax.random.randint(step_key, clean.shape[:-1], 0, len(schedule.beta))
    noise = jax.random.normal(noise_key, clean.shape)
    error = predict_noise(add_noise(schedule, clean, t, noise), t) - noise
    return (weight[..., None] * jnp.square(error)).mean()


def reverse_denoising(
    predict_noise: PredictNoise,
    schedule: Schedule,
    clean: Array,
    log_weight: Callable[[Array], Array],
    key: Key,
    *,
    num_noises: int,
    bound: float,
) -> Array:
    """mean_k p_k ‖ε_θ(x_t, t) - ε_k‖², p = softmax_k log_weight(â_k), â_k = clip(x̂_0(x_t, ε_k)).

    SDAC's reweighted score matching by reverse sampling: K noises that may have led to a noisy
    action are each weighted by the action they imply. Clean actions (B, A) only place the noisy
    ones; `log_weight` takes (K, B, A) to (K, B), and its softmax is self-normalised importance
    sampling.
    """
    step_key, forward_key, reverse_key = jax.random.split(key, 3)
    t = jax.random.randint(step_key, clean.shape[:1], 0, len(schedule.beta))
    noisy = add_noise(schedule, clean, t, jax.random.normal(forward_key, clean.shape))
    noise = jax.random.normal(reverse_key, (num_noises, *clean.shape))
    implied = jnp.clip(predict_clean(schedule, noisy[None], t[None], noise), -bound, bound)
    weight = jax.nn.softmax(log_weight(implied), axis=0)
    error = predict_noise(noisy, t)[None] - noise
    return (weight[..., None] * jnp.square(error)).mean()  # the mean over K too (released code)


def mean_flow(
    average_velocity: AverageVelocity, noise: Array, action: Array, t: Array, rho: Array
) -> tuple[Array, Array]:
    """mean ‖u - sg[v + (ρ-t) du/dt]‖² and mean ‖u(x, t, t) - v‖², with v = a - ε.

    The mean-flow identity (Mean Flows for One-step Generative Modeling, 2025, arXiv 2505.13447,
    time running from noise to action here) and MFP's constraint on the instantaneous velocity, for
    paths x = (1-t) ε + t a from noise to action (B, A), met at times t and until ρ (B,).
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
    """log α · sg[H - H̄]: raises α while the entropy H is short of its target H̄.

    SAC's Eq. 18 (arXiv 1812.05905) with log α for α, as its implementations have it.
    """
    return log_alpha * jax.lax.stop_gradient(entropy - target_entropy)


def gaussian_entropy(std: Array, num_axes: int) -> Array:
    """(m/2) log(2πe σ²): the entropy of isotropic Gaussian noise over m axes."""
    return num_axes / 2 * (jnp.log(2 * jnp.pi) + 1 + 2 * jnp.log(std))


def mirror_weight(q: Array, mean: Array, std: Array, alpha: Array, form: MirrorForm) -> Array:
    """W = exp(clip((Q - μ_Q)/s_Q, ±3) / α): DPMD's weight of an action worth Q."""
    # As coded, the division applies to the mean only.
    score = q - mean / std if form == "coded" else (q - mean) / std
    return jnp.exp(jnp.clip(score, -3.0, 3.0) / alpha)


def cutoff_weight(q: Array) -> Array:
    """W = Q 1[Q > 1] of the best candidate, from values (N, B): QVPO as its baseline is coded."""
    best = q.max(axis=0)
    return jnp.where(best > 1.0, best, 0.0)


def advantage_weight(q: Array) -> Array:
    """W = max(0, max_n Q_n - mean_n Q_n) over candidates (N, B): QVPO's own weights."""
    return jax.nn.relu(q.max(axis=0) - q.mean(axis=0))


def gaussian_backup(
    mean: Array, std: Array, z: Array, batch: Batch, gamma: float, reward_scale: float
) -> tuple[Array, Array]:
    """y = κ r + γ b μ and y_z = κ r + γ b (μ + σ clip(z, ±3)), of the critic with the smaller μ.

    DACER's mean and sampled backups, (B,) each, from Gaussian values (members, B) of the next
    action and normal draws z (B,). Both critics regress on the same two (released code).
    """
    least = mean.argmin(axis=0)[None]
    mean, std = (jnp.take_along_axis(moment, least, axis=0) for moment in (mean, std))
    y = td_backup(mean, batch, gamma, reward_scale)
    return y, y + gamma * batch.bootstrap * std[0] * jnp.clip(z, -3.0, 3.0)


def distributional(mean: Array, std: Array, y: Array, drawn: Array, spread: Array) -> Array:
    """-(b²+0.1) mean[μ sg((y-μ)/(σ²+0.1)) + σ sg(((μ-y_b)²-σ²)/(σ³+0.1))], summed over members.

    DACER's regression of Gaussian values (members, B) on mean backups y (B,) and `drawn` ones (B,),
    where y_b = μ + clip(drawn - μ, ±3b) and b is the running `spread` (members,).  The
    gradients of a Gaussian likelihood, stabilised for small σ; b² undoes the division by σ².
    """
    mu, sigma, y = jax.lax.stop_gradient((mean, std, y[None]))
    near = mu + jnp.clip(drawn[None] - mu, -3 * spread[:, None], 3 * spread[:, None])
    mean_pull = (y - mu) / (sigma**2 + 0.1)
    std_pull = ((mu - near) ** 2 - sigma**2) / (sigma**3 + 0.1)
    return -((spread**2 + 0.1) * (mean * mean_pull + std * std_pull).mean(axis=-1)).sum()
