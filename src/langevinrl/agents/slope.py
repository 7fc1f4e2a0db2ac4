"""How steep the critics are where chains end, in an ordinary state: what sets NC-LQL's w.

The median of a batch, and not its mean: where falling ends an episode, a few states have slopes so
steep that w would be theirs, and the policy of all others several times as wide as asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from langevinrl.types import Array

RATE = 0.01  # how far the running mean moves at an update


class Slope(NamedTuple):
    """Running mean of ‖∇Q‖² over batches; divided by `seen` it starts without a bias."""

    total: Array  # ()
    seen: Array  # ()  share of the mean that comes from updates: 0 before the first

    @property
    def length(self) -> Array:
        """‖∇Q‖; 0 before the first update."""
        return jnp.sqrt(self.total / jnp.maximum(self.seen, RATE))


def init() -> Slope:
    """Nothing is known."""
    return Slope(jnp.zeros(()), jnp.zeros(()))


def update(slope: Slope, gradient: Array) -> Slope:
    """What is known after gradients (B, A).

    On a Gaussian hill their squared lengths are χ² with A degrees of freedom, whose median is less
    than the mean that w is made of by the factor here (Wilson and Hilferty's).
    """
    share = (1 - 2 / (9 * gradient.shape[-1])) ** 3
    square = jnp.median(jnp.square(gradient).sum(axis=-1)) / share
    total, seen = slope
    return Slope(total + RATE * (square - total), seen + RATE * (1.0 - seen))
