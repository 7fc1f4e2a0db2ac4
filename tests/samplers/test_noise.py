"""Random numbers drawn before a chain starts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.samplers.noise import ChainNoise, StartDistribution, draw_chain_noise
from langevinrl.types import Spec

SPEC = Spec(3, 2, act_bound=2.0)


@pytest.mark.parametrize(
    ("start", "std", "largest"),
    [("uniform", 2 / 3**0.5, 2.0), ("normal", 1.0, 6.0), ("zero", 0.0, 0.0)],
)
def test_start_follows_the_named_distribution(
    start: StartDistribution, std: float, largest: float
) -> None:
    noise = draw_chain_noise(jax.random.key(0), 2_000, 3, 4, SPEC, start)
    assert noise.start.shape == (2_000, 4, 2) and noise.steps.shape == (2_000, 3, 4, 2)
    np.testing.assert_allclose(noise.start.std(), std, rtol=0.03)
    assert float(jnp.abs(noise.start).max()) <= largest
    np.testing.assert_allclose(noise.steps.std(axis=(0, 2, 3)), 1.0, rtol=0.03)
    assert len(np.unique(noise.steps)) > 0.99 * noise.steps.size  # no draw is used twice


def test_axes_are_in_the_order_a_chain_uses() -> None:
    """Each number states its row, step and chain."""
    row, step, chain = np.meshgrid(np.arange(5), np.arange(3), np.arange(4), indexing="ij")
    steps = jnp.asarray((100 * row + 10 * step + chain)[..., None], jnp.float32)
    noise = ChainNoise(steps[:, 0], steps)
    start, by_step = noise.for_chains()
    assert start.shape == (4, 5, 1) and by_step.shape == (3, 4, 5, 1)
    assert float(by_step[2, 3, 4, 0]) == 423 and float(start[3, 4, 0]) == 403
    first_start, first_steps = noise.first_chain()
    np.testing.assert_array_equal(first_start, start[0])
    np.testing.assert_array_equal(first_steps, by_step[:, 0])
