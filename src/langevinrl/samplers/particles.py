"""Sequential Monte Carlo: particles moved and resampled from a uniform density to exp(f).

A Langevin chain stays at the mode it starts near. Resampled particles share modes by their mass.
Every move is Metropolis-adjusted, so the step size adds no bias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from langevinrl.types import Array, Key

STAGES = (0.2, 0.5, 1.0)  # exponents: the density at a stage is exp(share · f)
NUM_PARTICLES = 12  # with these stages 48 gradients per sample
STEP = 0.5  # factor on the variance of a move


class Particles(NamedTuple):
    """Positions, log densities and their gradients."""

    x: Array  # (N, ..., A)
    value: Array  # (N, ...)
    gradient: Array  # (N, ..., A)


def sample_particles(
    log_density: Callable[[Array], Array],
    shape: tuple[int, ...],
    bound: float,
    key: Key,
    *,
    num_particles: int = NUM_PARTICLES,
    stages: tuple[float, ...] = STAGES,
    start: Array | None = None,
    best: bool = False,
) -> Array:
    """Return the path of one particle per sample, (stages + 1, *shape); its end follows exp(f).

    `log_density` f maps (N, *shape) to (N, *shape[:-1]). Samples (..., A) stay in a box of
    half-width `bound`. A sample costs N x (stages + 1) gradients. Particles start on a lattice
    through `start` (uniform unless given), which is the first point of the path. The end is a
    random particle, or with `best` the one with the highest f.

        path = sample_particles(lambda a: w * q(a), (1000, 2), 1.0, jax.random.key(0))
    """
    start_key, move_key, pick_key = jax.random.split(key, 3)
    if start is None:
        start = jax.random.uniform(start_key, shape, minval=-bound, maxval=bound)
    particles = _evaluate(log_density, lattice(start, bound, num_particles))
    size = _move_size(particles)
    paths, before = [jnp.broadcast_to(start[None], particles.x.shape)], 0.0
    for share, stage_key in zip(stages, jax.random.split(move_key, len(stages)), strict=True):
        choose_key, step_key = jax.random.split(stage_key)
        chosen = _resample((share - before) * particles.value, choose_key)
        particles = Particles(*(_take(part, chosen) for part in particles))
        particles = _move(
            log_density, particles, share, jnp.minimum(size / share, bound**2), bound, step_key
        )
        paths = [*(_take(path, chosen) for path in paths), particles.x]
        before = share
    if best:
        picked = particles.value.argmax(axis=0)
    else:
        picked = jax.random.randint(pick_key, shape[:-1], 0, num_particles)
    return jnp.stack([_take(path, picked[None])[0] for path in paths])


def lattice(origin: Array, bound: float, num: int) -> Array:
    """Return points (num, ..., A) spread evenly over the box, starting at `origin` (..., A).

    Point k is the origin shifted by k times a fixed vector, wrapped at the walls, so each point is
    uniform if the origin is. The vector holds powers of the root of r^(A+1) = r + 1, which
    generalises the golden ratio.
    """
    num_axes = origin.shape[-1]
    root = 2.0
    for _ in range(50):
        root = (1.0 + root) ** (1.0 / (num_axes + 1))
    stride = (root ** -jnp.arange(1.0, num_axes + 1)).reshape(*[1] * origin.ndim, num_axes)
    shift = jnp.arange(num).reshape(num, *[1] * origin.ndim) * stride
    return (origin[None] + bound + 2 * bound * shift) % (2 * bound) - bound


def _evaluate(log_density: Callable[[Array], Array], x: Array) -> Particles:
    value, back = jax.vjp(log_density, x)
    (gradient,) = back(jnp.ones_like(value))
    return Particles(x, value, gradient)


def _take(part: Array, chosen: Array) -> Array:
    """Select rows `chosen` (M, ...) along the first axis of (N, ...) or (N, ..., A)."""
    index = chosen if part.ndim == chosen.ndim else chosen[..., None]
    return jnp.take_along_axis(part, index, axis=0)


def _resample(log_weight: Array, key: Key) -> Array:
    """Return particle indices (N, ...) by systematic resampling."""
    num = len(log_weight)
    edges = jnp.cumsum(jax.nn.softmax(log_weight, axis=0), axis=0)
    ticks = jnp.arange(num).reshape(num, *[1] * (log_weight.ndim - 1))
    place = (ticks + jax.random.uniform(key, (1, *log_weight.shape[1:]))) / num
    return jnp.minimum((place[:, None] > edges[None]).sum(axis=1), num - 1)


def _move_size(particles: Particles) -> Array:
    """Return the variance of a move in exp(f), from the starting particles: (1, ..., 1).

    A mode of height h and width l has gradients of size h/l and curvature h/l², so h over the
    squared gradient is the variance around its top. It does not depend on later moves, which keeps
    them exact.
    """
    height = particles.value.std(axis=0, keepdims=True)[..., None]
    square = jnp.square(particles.gradient).mean(axis=0, keepdims=True).mean(axis=-1, keepdims=True)
    return STEP * height / jnp.maximum(square, 1e-12)


def _move(
    log_density: Callable[[Array], Array],
    particles: Particles,
    share: float,
    size: Array,
    bound: float,
    key: Key,
) -> Particles:
    """Take one Metropolis-adjusted Langevin step of every particle under exp(share · f)."""
    noise_key, accept_key = jax.random.split(key)
    drift = size / 2 * share * particles.gradient
    proposal = (
        particles.x + drift + jnp.sqrt(size) * jax.random.normal(noise_key, particles.x.shape)
    )
    new = _evaluate(log_density, proposal)
    back = particles.x - proposal - size / 2 * share * new.gradient
    there = proposal - particles.x - drift
    asymmetry = (jnp.square(there) - jnp.square(back)).sum(axis=-1) / (2 * size[..., 0])
    log_ratio = share * (new.value - particles.value) + asymmetry
    inside = (jnp.abs(proposal) <= bound).all(axis=-1)
    taken = inside & (jnp.log(jax.random.uniform(accept_key, inside.shape)) < log_ratio)
    kept = (taken[..., None], taken, taken[..., None])
    return Particles(*(jnp.where(*choice) for choice in zip(kept, new, particles, strict=True)))
