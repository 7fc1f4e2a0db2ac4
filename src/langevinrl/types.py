"""Types shared by all packages.

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
else:  # for annotations only: environment processes need no JAX
    Array = Key = Any
PyTree: TypeAlias = Any


@dataclass(frozen=True)
class Spec:
    """Sizes of a task and the half-width of the action box."""

    obs_dim: int
    act_dim: int
    act_bound: float = 1.0  # the 2D bandit needs a wider box than [-1, 1]


class Batch(NamedTuple):
    """Transitions drawn from replay.

    With n-step returns (`RunConfig.n_step`) a row covers k <= n steps: `reward` is
    r_0 + γ r_1 + ... + γ^(k-1) r_(k-1), `next_obs` follows the last step, and `bootstrap` has the
    factor γ^(k-1). The target is κ `reward` + γ `bootstrap` Q(`next_obs`, ·) in either case.
    """

    obs: Array  # (B, O)
    action: Array  # (B, A)
    reward: Array  # (B,)  before the reward scale, which the update applies once
    bootstrap: Array  # (B,)  0 if the episode terminated, 1 if it was truncated; times γ^(k-1)
    next_obs: Array  # (B, O)
    row: Array  # (B,)  index of each transition in the replay buffer
    extra: dict[str, Array]  # extra columns of the agent; only DIPO has any


class Update(NamedTuple):
    """Result of one update."""

    state: PyTree
    metrics: dict[str, Array]
    rewrite: dict[str, Array] | None = None  # extra columns to overwrite at `batch.row`


class Transition(NamedTuple):
    """One step of every environment, in host memory."""

    obs: np.ndarray  # (S, E, O)
    action: np.ndarray  # (S, E, A)
    reward: np.ndarray  # (S, E)
    bootstrap: np.ndarray  # (S, E)
    next_obs: np.ndarray  # (S, E, O)  the true last observation where an episode ended
