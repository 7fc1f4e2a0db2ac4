"""Trained policies: observations of the task in, actions of the task out."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent, Refining
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.errors import UserError, field
from langevinrl.learner import without_optimiser
from langevinrl.registry import METHODS
from langevinrl.runs.compiled import compile_once
from langevinrl.types import Array, PyTree

# Source of the noise outside of training:
#   keyed       the observation's own bits: the same observation always gets the same action
#   sampled     a fresh draw each time, with exploration as in training
#   noise-free  the observation's bits for the start of the chain, and no noise after it
Mode: TypeAlias = Literal["keyed", "sampled", "noise-free"]


def require_mode(agent: Agent, mode: str) -> Mode:
    """Return the mode if it exists and the agent supports it; raise otherwise."""
    for known in get_args(Mode):
        if mode == known and (mode != "noise-free" or isinstance(agent, Refining)):
            return known
    if mode != "noise-free":
        raise UserError(f"mode is {mode!r}; expected one of {', '.join(get_args(Mode))}")
    able = [name for name in METHODS if issubclass(METHODS[name].load(), Refining)]
    raise UserError(
        f"{type(agent).__name__} has no noise-free form: the noise of its chain is part of its "
        f"policy. Agents that have one: {', '.join(able)}. Use {field('mode', 'keyed')}"
    )


def observation_seed(obs: np.ndarray) -> np.ndarray:
    """Return the bits of mean x std of observations (..., O) as seeds (...).

    Computed on the host in float64: the order of a compiled float32 sum depends on the number of
    rows, and another last bit is another seed.
    """
    wide = np.asarray(obs, np.float64)
    return (wide.mean(-1) * wide.std(-1)).astype(np.float32).view(np.uint32)


def row_seeds(obs: np.ndarray, mode: Mode, generator: np.random.Generator) -> np.ndarray:
    """Return a seed for each row of observations (..., O): its own bits, or fresh if sampled."""
    if mode == "sampled":
        return generator.integers(2**32, size=obs.shape[:-1], dtype=np.uint32)
    return observation_seed(obs)


def seeded_action(agent: Agent, mode: Mode, state: PyTree, obs: Array, seed: Array) -> Array:
    """Return actions (B, A) for observations (B, O), with noise from each row's seed (B,).

    Evaluation, `predict` and videos all act by this function.
    """
    noise = jax.vmap(lambda row_seed: agent.noise(jax.random.key(row_seed), 1))(seed)
    noise = jax.tree.map(lambda leaf: leaf[:, 0], noise)
    if mode == "noise-free":
        assert isinstance(agent, Refining)
        action = agent.refine(state, obs, noise)
    else:
        action = agent.policy(state, obs, noise, explore=mode == "sampled")
    return jnp.clip(action, -agent.spec.act_bound, agent.spec.act_bound)


class Policy:
    """A trained agent: its weights for each of S seeds, and the task's spaces."""

    def __init__(self, agent: Agent, state: PyTree, spaces: TaskSpaces, seed: int) -> None:
        """`state` has a leading S; `seed` sets the draws of the mode `sampled`."""
        self.agent, self.state, self.spaces = agent, state, spaces
        self.num_seeds = len(jax.tree.leaves(state)[0])
        self.generator = np.random.default_rng([seed, 0xAC7])
        # Sliced once per seed: slicing the weights at every call is slow.
        light = without_optimiser(state)
        self._state_of = cache(lambda index: jax.tree.map(lambda leaf: leaf[index], light))

    def act(self, obs: Any, mode: Mode = "keyed", seed_index: int = 0) -> np.ndarray:
        """Return actions for one observation or a batch, in the task's units, shape and dtype."""
        mode = require_mode(self.agent, mode)
        if not 0 <= seed_index < self.num_seeds:
            raise UserError(f"seed_index is {seed_index}; trained seeds: {self.num_seeds}")
        rows, single = self.spaces.flatten(obs)
        action = self.spaces.stretch(self._seeded(rows, mode, seed_index))
        return action[0] if single else action

    def _seeded(self, rows: np.ndarray, mode: Mode, seed_index: int) -> np.ndarray:
        """Return actions (B, A) in the agent's box for rows (B, O)."""
        seeds = row_seeds(rows, mode, self.generator)
        # Padding to a power of two lets one compiled program serve many batch sizes.
        missing = (1 << max(0, len(rows) - 1).bit_length()) - len(rows)
        if missing:
            rows = np.pad(rows, ((0, missing), (0, 0)))
            seeds = np.pad(seeds, (0, missing))
        act = compile_once(seeded_action, self.agent, mode)
        action = np.asarray(act(self._state_of(seed_index), rows, seeds))
        return action[: len(rows) - missing]
