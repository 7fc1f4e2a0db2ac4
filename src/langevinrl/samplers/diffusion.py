"""Gaussian diffusion over actions: noise schedules, forward samples and reverse chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.types import Array

ScheduleName: TypeAlias = Literal["linear", "vp", "cosine"]


class Schedule(NamedTuple):
    """Constants of a chain, each (T,); index 0 is the least noisy step."""

    beta: Array
    alpha_bar: Array
    signal: Array  # √ᾱ: factor on the clean action
    noise: Array  # √(1 - ᾱ): factor on the noise
    inverse_signal: Array  # √(1/ᾱ)
    noise_to_signal: Array  # √(1/ᾱ - 1)
    clean_weight: Array  # posterior mean = clean_weight x clean + noisy_weight x noisy
    noisy_weight: Array
    std: Array  # standard deviation of the posterior; 0 at step 0


def make_schedule(name: ScheduleName, num_steps: int, scale: float = 1.0) -> Schedule:
    """Return a schedule: linear times `scale` (c), variance-preserving, or cosine."""
    # Computed in float64 on the host: at step 0 a float32 1 - ᾱ keeps only three digits.
    t = np.arange(num_steps)
    if name == "linear":
        beta = scale * np.linspace(1e-4, 0.999, num_steps)
    elif name == "vp":
        low, high = 0.1, 10.0
        beta = 1 - np.exp(-low / num_steps - 0.5 * (high - low) * (2 * t + 1) / num_steps**2)
    else:
        falloff = np.cos((np.arange(num_steps + 1) / num_steps + 0.008) / 1.008 * np.pi / 2) ** 2
        beta = np.clip(1 - falloff[1:] / falloff[:-1], 0.0, 0.999)
    alpha_bar = np.cumprod(1 - beta)
    before = np.append(1.0, alpha_bar[:-1])
    variance = np.maximum(beta * (1 - before) / (1 - alpha_bar), 1e-20)
    constants = (
        beta,
        alpha_bar,
        np.sqrt(alpha_bar),
        np.sqrt(1 - alpha_bar),
        np.sqrt(1 / alpha_bar),
        np.sqrt(1 / alpha_bar - 1),
        beta * np.sqrt(before) / (1 - alpha_bar),
        (1 - before) * np.sqrt(1 - beta) / (1 - alpha_bar),
        np.sqrt(variance) * (t > 0),
    )
    return Schedule(*map(jnp.asarray, constants))  # float32 unless x64 is enabled


def add_noise(schedule: Schedule, clean: Array, t: Array, noise: Array) -> Array:
    """Return the forward sample x_t of clean actions (..., A) at steps t (...)."""
    return schedule.signal[t][..., None] * clean + schedule.noise[t][..., None] * noise


def predict_clean(schedule: Schedule, noisy: Array, t: Array, noise: Array) -> Array:
    """Return the clean action that `noise` implies for x_t."""
    scaled = schedule.inverse_signal[t][..., None] * noisy
    return scaled - schedule.noise_to_signal[t][..., None] * noise


def denoise(
    predict_noise: Callable[[Array, Array], Array],
    schedule: Schedule,
    start: Array,
    noise: Array,
    *,
    bound: float = 1.0,
    trace: bool = False,
) -> Array:
    """Run the reverse chain from `start` (..., A) and return actions in the box.

    `predict_noise(x, t)` takes one step index for all rows; `noise` is standard normal,
    (T, ..., A), the first for step T - 1. The last step returns the clipped clean estimate. With
    `trace` returns every point, the start first: (T + 1, ..., A).
    """

    def step(x: Array, now: tuple[Array, Schedule, Array]) -> tuple[Array, Array | None]:
        t, at, z = now
        guess = at.inverse_signal * x - at.noise_to_signal * predict_noise(x, t)
        clean = jnp.clip(guess, -bound, bound)
        x = at.clean_weight * clean + at.noisy_weight * x + at.std * z
        return x, x if trace else None

    end, points = jax.lax.scan(step, start, (*_backwards(schedule), noise))
    if points is not None:
        return jnp.concatenate([start[None], points])
    return jnp.clip(end, -bound, bound)


def reverse(
    predict_noise: Callable[[Array, Array], Array],
    schedule: Schedule,
    start: Array,
    noise: Array,
    *,
    bound: float,
    trace: bool = False,
) -> Array:
    """Run the reverse chain without a clean estimate: every step is clipped to the box.

    Each step adds the forward noise, standard deviation √β, except the last. Arguments and result
    as in `denoise`.
    """

    def step(x: Array, now: tuple[Array, Schedule, Array]) -> tuple[Array, Array | None]:
        t, at, z = now
        mean = (x - at.beta / at.noise * predict_noise(x, t)) / jnp.sqrt(1 - at.beta)
        x = jnp.clip(mean + jnp.where(t > 0, jnp.sqrt(at.beta) * z, 0.0), -bound, bound)
        return x, x if trace else None

    end, points = jax.lax.scan(step, start, (*_backwards(schedule), noise))
    return end if points is None else jnp.concatenate([start[None], points])


def _backwards(schedule: Schedule) -> tuple[Array, Schedule]:
    """Return step indices and constants from the noisiest step to the clean one."""
    t = jnp.arange(len(schedule.beta) - 1, -1, -1)
    return t, jax.tree.map(lambda constant: constant[::-1], schedule)
