"""Each loss against a value worked by hand."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.losses import squared, td_backup, temperature
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
