"""Each loss against a value worked by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.losses import distributional, squared, td_backup, temperature
from langevinrl.types import Batch


def batch_of(reward: list[float], bootstrap: list[float]) -> Batch:
    rows = len(reward)
    blank = jnp.zeros((rows, 1))
    return Batch(blank, blank, jnp.array(reward), jnp.array(bootstrap), blank, jnp.arange(rows), {})


def test_td_backup_takes_the_least_member_and_stops_at_a_true_end() -> None:
    next_q = jnp.array([[1.0, 5.0, 2.0], [3.0, 4.0, 2.0]])
    batch = batch_of([10.0, -10.0, 1.0], [1.0, 1.0, 0.0])
    backup = td_backup(next_q, batch, gamma=0.9, reward_scale=0.2)
    np.testing.assert_allclose(backup, [2 + 0.9 * 1, -2 + 0.9 * 4, 0.2], rtol=1e-6)


def test_squared_sums_members_and_averages_rows() -> None:
    error = jnp.array([[1.0, -2.0], [0.0, 3.0]])
    assert float(squared(error)) == pytest.approx((1 + 4) / 2 + (0 + 9) / 2)


def test_temperature_rises_when_entropy_is_short() -> None:
    assert float(temperature(jnp.float32(2.0), jnp.float32(-3.0), -1.0)) == pytest.approx(-4.0)


def test_distributional_loss_has_the_gradients_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(2, 5)), rng.uniform(0.1, 2.0, size=(2, 5))
    y, drawn = rng.normal(size=5), 3 * rng.normal(size=5)
    spread = np.array([0.2, 2.0])  # so that some drawn backups are cut
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
    value = (by_mean * mean + by_std * std).sum()  # linear in what is differentiated
    np.testing.assert_allclose(distributional(*moments, *rest), value, rtol=1e-4)
