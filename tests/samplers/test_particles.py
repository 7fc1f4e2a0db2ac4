"""Particles compared with known densities."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.samplers import sample_particles
from langevinrl.samplers.particles import lattice
from langevinrl.types import Array


def two_modes(x: Array) -> Array:
    """Return the log density of two narrow modes with masses 0.3 and 0.7."""
    height = jnp.log(jnp.array([0.3, 0.7])).reshape((1,) * (x.ndim - 1) + (2,))
    centre = jnp.array([-0.6, 0.6]).reshape((1,) * (x.ndim - 1) + (2,))
    return jax.nn.logsumexp(height - jnp.square(x - centre) / (2 * 0.1**2), axis=-1)


@jax.jit
def draw(scale: float) -> Array:
    """Return paths of 8,000 samples in a box of half-width `scale`."""
    modes = lambda x: two_modes(x / scale)  # noqa: E731
    return sample_particles(modes, (8_000, 1), scale, jax.random.key(0))


def test_modes_are_sampled_in_proportion_to_their_mass() -> None:
    path = draw(1.0)
    end = np.asarray(path[-1, :, 0])
    assert (end > 0).mean() == pytest.approx(0.7, abs=0.02)
    assert np.abs(np.abs(end) - 0.6).std() == pytest.approx(0.06, abs=0.02)
    assert path.shape == (4, 8_000, 1) and np.abs(path).max() <= 1.0


def test_a_linear_log_density_gives_an_exponential_distribution() -> None:
    def linear(x: Array) -> Array:
        return 5 * x.sum(axis=-1)

    many = partial(sample_particles, linear, (1_000, 2), 1.0, num_particles=96)
    end = jax.jit(many)(jax.random.key(0))[-1]
    exact = 0.2 - 2 / (np.exp(10) - 1)  # mean distance from the wall of exp(5x) in [-1, 1]
    np.testing.assert_allclose((1 - end).mean(axis=0), exact, atol=0.03)


def test_samples_scale_with_the_box() -> None:
    small, large = draw(1.0)[:, :50], draw(8.0)[:, :50]
    np.testing.assert_allclose(8 * small, large, rtol=1e-3, atol=1e-3)


def test_best_particle_is_near_a_mode_and_the_path_begins_at_the_start() -> None:
    start = jnp.full((20, 1), 0.25)
    climb = partial(sample_particles, two_modes, (20, 1), 1.0, start=start, best=True)
    path = jax.jit(climb)(jax.random.key(0))
    np.testing.assert_array_equal(path[0], start)
    assert float(jnp.abs(path[-1] - 0.6).max()) < 0.15


def test_lattice_covers_the_box_evenly() -> None:
    points = np.asarray(lattice(jnp.array([[0.9, -0.4]]), 1.0, 64))[:, 0]
    np.testing.assert_allclose(points[0], [0.9, -0.4], atol=1e-6)
    counts = np.histogram2d(*points.T, bins=4, range=[[-1, 1], [-1, 1]])[0]
    assert counts.min() >= 2 and counts.max() <= 6
