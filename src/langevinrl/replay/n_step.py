"""n-step returns, computed from consecutive rows of the replay buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from langevinrl.errors import UserError, field

if TYPE_CHECKING:
    from langevinrl.replay.buffer import Replay


class Returns(NamedTuple):
    """n-step returns of the sampled rows (S, B)."""

    reward: np.ndarray  # (S, B)  r_0 + γ r_1 + ... + γ^(k-1) r_(k-1) over k <= n rows
    bootstrap: np.ndarray  # (S, B)  γ^(k-1) times that of the last row
    last: np.ndarray  # (S, B)  the last row; its next observation is where to bootstrap


def sum_rewards(replay: Replay, row: np.ndarray, n_step: int, gamma: float) -> Returns:
    """Sum the rewards of up to `n_step` rows from each row (S, B), in the row's environment.

    The sum ends early at the end of an episode, where the environment was restarted, and at the
    newest row.  A time limit is recognised by the final observation that is stored for it; if the
    next episode starts with that very observation, the sum continues.  Each step is discounted by
    γ, so that the agent's target κ r + γ b Q is the n-step target.
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
    """Return the γ of an agent's n-step returns; 1 for one-step returns, which need none."""
    if n_step == 1:
        return 1.0
    gamma = getattr(agent, "gamma", None)
    if gamma is None:
        raise UserError(
            f"{field('n_step', n_step)} discounts rewards by the agent's gamma, and "
            f"{type(agent).__name__} has no such field"
        )
    return float(gamma)
