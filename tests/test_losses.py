"""Losses compared with values worked by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.losses import (
    denoising,
    distributional,
    gaussian_backup,
    gaussian_entropy,
    squared,
    td_backup,
    temperature,
)
from langevinrl.samplers.diffusion import make_schedule
from langevinrl.types import Array, Batch

KEY = jax.random.key(3)


def batch_of(reward: list[float], bootstrap: list[float]) -> Batch:
    rows = len(reward)
    blank = jnp.zeros((rows, 1))
    return Batch(blank, blank, jnp.array(reward), jnp.array(bootstrap), blank, jnp.arange(rows), {})


def test_td_backup_uses_the_smallest_member_and_stops_at_a_termination() -> None:
    next_q = jnp.array([[1.0, 5.0, 2.0], [3.0, 4.0, 2.0]])
    batch = batch_of([10.0, -10.0, 1.0], [1.0, 1.0, 0.0])
    backup = td_backup(next_q, batch, gamma=0.9, reward_scale=0.2)
    np.testing.assert_allclose(backup, [2 + 0.9 * 1, -2 + 0.9 * 4, 0.2], rtol=1e-6)


def test_squared_error_is_summed_over_members_and_averaged_over_rows() -> None:
    error = jnp.array([[1.0, -2.0], [0.0, 3.0]])
    assert float(squared(error)) == pytest.approx((1 + 4) / 2 + (0 + 9) / 2)


@pytest.mark.parametrize(
    ("log_alpha", "entropy", "target", "loss"),
    [(2.0, -3.0, -1.0, -4.0), (1.0, -1.5, -2.0, 0.5), (-0.5, 0.5, -2.0, -1.25)],
)
def test_temperature_loss_is_log_alpha_times_the_surplus_of_entropy(
    log_alpha: float, entropy: float, target: float, loss: float
) -> None:
    value = temperature(jnp.float32(log_alpha), jnp.float32(entropy), target)
    assert float(value) == pytest.approx(loss)


def test_entropy_of_gaussian_noise() -> None:
    # One axis of standard deviation 1 has log sqrt(2πe) = 1.4189385 nats; 0.1 has log 10 less.
    np.testing.assert_allclose(gaussian_entropy(jnp.asarray(1.0), 1), 1.4189385, rtol=1e-6)
    three = gaussian_entropy(jnp.asarray(0.1), 3)
    np.testing.assert_allclose(three, 3 * (1.4189385 - 2.3025851), rtol=1e-5)


def test_gaussian_backups_use_the_member_with_the_smaller_mean() -> None:
    mean = jnp.array([[2.0, 2.0, -3.0], [-1.0, -1.0, 0.0]])
    std = jnp.array([[0.1, 0.1, 0.5], [0.7, 0.7, 0.1]])
    batch, z = batch_of([10.0, -10.0, 1.0], [1.0, 0.0, 1.0]), jnp.array([4.0, 1.0, -1.0])
    y, drawn = gaussian_backup(mean, std, z, batch, gamma=0.9, reward_scale=0.2)
    np.testing.assert_allclose(y, [2 - 0.9, -2, 0.2 - 2.7], rtol=1e-5)
    # z is clipped to 3, and a terminated row adds no noise.
    np.testing.assert_allclose(drawn - y, [0.9 * 0.7 * 3, 0, -0.9 * 0.5], rtol=1e-5)


def test_gradients_of_the_distributional_loss_equal_the_formula() -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(2, 5)), rng.uniform(0.1, 2.0, size=(2, 5))
    y, drawn = rng.normal(size=5), 3 * rng.normal(size=5)
    spread = np.array([0.2, 2.0])  # so that some drawn backups are clipped
    b = spread[:, None]
    near = mean + np.clip(drawn - mean, -3 * b, 3 * b)
    assert (near != drawn).any() and np.isclose(near, drawn).any()
    by_mean = -(b**2 + 0.1) * (y - mean) / (std**2 + 0.1) / 5
    by_std = -(b**2 + 0.1) * ((mean - near) ** 2 - std**2) / (std**3 + 0.1) / 5
    moments = (jnp.asarray(mean, jnp.float32), jnp.asarray(std, jnp.float32))
    rest = tuple(jnp.asarray(x, jnp.float32) for x in (y, drawn, spread))
    grads = jax.grad(distributional, argnums=(0, 1))(*moments, *rest)
    np.testing.assert_allclose(grads[0], by_mean, rtol=1e-4)
    np.testing.assert_allclose(grads[1], by_std, rtol=1e-4, atol=1e-6)
    value = (by_mean * mean + by_std * std).sum()  # the loss is linear in mean and std
    np.testing.assert_allclose(distributional(*moments, *rest), value, rtol=1e-4)


def test_denoising_loss_equals_the_formula() -> None:
    schedule = make_schedule("linear", 20, 0.8)
    clean = jax.random.uniform(KEY, (6, 2), minval=-1.0)
    weight = jnp.array([0.0, 1.0, 2.0, 0.5, 3.0, 1.0])
    loss = denoising(lambda x, t: 0.5 * x + 0.1 * t[:, None], schedule, clean, weight, KEY)
    step_key, noise_key = jax.random.split(KEY)
    t = np.asarray(jax.random.randint(step_key, (6,), 0, 20))
    noise = np.asarray(jax.random.normal(noise_key, (6, 2)))
    bar, total = np.cumprod(1 - 0.8 * np.linspace(1e-4, 0.999, 20)), 0.0
    for b in range(6):
        x = np.sqrt(bar[t[b]]) * np.asarray(clean)[b] + np.sqrt(1 - bar[t[b]]) * noise[b]
        total += float(weight[b]) * ((0.5 * x + 0.1 * t[b] - noise[b]) ** 2).sum()
    np.testing.assert_allclose(loss, total / 12, rtol=1e-5)


def test_denoising_loss_draws_a_step_for_each_row() -> None:
    schedule, steps = make_schedule("linear", 5, 0.8), []

    def predict(x: Array, t: Array) -> Array:
        steps.append(np.asarray(t))
        return x

    denoising(predict, schedule, jnp.zeros((10, 200, 1)), jnp.ones((10, 200)), KEY)
    assert steps[0].shape == (10, 200)  # copies of a row have steps of their own
    np.testing.assert_allclose(np.bincount(steps[0].ravel()) / 2_000, 0.2, atol=0.03)
