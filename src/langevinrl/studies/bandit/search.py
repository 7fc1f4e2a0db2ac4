"""The search behind the settings: chains of NC-LQL and LQL walked on the exact values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.analysis.tables import Row
from langevinrl.samplers.langevin import Chain, annealed_plan, constant_plan, draw, geometric_sigmas
from langevinrl.studies.bandit import env
from langevinrl.studies.bandit.settings import CHAIN_STEPS, SEARCH, BanditConfig
from langevinrl.studies.bandit.training import key_for
from langevinrl.types import Array, Key

ERROR = 0.013  # root-mean-square error that a disturbed value carries: a trained level's, about
NUM_DISTURBED = 4  # disturbances that each setting is tried under
NUM_WAVES, WAVE_LENGTH = 16, 0.6  # a disturbance's cosines, and the scale on which they vary
FIELDS = ("sigma_max", "sigma_min", "inverse_temperature", "step_size")


def search_chains(config: BanditConfig) -> Iterator[Row]:
    """How NC-LQL's and LQL's chains fare on exact values, as they are and with a learner's error.

    A setting that is good only on the exact values would leave the shares to a critic's luck.
    """
    grids = [SEARCH[name][:1] if config.quick else SEARCH[name] for name in FIELDS]
    num, bound = min(config.samples, 4_000), config.bound
    chains: dict[str, tuple[Callable[..., Array], int]] = {
        "nclql": (annealed, 0),
        "lql": (plain, 2),
    }
    for name, (chain, first) in chains.items():
        walk = jax.jit(partial(chain, num, bound))
        for setting in product(*grids[first:]):
            fields = dict.fromkeys(FIELDS) | dict(zip(FIELDS[first:], setting, strict=True))
            exact = np.asarray(walk(*setting, key_for(0, name), 0.0))
            errors = [walk(*setting, key_for(i, name), ERROR) for i in range(NUM_DISTURBED)]
            yield {"method": name, **fields, **_summary(exact), **_robustness(errors)}


def annealed(
    num: int, bound: float, high: Array, low: Array, w: Array, step_size: Array, key: Key,
    error: float,
) -> Array:  # fmt: skip
    """NC-LQL's chain, one step a level, on the exact smoothed values."""
    walk_key, error_key = jax.random.split(key)
    sigmas = geometric_sigmas(high, low, CHAIN_STEPS)  # type: ignore[arg-type]
    seen, extra = sigmas.at[-1].set(0.0), disturbance(error_key, error)  # the last is the reward
    plan = annealed_plan(sigmas, 1, step_size)  # type: ignore[arg-type]
    chain = Chain(plan, w, bound, "normal", True, True)

    def value(action: Array, level: Array) -> Array:
        return env.smoothed_value(action, seen[level], bound) + extra(action)

    return draw(value, (num, 2), chain, walk_key)


def plain(num: int, bound: float, w: Array, step_size: Array, key: Key, error: float) -> Array:
    """LQL's chain on the reward."""
    walk_key, error_key = jax.random.split(key)
    plan, extra = constant_plan(CHAIN_STEPS, step_size), disturbance(error_key, error)  # type: ignore[arg-type]
    chain = Chain(plan, w, bound, "normal", True, True)
    return draw(lambda a, _: env.reward(a) + extra(a), (num, 2), chain, walk_key)


def disturbance(key: Key, error: float) -> Callable[[Array], Array]:
    """A smooth random function of the plane, `error` large in root mean square."""
    wave_key, phase_key, height_key = jax.random.split(key, 3)
    wave = jax.random.normal(wave_key, (2, NUM_WAVES)) / WAVE_LENGTH
    phase = jax.random.uniform(phase_key, (1, NUM_WAVES), maxval=2 * jnp.pi)
    height = jax.random.normal(height_key, (NUM_WAVES,)) * error * (2 / NUM_WAVES) ** 0.5
    return lambda action: jnp.cos(action @ wave + phase) @ height


def _summary(actions: np.ndarray) -> Row:
    shares = env.near_high_modes(actions).mean(axis=0)
    unequal = float(np.abs(shares - 0.25).max())
    return {"sum": shares.sum(), "unequal": unequal, "reward_mean": env.reward(actions).mean()}


def _robustness(draws: list[Array]) -> Row:
    """Means over disturbances of the shares' sum and of the worst share's distance from 0.25."""
    rows = [_summary(np.asarray(actions)) for actions in draws]
    return {
        f"disturbed_{name}": np.mean([row[name] for row in rows]) for name in ("sum", "unequal")
    }
