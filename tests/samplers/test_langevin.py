"""The walk against densities whose answer is known, and the paper's plan."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.samplers.langevin import (
    Chain,
    annealed_plan,
    constant_plan,
    draw,
    geometric_sigmas,
    sample,
    unit,
    walk,
)
from langevinrl.types import Array

SIGMAS = geometric_sigmas(0.1, 1e-3, 10)


def paper_chain(**changes: object) -> Chain:
    chain = Chain(annealed_plan(SIGMAS, 2, 1e-4), 500.0, 1.0, "uniform", True, True)
    return chain._replace(**changes)  # type: ignore[arg-type]


def test_levels_and_steps_of_the_paper() -> None:
    expected = [0.1, 0.05995, 0.03594, 0.02154, 0.01292, 0.00774, 0.00464, 0.00278, 0.00167, 0.001]
    np.testing.assert_allclose(SIGMAS, expected, atol=6e-6)
    assert SIGMAS[1] == pytest.approx(0.0599484, abs=1e-6)
    plan = annealed_plan(SIGMAS, 2, 1e-4)
    assert plan.step_size[0] == pytest.approx(1.0, rel=1e-5)
    assert plan.step_size[-1] == pytest.approx(1e-4, rel=1e-6)
    np.testing.assert_array_equal(plan.level, np.repeat(np.arange(10), 2))
    drift = plan.step_size[::2] / 2 * 500
    expected_drift = [250, 89.9, 32.3, 11.6, 4.17, 1.50, 0.539, 0.194, 0.0696, 0.025]
    np.testing.assert_allclose(drift, expected_drift, rtol=3e-3)


def test_a_constant_plan_settles_on_a_gaussian() -> None:
    mean, std, size = 0.7, 0.4, 0.01

    def score(x: Array, level: Array) -> Array:
        return (mean - x) / std**2

    x = walk(score, jnp.zeros((20_000, 1)), constant_plan(300, size), jax.random.key(0))
    # The unadjusted chain's own fixed point: std^2 / (1 - size / (4 std^2)).
    resolved = std / np.sqrt(1 - size / (4 * std**2))
    assert float(x.mean()) == pytest.approx(mean, abs=0.01)
    assert float(x.std()) == pytest.approx(resolved, abs=0.01)


def test_an_annealed_plan_shares_two_far_modes_by_their_mass() -> None:
    weights, centres, width = jnp.array([0.3, 0.7]), jnp.array([-4.0, 4.0]), 0.3
    sigmas = geometric_sigmas(6.0, 0.1, 12)

    def score(x: Array, level: Array) -> Array:
        def log_density(one: Array) -> Array:
            variance = width**2 + sigmas[level] ** 2
            return jax.nn.logsumexp(jnp.log(weights) - jnp.square(one - centres) / 2 / variance)

        return jax.vmap(jax.grad(log_density))(x)

    start = 6.0 * jax.random.normal(jax.random.key(1), (6_000,))
    plan = annealed_plan(sigmas, 40, 2e-3)
    x = walk(score, start, plan, jax.random.key(2))
    assert float((x > 0).mean()) == pytest.approx(0.7, abs=0.04)
    assert float(jnp.minimum(abs(x - 4), abs(x + 4)).mean()) < 0.4
    # Without annealing a chain stays in the half it began in.
    stuck = walk(score, start, constant_plan(480, 2e-3)._replace(level=plan.level * 0 + 11),
                 jax.random.key(3))  # fmt: skip
    assert float((stuck > 0).mean()) == pytest.approx(0.5, abs=0.04)


def test_without_a_gradient_each_step_is_pure_noise() -> None:
    def flat(action: Array, level: Array) -> Array:
        return jnp.zeros(action.shape[:-1])

    once = paper_chain(plan=constant_plan(1, 1e-4))
    key = jax.random.key(0)
    start_key, _ = jax.random.split(key)
    start = jax.random.uniform(start_key, (5_000, 4), minval=-1.0, maxval=1.0)
    moved = draw(flat, (5_000, 4), once, key)
    inside = jnp.abs(start) < 0.9
    step = np.asarray(moved - start)[np.asarray(inside)]
    assert step.std() == pytest.approx(0.01, rel=0.03)
    assert abs(step.mean()) < 3e-4
    assert float(jnp.abs(moved).max()) <= 1.0


def test_a_linear_landscape_is_climbed_to_its_corner() -> None:
    slope = jnp.array([3.0, -1.0, 2.0])
    after_first_level = paper_chain(plan=annealed_plan(SIGMAS, 2, 1e-4)._replace(
        step_size=jnp.ones(2), level=jnp.zeros(2, jnp.int32)))  # fmt: skip

    def value(action: Array, level: Array) -> Array:
        return action @ slope

    corner = draw(value, (500, 3), after_first_level, jax.random.key(0))
    np.testing.assert_array_equal(corner, np.tile(np.sign(slope), (500, 1)))
    end = draw(value, (500, 3), paper_chain(), jax.random.key(0))
    # The last, clean level leaves noise of 0.01 a step, held back by the box.
    assert float(jnp.abs(end - jnp.sign(slope)[None]).mean()) < 0.02


def test_a_scaled_landscape_gives_the_same_chain() -> None:
    def value(action: Array, level: Array) -> Array:
        return jnp.sin(3 * action).sum(-1) + jnp.square(action).sum(-1) * (level + 1) / 10

    chain = paper_chain(inverse_temperature=5.0)
    once = draw(value, (64, 3), chain, jax.random.key(0))
    tenfold = draw(lambda a, i: 10 * value(a, i), (64, 3), chain, jax.random.key(0))
    np.testing.assert_allclose(once, tenfold, atol=1e-5)
    raw = draw(value, (64, 3), chain._replace(normalise=False), jax.random.key(0))
    assert float(jnp.abs(raw - once).max()) > 0.1


def test_switches_of_start_and_clip() -> None:
    def flat(action: Array, level: Array) -> Array:
        return jnp.zeros(action.shape[:-1])

    still = constant_plan(1, 1e-12)
    normal = draw(flat, (4_000, 2), paper_chain(plan=still, start="normal", bound=9.0),
                  jax.random.key(0))  # fmt: skip
    assert float(normal.std()) == pytest.approx(1.0, abs=0.03)
    uniform = draw(flat, (4_000, 2), paper_chain(plan=still, bound=2.0), jax.random.key(0))
    assert float(jnp.abs(uniform).max()) == pytest.approx(2.0, abs=0.01)
    assert float(uniform.std()) == pytest.approx(2 / np.sqrt(3), abs=0.03)
    zero = draw(flat, (40, 2), paper_chain(plan=still, start="zero"), jax.random.key(0))
    assert float(jnp.abs(zero).max()) < 1e-5

    def ramp(action: Array, level: Array) -> Array:  # pulls outwards until 3, back beyond
        return -jnp.abs(action[..., 0] - 3)

    wide = paper_chain(plan=constant_plan(400, 1e-4))
    free = draw(ramp, (200, 1), wide._replace(clip=False), jax.random.key(0))
    assert float(jnp.abs(free).max()) <= 1.0  # an action is inside its box in any case


def test_unit_keeps_a_zero_gradient_zero() -> None:
    rows = unit(jnp.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


def test_any_energy_can_be_sampled_and_without_noise_descended() -> None:
    """A Gaussian of mean 2 and deviation 0.5 by its energy alone."""

    def energy(x: Array, level: Array) -> Array:
        del level
        return ((x - 2.0) ** 2).sum(-1) / (2 * 0.25)

    plan, key = constant_plan(300, 0.02), jax.random.key(0)
    points = sample(energy, jnp.zeros((4_000, 1)), plan, key)
    assert abs(float(points.mean()) - 2.0) < 0.03
    assert abs(float(points.std()) - 0.5) < 0.03
    passed = sample(energy, jnp.zeros((3, 1)), plan, key, trace=True)
    assert passed.shape == (301, 3, 1)
    held = sample(energy, jnp.zeros((9, 1)), plan, key, lambda x: jnp.clip(x, 0.0, 1.0))
    assert float(held.min()) >= 0.0 and float(held.max()) <= 1.0
    still = walk(lambda x, _: (2.0 - x) / 0.25, jnp.zeros((3, 1)), plan, key, noisy=False)
    np.testing.assert_allclose(still, 2.0, atol=1e-3)
