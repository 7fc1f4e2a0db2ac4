"""Errors of learned values relative to the exact smoothed values, by noise level."""

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
INNER = 1.7  # half-width of the square in which learned and exact values are compared


def compare_values(
    agent: LQL | NCLQL, states: PyTree, config: BanditConfig, name: str
) -> tuple[list[Row], np.ndarray]:
    """Return the errors of each level and seed, and the first seed's value maps (L, G, G)."""
    sigmas = [0.0]  # LQL has only the clean level, where the value is the reward
    if isinstance(agent, NCLQL):
        sigmas = smoothed_by(agent)

    @jax.jit
    def learned(params: PyTree, points: Array) -> Array:
        apply = partial(agent.critic.apply, params, constant_obs(len(points)), points)
        return jnp.stack([apply(level).mean(axis=0) for level in range(len(sigmas))])

    inner, whole = (env.grid(half, GRID).reshape(-1, 2) for half in (INNER, config.bound))
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
    """Return the noise of each level; zero for the last, which is trained on the reward itself."""
    return [float(sigma) for sigma in agent.sigmas[:-1]] + [0.0]
