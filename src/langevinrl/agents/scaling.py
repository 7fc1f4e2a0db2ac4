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
    """Mean square of the rewards over the batches seen."""

    square: Array  # ()
    updates: Array  # ()  how many there were

    @property
    def size(self) -> Array:
        """What rewards are divided by: their root mean square; 1 while all were zero."""
        return jnp.where(self.square > 0, jnp.sqrt(self.square), 1.0)


class Scales(NamedTuple):
    """What a batch is scaled by."""

    obs: ObsStats | None = None
    reward: RewardStats | None = None


def init(obs_norm: bool, reward_norm: bool, obs_dim: int) -> Scales:
    """Statistics that change nothing yet, of what is to be scaled."""
    obs = ObsStats(jnp.zeros(obs_dim), jnp.ones(obs_dim), _no_updates()) if obs_norm else None
    return Scales(obs, RewardStats(jnp.zeros(()), _no_updates()) if reward_norm else None)


def _no_updates() -> Array:
    return jnp.zeros((), jnp.int32)


def update(scales: Scales, batch: Batch) -> Scales:
    """The statistics after a batch; each counts alike while they are few."""
    return Scales(_update_obs(scales.obs, batch.obs), _update_reward(scales.reward, batch.reward))


def _update_obs(stats: ObsStats | None, obs: Array) -> ObsStats | None:
    if stats is None:
        return None
    updates = stats.updates + 1
    rate = _rate(updates)
    step = obs.mean(axis=0) - stats.mean
    within = (1 - rate) * stats.variance + rate * obs.var(axis=0)
    variance = within + rate * (1 - rate) * jnp.square(step)  # and between the batches' means
    return ObsStats(stats.mean + rate * step, variance, updates)


def _update_reward(stats: RewardStats | None, reward: Array) -> RewardStats | None:
    if stats is None:
        return None
    updates = stats.updates + 1
    step = jnp.square(reward).mean() - stats.square
    return RewardStats(stats.square + _rate(updates) * step, updates)


def _rate(updates: Array) -> Array:
    return jnp.maximum(1.0 / updates, MIN_RATE)


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
