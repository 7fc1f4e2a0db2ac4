"""Sequential Monte Carlo: particles for each sample, moved and chosen from a flat law to exp(f).

Langevin chains settle in the hill they start on; particles that are weighed against each other
share hills by their mass.  Every move is Metropolis-adjusted, so that step sizes leave no bias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from langevinrl.samplers.langevin import Chain
from langevinrl.types import Array, Key

STAGES = (0.2, 0.5, 1.0)  # shares of f, from the flat law to the true one
NUM_PARTICLES = 12  # with those stages 48 gradients a sample
STEP = 0.5  # factor on the variance of a move


class Cloud(NamedTuple):
    """Particles, and what is known of each."""

    x: Array  # (N, ..., A)
    value: Array  # (N, ...)
    slope: Array  # (N, ..., A)


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
    """The path of one particle for each sample, (stages + 1, *shape); its end follows exp(f).

    `log_density` f takes (N, *shape) to (N, *shape[:-1]); samples (..., A) are held in a box of
    half-width `bound`.  Costs N x (stages + 1) gradients a sample.  Particles begin on a lattice
    through `start` (drawn unless given), which is the path's first point.  The end is one
    particle by chance, or with `best` the one where f is highest.

        path = sample_particles(lambda a: w * q(a), (1000, 2), 1.0, jax.random.key(0))
    """
    start_key, move_key, pick_key = jax.random.split(key, 3)
    if start is None:
        start = jax.random.uniform(start_key, shape, minval=-bound, maxval=bound)
    cloud = _look(log_density, lattice(start, bound, num_particles))
    size = _move_size(cloud)
    paths, before = [jnp.broadcast_to(start[None], cloud.x.shape)], 0.0
    for share, stage_key in zip(stages, jax.random.split(move_key, len(stages)), strict=True):
        choose_key, step_key = jax.random.split(stage_key)
        chosen = _resample((share - before) * cloud.value, choose_key)
        cloud = Cloud(*(_take(part, chosen) for part in cloud))
        cloud = _move(
            log_density, cloud, share, jnp.minimum(size / share, bound**2), bound, step_key
        )
        paths = [*(_take(path, chosen) for path in paths), cloud.x]
        before = share
    if best:
        picked = cloud.value.argmax(axis=0)
    else:
        picked = jax.random.randint(pick_key, shape[:-1], 0, num_particles)
    return jnp.stack([_take(path, picked[None])[0] for path in paths])


def draw_particles(
    value: Callable[[Array, int], Array],
    shape: tuple[int, ...],
    chain: Chain,
    w: Array | float,
    level: int,
    key: Key,
    *,
    start: Array | None = None,
    trace: bool = False,
) -> Array:
    """Actions (..., A) from exp(wQ), Q the members' mean of `value(action, level)`.

    Of the chain only the box is used, and whether there is noise: without, the best particle is
    the action.  With `trace`, as in `sample_particles`.
    """

    def log_density(action: Array) -> Array:
        return w * value(action, level).mean(axis=0)

    best = not chain.noisy
    path = sample_particles(log_density, shape, chain.bound, key, start=start, best=best)
    return path if trace else path[-1]


def lattice(origin: Array, bound: float, num: int) -> Array:
    """Points (num, ..., A) evenly over the box through `origin` (..., A), wrapped at its walls.

    Each is uniform if the origin is.  Point k is k times a vector of powers of the root of
    r^(A+1) = r + 1 further on: the plastic number's generalisation of the golden ratio.
    """
    num_axes = origin.shape[-1]
    root = 2.0
    for _ in range(50):
        root = (1.0 + root) ** (1.0 / (num_axes + 1))
    stride = (root ** -jnp.arange(1.0, num_axes + 1)).reshape(*[1] * origin.ndim, num_axes)
    shift = jnp.arange(num).reshape(num, *[1] * origin.ndim) * stride
    return (origin[None] + bound + 2 * bound * shift) % (2 * bound) - bound


def _look(log_density: Callable[[Array], Array], x: Array) -> Cloud:
    value, back = jax.vjp(log_density, x)
    (slope,) = back(jnp.ones_like(value))
    return Cloud(x, value, slope)


def _take(part: Array, chosen: Array) -> Array:
    """Rows `chosen` (M, ...) along the first axis of (N, ...) or (N, ..., A)."""
    index = chosen if part.ndim == chosen.ndim else chosen[..., None]
    return jnp.take_along_axis(part, index, axis=0)


def _resample(log_weight: Array, key: Key) -> Array:
    """Indices (N, ...) of particles in proportion to their weights, evenly spaced."""
    num = len(log_weight)
    edges = jnp.cumsum(jax.nn.softmax(log_weight, axis=0), axis=0)
    ticks = jnp.arange(num).reshape(num, *[1] * (log_weight.ndim - 1))
    place = (ticks + jax.random.uniform(key, (1, *log_weight.shape[1:]))) / num
    return jnp.minimum((place[:, None] > edges[None]).sum(axis=1), num - 1)


def _move_size(cloud: Cloud) -> Array:
    """Variance of a move in exp(f), from values and slopes where particles began: (1, ..., 1).

    Hills of height h and width l have slopes of h/l and curve by h/l², so that h over the slope's
    square is the variance of the law around their tops.  It does not depend on later moves, so
    that those stay exact.
    """
    height = cloud.value.std(axis=0, keepdims=True)[..., None]
    square = jnp.square(cloud.slope).mean(axis=0, keepdims=True).mean(axis=-1, keepdims=True)
    return STEP * height / jnp.maximum(square, 1e-12)


def _move(
    log_density: Callable[[Array], Array],
    cloud: Cloud,
    share: float,
    size: Array,
    bound: float,
    key: Key,
) -> Cloud:
    """One Metropolis-adjusted Langevin step of every particle in the law exp(share f)."""
    noise_key, accept_key = jax.random.split(key)
    drift = size / 2 * share * cloud.slope
    proposal = cloud.x + drift + jnp.sqrt(size) * jax.random.normal(noise_key, cloud.x.shape)
    new = _look(log_density, proposal)
    back = cloud.x - proposal - size / 2 * share * new.slope
    there = proposal - cloud.x - drift
    asymmetry = (jnp.square(there) - jnp.square(back)).sum(axis=-1) / (2 * size[..., 0])
    log_ratio = share * (new.value - cloud.value) + asymmetry
    inside = (jnp.abs(proposal) <= bound).all(axis=-1)
    taken = inside & (jnp.log(jax.random.uniform(accept_key, inside.shape)) < log_ratio)
    kept = (taken[..., None], taken, taken[..., None])
    return Cloud(*(jnp.where(*choice) for choice in zip(kept, new, cloud, strict=True)))
