"""Mean flow over actions: straight paths from noise (time 0) to action (time 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.types import Array

# u(x, t, ρ): mean velocity from t to ρ of the path through x at t; times for all rows or per row.
AverageVelocity: TypeAlias = Callable[[Array, Array, Array], Array]


def interpolate(noise: Array, action: Array, t: Array) -> Array:
    """Return the points at times t (...) of straight paths from noise to action (..., A)."""
    return (1 - t)[..., None] * noise + t[..., None] * action


def jump(average_velocity: AverageVelocity, x: Array, t: Array, rho: Array) -> Array:
    """Move from time t to time ρ in one step, exact if the average velocity is."""
    return x + (rho - t) * average_velocity(x, t, rho)


def integrate(
    average_velocity: AverageVelocity, start: Array, num_steps: int, *, trace: bool = False
) -> Array:
    """Go from noise to action in `num_steps` (K) equal steps; `trace` returns K + 1 points."""

    def step(x: Array, now: tuple[Array, Array]) -> tuple[Array, Array | None]:
        x = jump(average_velocity, x, *now)
        return x, x if trace else None

    times = jnp.linspace(0.0, 1.0, num_steps + 1)
    end, points = jax.lax.scan(step, start, (times[:-1], times[1:]))
    return end if points is None else jnp.concatenate([start[None], points])
