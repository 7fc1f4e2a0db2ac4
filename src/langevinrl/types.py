"""The words all rooms share.

Axis letters: S seeds, E envs, B batch, N candidates, L levels, O obs, A action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import jax

    Array: TypeAlias = jax.Array
    Key: TypeAlias = jax.Array
else:  # only annotations name them, so that environments in processes of their own need no JAX
    Array = Key = Any
PyTree: TypeAlias = Any


@dataclass(frozen=True)
class Spec:
    """What an agent must know of a task: two sizes and the half-width of the action box."""

    obs_dim: int
    act_dim: int
    act_bound: float = 1.0  # the 2D bandit needs a wider box than [-1, 1]


class Batch(NamedTuple):
    """Transitions drawn from replay.

    With n-step returns (`RunConfig.n_step`) each stands for k <= n steps: `reward` is
    r_0 + γ r_1 + ... + γ^(k-1) r_(k-1), `next_obs` what the last led to, and `bootstrap` has the
    factor γ^(k-1), so that κ `reward` + γ `bootstrap` Q(`next_obs`, ·) is the target all the same.
    """

    obs: Array  # (B, O)
    action: Array  # (B, A)
    reward: Array  # (B,)  raw: the reward scale is applied in the update, once
    bootstrap: Array  # (B,)  0 where the episode truly ended, 1 on time-outs; times γ^(k-1)
    next_obs: Array  # (B, O)
    row: Array  # (B,)  where each transition sits in replay
    extra: dict[str, Array]  # columns the agent asked for; empty for nine agents of ten


class Update(NamedTuple):
    """What one update hands back to the loop."""

    state: PyTree
    metrics: dict[str, Array]
    rewrite: dict[str, Array] | None = None  # extra columns to overwrite at `batch.row`


class Transition(NamedTuple):
    """One step of every environment, on the host: what replay stores."""

    obs: np.ndarray  # (S, E, O)
    action: np.ndarray  # (S, E, A)
    reward: np.ndarray  # (S, E)
    bootstrap: np.ndarray  # (S, E)
    next_obs: np.ndarray  # (S, E, O)  the true last observation where an episode ended
