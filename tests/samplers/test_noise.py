"""Random numbers drawn before a chain starts."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from langevinrl.samplers.noise import ChainNoise


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
