"""Observations and rewards scaled by running statistics: a part of agents that ask for it.

Statistics come from replay, at each update, and never from acting: evaluation leaves them as they
are.  Nothing is clipped, so an exported policy has those of observations in its first layer.  Where
a statistic is None, what it would scale is handed on as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from langevinrl.types import Array, Batch

# An update's share in the statistics is not less than this: they go on following a policy that
# reaches new places, over some ten thousand updates.
MIN_RATE = 1e-4
# Rewards are measured in so many batches and that size is kept: one that grew with the returns
# would take back from the critics what the policy gains.  Batches without a reward do not count.
MEASURED_BATCHES = 100
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


class RewardStats(NamedTuple):
    """Mean square of the rewards in the first batches that had any."""

    square: Array  # ()
    batches: Array  # ()  how many there were so far

    @property
    def size(self) -> Array:
        """What rewards are divided by: their root mean square; 1 while there were none."""
        return jnp.where(self.square > 0, jnp.sqrt(self.square), 1.0)


class Scales(NamedTuple):
    """What a batch is scaled by."""

    obs: ObsStats | None = None
    reward: RewardStats | None = None


def init(obs_norm: bool, reward_norm: bool, obs_dim: int) -> Scales:
    """Statistics that change nothing yet, of what is to be scaled."""
    obs = ObsStats(jnp.zeros(obs_dim), jnp.ones(obs_dim), _nothing()) if obs_norm else None
    return Scales(obs, RewardStats(jnp.zeros(()), _nothing()) if reward_norm else None)


def _nothing() -> Array:
    return jnp.zeros((), jnp.int32)


def measure_and_scale(scales: Scales, batch: Batch) -> tuple[Scales, Batch]:
    """What an update begins with: the statistics after its batch, and the batch scaled by them."""
    scales = update(scales, batch)
    return scales, scale_batch(scales, batch)


def update(scales: Scales, batch: Batch) -> Scales:
    """The statistics after one more batch."""
    return Scales(_update_obs(scales.obs, batch.obs), _update_reward(scales.reward, batch.reward))


def _update_obs(stats: ObsStats | None, obs: Array) -> ObsStats | None:
    """Each batch counts alike while they are few."""
    if stats is None:
        return None
    updates = stats.updates + 1
    rate = jnp.maximum(1.0 / updates, MIN_RATE)
    step = obs.mean(axis=0) - stats.mean
    within = (1 - rate) * stats.variance + rate * obs.var(axis=0)
    variance = within + rate * (1 - rate) * jnp.square(step)  # and between the batches' means
    return ObsStats(stats.mean + rate * step, variance, updates)


def _update_reward(stats: RewardStats | None, reward: Array) -> RewardStats | None:
    if stats is None:
        return None
    square = jnp.square(reward).mean()
    counts = (square > 0) & (stats.batches < MEASURED_BATCHES)
    mean = stats.square + (square - stats.square) / (stats.batches + 1)
    return RewardStats(jnp.where(counts, mean, stats.square), stats.batches + counts)


def scale_obs(scales: Scales, obs: Array) -> Array:
    """Observations (B, O) as the networks take them."""
    if scales.obs is None:
        return obs
    return (obs - scales.obs.mean[None]) / scales.obs.deviation[None]


def scale_batch(scales: Scales, batch: Batch) -> Batch:
    """A batch as the networks take it: both its observations, and its rewards."""
    obs, next_obs = (scale_obs(scales, rows) for rows in (batch.obs, batch.next_obs))
    reward = batch.reward if scales.reward is None else batch.reward / scales.reward.size
    return batch._replace(obs=obs, next_obs=next_obs, reward=reward)


def reward_size(scales: Scales) -> Array | float:
    """What rewards are divided by."""
    return 1.0 if scales.reward is None else scales.reward.size
