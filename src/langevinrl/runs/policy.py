"""A trained agent as a policy: observations of the task in, actions of the task out."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import numpy as np

from langevinrl.agents import Agent
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.errors import UserError
from langevinrl.policies.fast import FastPolicy
from langevinrl.policies.methods import describe, is_known
from langevinrl.runs.evaluate import Mode, policy, require_mode, row_seeds
from langevinrl.types import Array, PyTree


class Policy:
    """What acts: an agent, its weights for each of S seeds, and the task's spaces."""

    def __init__(self, agent: Agent, state: PyTree, spaces: TaskSpaces, seed: int) -> None:
        """`state` has a leading S; `seed` decides what the mode `sampled` draws."""
        self.agent, self.state, self.spaces = agent, state, spaces
        self.num_seeds = len(jax.tree.leaves(state)[0])
        self.generator = np.random.default_rng([seed, 0xAC7])
        # Once for each seed and mode: at every call it would cost more than the chain.
        self._state_of = cache(lambda index: jax.tree.map(lambda leaf: leaf[index], state))
        self._compiled = cache(lambda mode: jax.jit(partial(policy, agent, mode=mode)))
        self._fast = cache(lambda index: FastPolicy(describe(agent, self._state_of(index))))

    def act(self, obs: Any, mode: Mode = "keyed", seed_index: int = 0) -> np.ndarray:
        """Actions for one observation or a batch, in the task's own units, shape and dtype."""
        mode = require_mode(self.agent, mode)
        if not 0 <= seed_index < self.num_seeds:
            raise UserError(f"seed_index is {seed_index}; trained seeds: {self.num_seeds}")
        rows, single = self.spaces.flatten(obs)
        action = self.spaces.stretch(self._draw(rows, mode, seed_index))
        return action[0] if single else action

    def _draw(self, rows: np.ndarray, mode: Mode, seed_index: int) -> np.ndarray:
        """Actions (B, A) in the agent's box for rows (B, O)."""
        seeds = row_seeds(rows, mode, self.generator)
        # Rows are filled up to a power of two: one program serves all batches to that size.
        missing = padded_size(len(rows)) - len(rows)
        if missing:
            rows = np.pad(rows, ((0, missing), (0, 0)))
            seeds = np.pad(seeds, (0, missing))
        drawn: Array | np.ndarray
        if mode == "keyed" and is_known(self.agent):
            drawn = self._fast(seed_index)(rows, seeds)
        else:
            drawn = self._compiled(mode)(self._state_of(seed_index), rows, seeds)
        return np.asarray(drawn)[: len(rows) - missing]


def padded_size(num_rows: int) -> int:
    """The least power of two that holds them."""
    return 1 << max(0, num_rows - 1).bit_length()
