"""Rewards of several steps summed before the value is consulted: n-step returns out of replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from langevinrl.errors import UserError, field

if TYPE_CHECKING:
    from langevinrl.replay.buffer import Replay


class Returns(NamedTuple):
    """What n steps from each of the drawn rows (S, B) come to."""

    reward: np.ndarray  # (S, B)  r_0 + γ r_1 + ... + γ^(k-1) r_(k-1) over k <= n rows
    bootstrap: np.ndarray  # (S, B)  γ^(k-1) times that of the last of them
    last: np.ndarray  # (S, B)  that row, whose next observation the value is asked about


def sum_rewards(replay: Replay, row: np.ndarray, n_step: int, gamma: float) -> Returns:
    """Follow each row (S, B) in its own environment, for at most `n_step` rows, its own counted.

    It ends early after a row where the episode ended or the environment was begun afresh, and at
    the newest: beyond that stands the oldest.  A time-out is known by the observation kept apart
    for it; where the fresh episode begins with the very same one, nobody who sees observations
    only can tell that it is another, and the sum goes on.  γ weighs each step, so that an agent's
    κ r + γ b Q is the n-step target as it stands.
    """
    seed = np.arange(len(row))[:, None]
    rewards, bootstraps = replay.rings["reward"], replay.rings["bootstrap"]
    num_later = (replay.position - 1 - row) % replay.capacity // replay.num_envs
    last, discount = row, np.ones(row.shape)
    total = rewards[seed, row].astype(np.float64)
    going = np.ones(row.shape, bool)
    for step in range(1, n_step):
        unbroken = (bootstraps[seed, last] > 0) & (replay.final_obs.place[seed, last] == 0)
        going &= unbroken & (step <= num_later)
        if not going.any():
            break
        last = np.where(going, (last + replay.num_envs) % replay.capacity, last)
        discount = np.where(going, gamma**step, discount)
        total += np.where(going, discount * rewards[seed, last], 0.0)
    bootstrap = discount * bootstraps[seed, last]
    return Returns(total.astype(np.float32), bootstrap.astype(np.float32), last)


def discount_of(agent: Any, n_step: int) -> float:
    """γ, by which an agent's n-step returns are summed; one step needs none."""
    if n_step == 1:
        return 1.0
    gamma = getattr(agent, "gamma", None)
    if gamma is None:
        raise UserError(
            f"{field('n_step', n_step)} sums rewards by the agent's gamma, and "
            f"{type(agent).__name__} has no such field"
        )
    return float(gamma)
