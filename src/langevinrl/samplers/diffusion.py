"""Gaussian diffusion over actions: noise schedules, the forward sample, and the reverse chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.types import Array, Key

ScheduleName: TypeAlias = Literal["linear", "vp", "cosine"]


class Schedule(NamedTuple):
    """The constants of a chain, each (T,); index 0 is the least noisy step."""

    beta: Array
    alpha_bar: Array
    signal: Array  # √ᾱ: what is left of the clean action in a noisy one
    noise: Array  # √(1 - ᾱ): and how much noise there is
    inverse_signal: Array  # √(1/ᾱ)
    noise_to_signal: Array  # √(1/ᾱ - 1)
    clean_weight: Array  # posterior mean = clean_weight x clean + noisy_weight x noisy
    noisy_weight: Array
    std: Array  # of the posterior; zero at step 0, which adds no noise


def make_schedule(name: ScheduleName, num_steps: int, scale: float = 1.0) -> Schedule:
    """Noise rates by name: linear up to 0.999 times `scale` (c), variance-preserving, or cosine."""
    # In float64 on the host, roots too: at step 0 a float32 1 - ᾱ has three digits left.
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
    return Schedule(*map(jnp.asarray, constants))  # float32, unless JAX is told to be wider


def add_noise(schedule: Schedule, clean: Array, t: Array, noise: Array) -> Array:
    """The forward sample x_t of clean actions (..., A) at steps t (...)."""
    return schedule.signal[t][..., None] * clean + schedule.noise[t][..., None] * noise


def predict_clean(schedule: Schedule, noisy: Array, t: Array, noise: Array) -> Array:
    """The clean action that `noise` implies for x_t."""
    scaled = schedule.inverse_signal[t][..., None] * noisy
    return scaled - schedule.noise_to_signal[t][..., None] * noise


def denoise(
    predict_noise: Callable[[Array, Array], Array],
    schedule: Schedule,
    shape: tuple[int, ...],
    key: Key,
    *,
    bound: float = 1.0,
    start_std: float = 0.5,
    start: Array | None = None,
    trace: bool = False,
) -> Array:
    """The reverse chain: actions of `shape` (..., A), from noise of `start_std` down to step 0.

    `predict_noise(x, t)` takes one step index for all rows.  The last step returns the clipped
    clean estimate.  Begins at `start` if given; with `trace` returns every point: (T + 1, ..., A).
    """
    start_key, chain_key = jax.random.split(key)
    num_steps = len(schedule.beta)

    def step(x: Array, now: tuple[Array, Key]) -> tuple[Array, Array | None]:
        t, noise_key = now
        guess = predict_clean(schedule, x, jnp.broadcast_to(t, x.shape[:-1]), predict_noise(x, t))
        clean = jnp.clip(guess, -bound, bound)
        mean = schedule.clean_weight[t] * clean + schedule.noisy_weight[t] * x
        x = mean + schedule.std[t] * jax.random.normal(noise_key, shape)
        return x, x if trace else None

    if start is None:
        start = start_std * jax.random.normal(start_key, shape)
    steps = (jnp.arange(num_steps - 1, -1, -1), jax.random.split(chain_key, num_steps))
    end, passed = jax.lax.scan(step, start, steps)
    if passed is not None:
        return jnp.concatenate([start[None], passed])
    return jnp.clip(end, -bound, bound)


def reverse(
    predict_noise: Callable[[Array, Array], Array],
    schedule: Schedule,
    start: Array,
    key: Key,
    bound: float,
    *,
    trace: bool = False,
) -> Array:
    """The chain back with its forward noise: no clean estimate, every step clipped to the box.

    With `trace` returns every point, the start first: (T + 1, ..., A).
    """

    def step(x: Array, now: tuple[Array, Array, Array, Key]) -> tuple[Array, Array | None]:
        t, beta, spread, noise_key = now
        mean = (x - beta / spread * predict_noise(x, t)) / jnp.sqrt(1 - beta)
        noise = jnp.sqrt(beta) * jax.random.normal(noise_key, x.shape)
        x = jnp.clip(mean + jnp.where(t > 0, noise, 0.0), -bound, bound)
        return x, x if trace else None

    keys = jax.random.split(key, len(schedule.beta))
    steps = (jnp.arange(len(keys)), schedule.beta, schedule.noise, keys)
    end, passed = jax.lax.scan(step, start, steps, reverse=True)
    return end if passed is None else jnp.concatenate([start[None], passed[::-1]])
