"""Observations scaled by a running mean and deviation: a part of agents that ask for it.

Statistics come from replay, at each update, and never from acting: evaluation leaves them as they
are.  Nothing is clipped, so an exported policy has them in its first layer.  Where statistics are
None, each function hands on what it was given.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from langevinrl.types import Array, Batch

# An update's share in the statistics is not less than this: they go on following a policy that
# reaches new places, over some ten thousand updates.
MIN_RATE = 1e-4
# A feature that has hardly varied is magnified by no more than a hundred: one that was constant
# so far may move later, and nothing is clipped.
MIN_DEVIATION = 1e-2


class ObsStats(NamedTuple):
    """Mean and variance of each feature over the batches seen; the identity before the first."""

    mean: Array  # (O,)
    variance: Array  # (O,)
    updates: Array  # ()  how many there were

    @property
    def deviation(self) -> Array:
        """What differences from the mean are divided by: (O,)."""
        return jnp.maximum(jnp.sqrt(self.variance), MIN_DEVIATION)


def init(wanted: bool, obs_dim: int) -> ObsStats | None:
    """Statistics that change nothing yet, or None where they are not wanted."""
    if not wanted:
        return None
    return ObsStats(jnp.zeros(obs_dim), jnp.ones(obs_dim), jnp.zeros((), jnp.int32))


def update(stats: ObsStats | None, obs: Array) -> ObsStats | None:
    """The statistics after observations (B, O); each update counts alike while they are few."""
    if stats is None:
        return None
    updates = stats.updates + 1
    rate = jnp.maximum(1.0 / updates, MIN_RATE)
    step = obs.mean(axis=0) - stats.mean
    within = (1 - rate) * stats.variance + rate * obs.var(axis=0)
    variance = within + rate * (1 - rate) * jnp.square(step)  # and between the batches' means
    return ObsStats(stats.mean + rate * step, variance, updates)


def scale(stats: ObsStats | None, obs: Array) -> Array:
    """Observations (B, O) as the networks take them."""
    if stats is None:
        return obs
    return (obs - stats.mean[None]) / stats.deviation[None]


def scale_batch(stats: ObsStats | None, batch: Batch) -> Batch:
    """A batch with both its observations as the networks take them."""
    obs, next_obs = (scale(stats, rows) for rows in (batch.obs, batch.next_obs))
    return batch._replace(obs=obs, next_obs=next_obs)
