"""Unadjusted Langevin dynamics, plain and annealed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.types import Array, Key

Value: TypeAlias = Callable[[Array, Any], Array]  # of actions (..., A) at a level


class Plan(NamedTuple):
    """Step size, noise level and noise of every step of a chain."""

    step_size: Array  # (T,)
    level: Array  # (T,)  0 is the noisiest
    noise_std: Array  # (T,)


def constant_plan(num_steps: int, step_size: float) -> Plan:
    """Return equal steps at level 0 (Def. 1)."""
    sizes = jnp.full(num_steps, step_size)
    return Plan(sizes, jnp.zeros(num_steps, jnp.int32), jnp.sqrt(sizes))


def geometric_sigmas(sigma_max: float, sigma_min: float, num_levels: int) -> Array:
    """Return noise levels from the largest to the smallest, in equal ratios: (L,)."""
    if num_levels == 1:
        return jnp.full(1, sigma_min)
    return jnp.exp(jnp.linspace(jnp.log(sigma_max), jnp.log(sigma_min), num_levels))


def annealed_plan(sigmas: Array, steps_per_level: int, step_size: float | Array) -> Plan:
    """Return steps that shrink with the square of the level's noise (Def. 2)."""
    level = jnp.repeat(jnp.arange(len(sigmas)), steps_per_level)
    # The ratio comes first: squaring sigmas of 1e-3 and then dividing loses digits in float32.
    sizes = step_size * (sigmas[level] / sigmas[-1]) ** 2
    return Plan(sizes, level, jnp.sqrt(sizes))


def langevin_chain(
    score: Callable[[Array, Array], Array],
    start: Array,
    plan: Plan,
    noise: Array | None,
    project: Callable[[Array], Array] = lambda x: x,
    *,
    trace: bool = False,
) -> Array:
    """Run x ← project(x + step/2 · score(x, level) + noise_std · noise) for every step.

    `noise` is standard normal, (T, ...); None leaves it out, and the chain climbs to a mode.
    Returns the last point, or with `trace` every point including the start: (T + 1, ...).
    """

    def step(x: Array, now: tuple[Plan, Array | None]) -> tuple[Array, Array | None]:
        (size, level, noise_std), z = now
        moved = x + size / 2 * score(x, level)
        x = project(moved if z is None else moved + noise_std * z)
        return x, x if trace else None

    end, points = jax.lax.scan(step, start, (plan, noise))
    return end if points is None else jnp.concatenate([start[None], points])


def langevin_in_box(
    score: Callable[[Array, Array], Array],
    start: Array,
    plan: Plan,
    noise: Array | None,
    bound: float,
    *,
    clip: bool = True,
    trace: bool = False,
) -> Array:
    """Run `langevin_chain` in [-bound, bound]; without `clip` only its end is clipped."""

    def box(x: Array) -> Array:
        return jnp.clip(x, -bound, bound)

    path = langevin_chain(score, start, plan, noise, box if clip else lambda x: x, trace=trace)
    if clip:
        return path
    return jnp.concatenate([path[:-1], box(path[-1:])]) if trace else box(path)


def sample(
    energy: Callable[[Array, Array], Array],
    start: Array,
    plan: Plan,
    key: Key,
    project: Callable[[Array], Array] = lambda x: x,
    *,
    trace: bool = False,
) -> Array:
    """Sample from exp(-energy(x, level)) by Langevin dynamics from `start` (..., D).

    `energy` takes points (..., D) and the plan's level, and returns (...). An annealed plan goes
    from the smoothest energy, level 0, to the true one; a constant plan uses level 0 only.

        sigmas = geometric_sigmas(5.0, 0.1, 20)
        sample(energy, jnp.zeros((1000, 2)), annealed_plan(sigmas, 50, 1e-3), jax.random.key(0))

    `project` is applied after every step, for example to clip to a box. `trace` returns all points.
    """

    def score(x: Array, level: Array) -> Array:
        return -jax.grad(lambda points: energy(points, level).sum())(x)

    keys = jax.random.split(key, len(plan.step_size))
    noise = jax.vmap(lambda step_key: jax.random.normal(step_key, start.shape))(keys)
    return langevin_chain(score, start, plan, noise, project, trace=trace)


def action_gradient(value: Value, action: Array, level: Array | int) -> Array:
    """Return the gradient of `value(action, level)`, summed over critics, at actions (..., A)."""
    return jax.grad(lambda points: value(points, level).sum())(action)


def path_gradients(value: Value, path: Array, plan: Plan) -> Array:
    """Return the action gradient at every point a chain moved from: (T, ..., A)."""

    def gradient(_: None, left: tuple[Array, Array]) -> tuple[None, Array]:
        action, level = left
        return None, action_gradient(value, action, level)

    return jax.lax.scan(gradient, None, (path[:-1], plan.level))[1]


def unit(gradient: Array) -> Array:
    """Return each row's direction (App. E); a zero gradient stays zero."""
    return gradient / (jnp.linalg.norm(gradient, axis=-1, keepdims=True) + 1e-8)
