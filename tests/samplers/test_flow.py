"""Mean flows compared with closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.samplers.flow import integrate, interpolate
from langevinrl.types import Array

MEAN, STD = 0.7, 0.3  # of the actions a standard normal flows to


def std_at(t: Array) -> Array:
    """Return the standard deviation at time t of straight paths from N(0, 1) to N(MEAN, STD²)."""
    return jnp.sqrt((1 - t) ** 2 + (t * STD) ** 2)


def gaussian_velocity(x: Array, t: Array, rho: Array) -> Array:
    """Return the exact average velocity from t to ρ; the flow keeps each sample's quantile."""
    arrived = MEAN * rho + std_at(rho) / std_at(t) * (x - MEAN * t)
    return (arrived - x) / (rho - t)


def test_interpolation_runs_from_noise_to_action() -> None:
    noise, action = jnp.array([[1.0, -2.0]] * 3), jnp.array([[3.0, 4.0]] * 3)
    x = interpolate(noise, action, jnp.array([0.0, 0.25, 1.0]))
    np.testing.assert_allclose(x, [[1.0, -2.0], [1.5, -0.5], [3.0, 4.0]])


@pytest.mark.parametrize("num_steps", [1, 3])
def test_flow_reaches_a_gaussian_in_any_number_of_steps(num_steps: int) -> None:
    start = jax.random.normal(jax.random.key(1), (20_000,))
    x = integrate(gaussian_velocity, start, num_steps)
    np.testing.assert_allclose(x, MEAN + STD * start, atol=1e-5)
    assert abs(float(x.mean()) - MEAN) < 0.01
    assert abs(float(x.std()) - STD) < 0.01


def test_velocity_receives_the_times_of_each_step() -> None:
    # dx = Δ t with t the start of each quarter: 0.25 (0 + 0.25 + 0.5 + 0.75); with its end, 0.625.
    start = jnp.zeros((2, 1))
    begin = integrate(lambda x, t, rho: jnp.full_like(x, 1.0) * t, start, 4)
    end = integrate(lambda x, t, rho: jnp.full_like(x, 1.0) * rho, start, 4)
    np.testing.assert_allclose(begin, np.full((2, 1), 0.375), rtol=1e-6)
    np.testing.assert_allclose(end, np.full((2, 1), 0.625), rtol=1e-6)
