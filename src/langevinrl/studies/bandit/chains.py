"""Every method's chain followed step by step, from any starting points."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.training import constant_obs, key_for
from langevinrl.types import Array, Key, PyTree


def trace(agent: Agent, state: PyTree, start: Array, key: Key) -> Array:
    """Every point, held in the box, of chains that begin at `start` (B, 2): (steps + 1, B, 2)."""
    bound = agent.spec.act_bound
    return jnp.clip(agent.trace(state, constant_obs(len(start)), key, start), -bound, bound)


def follow_chains(agent: Agent, state: PyTree, config: BanditConfig) -> dict[str, np.ndarray]:
    """Chains from the starting law, and from a grid that covers the box."""
    follow = jax.jit(partial(trace, agent))
    axis = jnp.linspace(-config.bound, config.bound, 15)
    grid = jnp.stack(jnp.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    start = jnp.clip(
        jax.random.normal(key_for(0, "start"), grid.shape), -config.bound, config.bound
    )
    paths = {"chains": start, "panels": grid}
    return {name: np.asarray(follow(state, x, key_for(0, "chain"))) for name, x in paths.items()}
