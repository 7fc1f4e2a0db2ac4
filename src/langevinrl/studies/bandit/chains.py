"""Samples and chains of a trained policy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.agents.parts import ExploringNoise
from langevinrl.samplers.noise import ChainNoise
from langevinrl.studies.bandit import env
from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.training import constant_obs, key_for
from langevinrl.types import Array, Key, PyTree


def sample(
    agent: Agent, state: PyTree, config: BanditConfig, seed: int, explore: bool
) -> np.ndarray:
    """Sample actions of one trained policy: (samples, 2)."""
    act = _compile_act(agent, config.samples, explore)  # type: ignore[arg-type]
    return np.asarray(act(state, key_for(seed, "sample")))


@cache
def _compile_act(agent: Any, num: int, explore: bool) -> Callable[[PyTree, Key], Array]:
    return jax.jit(lambda state, key: agent.act(state, constant_obs(num), key, explore=explore))


def trace(agent: Agent, state: PyTree, start: Array, key: Key) -> Array:
    """Return all points, clipped to the box, of chains from `start` (B, 2): (steps + 1, B, 2)."""
    bound = agent.spec.act_bound
    noise = start_at(agent, agent.noise(key, len(start)), start)
    return jnp.clip(agent.trace(state, constant_obs(len(start)), noise), -bound, bound)


def start_at(agent: Agent, noise: PyTree, start: Array) -> PyTree:
    """Return `noise` with chains that start at points (B, A)."""
    draws = (start / getattr(agent, "start_std", 1.0))[:, None]
    if isinstance(noise, ExploringNoise):
        return noise._replace(chain=noise.chain._replace(start=draws))
    return noise._replace(start=draws) if isinstance(noise, ChainNoise) else draws


def normal_start(num: int, bound: float, purpose: str) -> Array:
    """Draw standard normal starts, clipped to the box: (num, 2)."""
    return jnp.clip(jax.random.normal(key_for(0, purpose), (num, 2)), -bound, bound)


def follow_chains(agent: Agent, state: PyTree, config: BanditConfig) -> dict[str, np.ndarray]:
    """Trace chains from normal starts and from a grid that covers the box."""
    follow = jax.jit(partial(trace, agent))
    grid = env.grid(config.bound, 15).reshape(-1, 2)
    starts = {"chains": normal_start(len(grid), config.bound, "start"), "panels": grid}
    return {name: np.asarray(follow(state, x, key_for(0, "chain"))) for name, x in starts.items()}
