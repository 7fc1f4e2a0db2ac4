"""One pure function per equation."""

from __future__ import annotations

import jax.numpy as jnp

from langevinrl.types import Array, Batch


def td_backup(next_q: Array, batch: Batch, gamma: float, reward_scale: float) -> Array:
    """Scaled reward plus the discounted minimum of the members' next values (members, B) -> (B,), Eq. 8."""
    return reward_scale * batch.reward + gamma * batch.bootstrap * next_q.min(axis=0)


def squared(error: Array) -> Array:
    """Mean over the batch, summed over members (members, B): each member descends its own mean."""
    return jnp.square(error).mean(axis=-1).sum()
