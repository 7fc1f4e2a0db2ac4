"""The evaluation policy as a compiled call: what `predict` is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.policies.chain import act, keyed_noise
from langevinrl.policies.tables import Facts, KeyUse, Policy
from langevinrl.types import Array


class FastPolicy:
    """A policy's tables on the device and its chain compiled; built once per weights.

    fast = FastPolicy(describe(agent, state, box))
    action = fast(obs, observation_seed(obs))  # (B, O) and (B,) to (B, A), in the task's units
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.tables = {name: jnp.asarray(array) for name, array in policy.arrays.items()}
        self._keyed = _compile_keyed(policy.facts, policy.key_use, policy.backwards)
        self._given = _compile(policy.facts)

    def __call__(self, obs: np.ndarray, seed: np.ndarray) -> np.ndarray:
        """Actions whose noise comes from each row's seed, as in every evaluation."""
        return np.asarray(self._keyed(self.tables, obs, seed))

    def with_noise(self, obs: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Actions for given noise (B, draws, N, A)."""
        return np.asarray(self._given(self.tables, obs, noise))


# Kept by what they are compiled for, so that new weights of the same agent compile nothing.
@lru_cache(maxsize=32)
def _compile(facts: Facts) -> Callable[..., Array]:
    return jax.jit(partial(act, facts))


@lru_cache(maxsize=32)
def _compile_keyed(facts: Facts, key_use: KeyUse, backwards: bool) -> Callable[..., Array]:
    draws = Policy(facts, {}, key_use, backwards)

    def keyed(tables: dict[str, Any], obs: Array, seed: Array) -> Array:
        return act(facts, tables, obs, keyed_noise(draws, seed))

    return jax.jit(keyed)
