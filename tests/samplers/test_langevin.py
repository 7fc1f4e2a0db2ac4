"""Langevin chains on known densities, and the paper's noise levels and step sizes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.samplers.langevin import (
    Plan,
    action_gradient,
    annealed_plan,
    constant_plan,
    geometric_sigmas,
    langevin_chain,
    langevin_in_box,
    path_gradients,
    sample,
    unit,
)
from langevinrl.types import Array

SIGMAS = geometric_sigmas(0.1, 1e-3, 10)
PAPER_PLAN = annealed_plan(SIGMAS, 2, 1e-4)
KEY = jax.random.key(0)


def normal(num_steps: int, *shape: int) -> Array:
    return jax.random.normal(KEY, (num_steps, *shape))


def test_levels_and_step_sizes_are_those_of_the_paper() -> None:
    expected = [0.1, 0.05995, 0.03594, 0.02154, 0.01292, 0.00774, 0.00464, 0.00278, 0.00167, 0.001]
    np.testing.assert_allclose(SIGMAS, expected, atol=6e-6)
    np.testing.assert_array_equal(PAPER_PLAN.level, np.repeat(np.arange(10), 2))
    np.testing.assert_allclose(PAPER_PLAN.step_size[::19], [1.0, 1e-4], rtol=1e-5)
    np.testing.assert_allclose(PAPER_PLAN.noise_std, np.sqrt(PAPER_PLAN.step_size), rtol=1e-6)
    drift = PAPER_PLAN.step_size[::2] / 2 * 500
    expected_drift = [250, 89.9, 32.3, 11.6, 4.17, 1.50, 0.539, 0.194, 0.0696, 0.025]
    np.testing.assert_allclose(drift, expected_drift, rtol=3e-3)


def test_each_step_adds_half_the_scaled_score_and_the_given_noise() -> None:
    plan = Plan(jnp.array([0.5, 0.1]), jnp.array([0, 1]), jnp.array([0.3, 0.2]))
    start, noise = jnp.array([[1.0, -2.0]]), jnp.array([[[1.0, 0.0]], [[-1.0, 2.0]]])
    path = langevin_chain(lambda x, level: x * (level + 1), start, plan, noise, trace=True)
    first = np.array([1.0, -2.0]) * 1.25 + 0.3 * np.array([1.0, 0.0])
    second = first * 1.1 + 0.2 * np.array([-1.0, 2.0])
    np.testing.assert_allclose(path[:, 0], [[1.0, -2.0], first, second], rtol=1e-6)
    still = langevin_chain(lambda x, level: x * (level + 1), start, plan, None)
    np.testing.assert_allclose(still, start * 1.25 * 1.1, rtol=1e-6)


def test_constant_plan_samples_a_gaussian() -> None:
    mean, std, size = 0.7, 0.4, 0.01
    noise = normal(300, 10_000, 1)

    def score(x: Array, level: Array) -> Array:
        return (mean - x) / std**2

    x = langevin_chain(score, jnp.zeros((10_000, 1)), constant_plan(300, size), noise)
    # The unadjusted chain's own stationary variance: std² / (1 - size / (4 std²)).
    resolved = std / np.sqrt(1 - size / (4 * std**2))
    assert float(x.mean()) == pytest.approx(mean, abs=0.01)
    assert float(x.std()) == pytest.approx(resolved, abs=0.01)


def test_annealed_plan_finds_both_modes_in_proportion_to_their_mass() -> None:
    weights, centres, std = jnp.array([0.3, 0.7]), jnp.array([-4.0, 4.0]), 0.3
    sigmas = geometric_sigmas(6.0, 0.1, 12)

    def score(x: Array, level: Array) -> Array:
        def log_density(one: Array) -> Array:
            variance = std**2 + sigmas[level] ** 2
            return jax.nn.logsumexp(jnp.log(weights) - jnp.square(one - centres) / 2 / variance)

        return jax.vmap(jax.grad(log_density))(x)

    start = 6.0 * jax.random.normal(jax.random.key(1), (3_000,))
    plan, noise = annealed_plan(sigmas, 40, 2e-3), normal(480, 3_000)
    x = langevin_chain(score, start, plan, noise)
    assert float((x > 0).mean()) == pytest.approx(0.7, abs=0.04)
    assert float(jnp.minimum(abs(x - 4), abs(x + 4)).mean()) < 0.4
    # Without annealing a chain stays in the half it began in.
    clean = constant_plan(480, 2e-3)._replace(level=plan.level * 0 + 11)
    stuck = langevin_chain(score, start, clean, noise)
    assert float((stuck > 0).mean()) == pytest.approx(0.5, abs=0.04)


def test_chain_climbs_a_linear_value_to_the_corner_of_the_box() -> None:
    gradient = jnp.array([[3.0, -1.0, 2.0]])
    start = jax.random.uniform(KEY, (500, 3), minval=-1.0)

    def score(x: Array, level: Array) -> Array:
        return 500 * unit(jnp.broadcast_to(gradient, x.shape))

    path = langevin_in_box(score, start, PAPER_PLAN, normal(20, 500, 3), 1.0, trace=True)
    corner = np.tile(np.sign(gradient), (500, 1))
    np.testing.assert_array_equal(path[2], corner)  # after the first level
    # The clean level leaves noise of 0.01 a step, limited by the box.
    assert float(jnp.abs(path[-1] - corner).mean()) < 0.02


def test_without_clip_only_the_end_is_in_the_box() -> None:
    def score(x: Array, level: Array) -> Array:  # pulls outwards until 3
        return 500 * jnp.sign(3 - x)

    start, plan, noise = jnp.zeros((200, 1)), constant_plan(100, 1e-3), normal(100, 200, 1)
    free = langevin_in_box(score, start, plan, noise, 1.0, clip=False, trace=True)
    assert float(free[-2].min()) > 2.0 and float(jnp.abs(free[-1]).max()) <= 1.0
    end = langevin_in_box(score, start, plan, noise, 1.0, clip=False)
    np.testing.assert_allclose(end, free[-1], atol=1e-6)
    held = langevin_in_box(score, start, plan, noise, 1.0, trace=True)
    assert float(jnp.abs(held).max()) <= 1.0


def test_unit_of_each_row() -> None:
    rows = jnp.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(unit(rows), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


def test_gradients_along_a_path_are_summed_over_critics_at_each_level() -> None:
    def value(action: Array, level: Array | int) -> Array:  # two critics
        square = jnp.square(action).sum(axis=-1)
        return jnp.stack([square, level * square])

    plan = constant_plan(2, 0.1)._replace(level=jnp.array([0, 3]))
    path = jax.random.normal(KEY, (3, 5, 2))
    expected = np.stack([2 * path[0], 8 * path[1]])
    np.testing.assert_allclose(path_gradients(value, path, plan), expected, rtol=1e-5)
    np.testing.assert_allclose(action_gradient(value, path[1], 3), expected[1], rtol=1e-5)


def test_sample_draws_from_an_energy() -> None:
    """A Gaussian with mean 2 and standard deviation 0.5."""

    def energy(x: Array, level: Array) -> Array:
        return ((x - 2.0) ** 2).sum(-1) / (2 * 0.25)

    plan = constant_plan(300, 0.02)
    points = sample(energy, jnp.zeros((4_000, 1)), plan, KEY)
    assert abs(float(points.mean()) - 2.0) < 0.03
    assert abs(float(points.std()) - 0.5) < 0.03
    path = sample(energy, jnp.zeros((9, 1)), plan, KEY, lambda x: jnp.clip(x, 0, 1), trace=True)
    assert path.shape == (301, 9, 1)
    assert float(path.min()) >= 0.0 and float(path.max()) <= 1.0
