"""The search behind the settings: chains of NC-LQL and LQL walked on the exact values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import jax
import numpy as np

from langevinrl.bandit.measure import Row
from langevinrl.bandit.settings import CHAIN_STEPS, SEARCH, BanditConfig
from langevinrl.bandit.training import key_for
from langevinrl.envs import bandit as env
from langevinrl.samplers.langevin import Chain, annealed_plan, constant_plan, draw, geometric_sigmas
from langevinrl.types import Array


def search_chains(config: BanditConfig) -> Iterator[Row]:
    """How NC-LQL's and LQL's chains fare on the exact values: the ground for their settings."""
    shape, bound = (min(config.samples, 4_000), 2), config.bound

    @jax.jit
    def annealed(high: Array, low: Array, w: Array, step_size: Array) -> Array:
        sigmas = geometric_sigmas(high, low, CHAIN_STEPS)  # type: ignore[arg-type]
        plan = annealed_plan(sigmas, 1, step_size)  # type: ignore[arg-type]
        seen = sigmas.at[-1].set(0.0)  # the clean level is the reward itself
        chain = Chain(plan, w, bound, "normal", True, True)  # type: ignore[arg-type]
        return draw(
            lambda a, i: env.smoothed_value(a, seen[i], bound), shape, chain, key_for(0, "annealed")
        )

    @jax.jit
    def plain(w: Array, step_size: Array) -> Array:
        plan = constant_plan(CHAIN_STEPS, step_size)  # type: ignore[arg-type]
        chain = Chain(plan, w, bound, "normal", True, True)  # type: ignore[arg-type]
        return draw(lambda a, _: env.reward(a), shape, chain, key_for(0, "plain"))

    names = ("sigma_max", "sigma_min", "inverse_temperature", "step_size")
    grids = [SEARCH[name][:1] if config.quick else SEARCH[name] for name in names]
    for setting in product(*grids):
        found = _summary(np.asarray(annealed(*setting)))
        yield {"method": "nclql", **dict(zip(names, setting, strict=True)), **found}
    for setting in product(*grids[2:]):
        found = _summary(np.asarray(plain(*setting)))
        yield {"method": "lql", "sigma_max": None, "sigma_min": None,
               **dict(zip(names[2:], setting, strict=True)), **found}  # fmt: skip


def _summary(actions: np.ndarray) -> Row:
    shares = env.near_high_modes(actions).mean(axis=0)
    unequal = float(np.abs(shares - 0.25).max())
    return {"sum": shares.sum(), "unequal": unequal, "reward_mean": env.reward(actions).mean()}
