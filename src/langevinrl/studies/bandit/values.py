"""Learned values against the exact smoothed ones, level by level."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.agents.lql import LQL
from langevinrl.agents.nclql import NCLQL
from langevinrl.analysis.tables import Row
from langevinrl.studies.bandit import env
from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.training import constant_obs, each_seed
from langevinrl.types import Array, PyTree

GRID = 65  # points along an axis of the value maps
INNER = 1.7  # half-width of the square in which a learned value is held against the exact one


def compare_values(
    agent: LQL | NCLQL, states: PyTree, config: BanditConfig, name: str
) -> tuple[list[Row], np.ndarray]:
    """Learned values against the exact ones, level by level; the first seed's maps (L, G, G)."""
    sigmas = [0.0]  # LQL has the clean level alone, at which the value is the reward
    if isinstance(agent, NCLQL):
        sigmas = smoothed_by(agent)

    @jax.jit
    def learned(params: PyTree, points: Array) -> Array:
        apply = partial(agent.critic.apply, params, constant_obs(len(points)), points)
        return jnp.stack([apply(level).mean(axis=0) for level in range(len(sigmas))])

    inner, whole = square(INNER), square(config.bound)
    exact = jnp.stack([env.smoothed_value(inner, sigma, config.bound) for sigma in sigmas])
    rows = []
    for seed, state in each_seed(config, states):
        error = jnp.sqrt(((learned(state.critic.params, inner) - exact) ** 2).mean(axis=1))
        for level, (sigma, rmse) in enumerate(zip(sigmas, error, strict=True), start=1):
            row = {"method": name, "seed": seed, "level": level, "sigma": sigma}
            rows.append(row | {"rmse": float(rmse)})
    first = next(each_seed(config, states))[1]
    maps = np.asarray(learned(first.critic.params, whole))
    return rows, maps.reshape(len(sigmas), GRID, GRID)


def smoothed_by(agent: NCLQL) -> list[float]:
    """What each level smooths by; the last is trained on the reward itself, so not at all."""
    return [float(sigma) for sigma in agent.sigmas[:-1]] + [0.0]


def square(half: float) -> Array:
    """A grid of points (GRID * GRID, 2) over a square."""
    axis = jnp.linspace(-half, half, GRID)
    return jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
