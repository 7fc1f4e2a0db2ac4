"""Noise levels and step sizes of the bandit study, tried on the exact values.

python experiments/bandit_search.py results/bandit/search.csv      # some minutes

Chains of NC-LQL and LQL follow the exact values, as they are and with a smooth random error as
large as a trained critic's: a setting that is good on exact values alone would leave the shares to
chance.  The settings of `langevinrl bandit` were chosen from this table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.analysis.tables import Row, write_csv
from langevinrl.samplers.langevin import (
    Plan,
    action_gradient,
    annealed_plan,
    constant_plan,
    geometric_sigmas,
    langevin_in_box,
    unit,
)
from langevinrl.samplers.noise import draw_chain_noise
from langevinrl.studies.bandit import env
from langevinrl.studies.bandit.settings import CHAIN_STEPS
from langevinrl.types import Array, Key, Spec

GRIDS: dict[str, tuple[float, ...]] = {
    "sigma_max": (0.7, 0.5, 0.6, 0.8),
    "sigma_min": (0.3, 0.2, 0.4),
    "inverse_temperature": (500.0, 100.0, 200.0, 300.0, 400.0),
    "step_size": (5e-4, 2e-4, 1e-3),
}
SAMPLES = 4_000
ERROR = 0.013  # root-mean-square error added to the values: about that of a trained level
NUM_DISTURBED = 4  # random errors that each setting is tried with
NUM_WAVES, WAVE_LENGTH = 16, 0.6  # cosines of an error, and the length on which they vary


def search() -> Iterator[Row]:
    """Yield a row for each setting of NC-LQL and of LQL."""
    methods: dict[str, tuple[Callable[..., Array], list[str]]] = {
        "nclql": (sample_annealed, list(GRIDS)),
        "lql": (sample_plain, list(GRIDS)[2:]),
    }
    for method, (sample, fields) in methods.items():
        compiled = jax.jit(sample)
        for setting in product(*(GRIDS[field] for field in fields)):
            row = {"method": method} | dict.fromkeys(GRIDS)
            row |= dict(zip(fields, setting, strict=True))
            row |= summarise(compiled(*setting, jax.random.key(0), 0.0))
            disturbed = [
                summarise(compiled(*setting, jax.random.key(i), ERROR))
                for i in range(NUM_DISTURBED)
            ]
            for name in ("sum", "unequal"):
                row[f"disturbed_{name}"] = np.mean([found[name] for found in disturbed])
            yield row


def sample_annealed(
    high: Array, low: Array, w: Array, step_size: Array, key: Key, error: float
) -> Array:
    """Sample by NC-LQL's chain, one step per level, on the exact smoothed values."""
    chain_key, error_key = jax.random.split(key)
    sigmas = geometric_sigmas(high, low, CHAIN_STEPS)  # type: ignore[arg-type]
    smoothing = sigmas.at[-1].set(0.0)  # the last level is the reward itself
    disturb = random_error(error_key, error)
    plan = annealed_plan(sigmas, 1, step_size)

    def value(action: Array, level: Array) -> Array:
        return env.smoothed_value(action, smoothing[level]) + disturb(action)

    return sample_chain(value, plan, w, chain_key)


def sample_plain(w: Array, step_size: Array, key: Key, error: float) -> Array:
    """Sample by LQL's chain on the reward."""
    chain_key, error_key = jax.random.split(key)
    disturb = random_error(error_key, error)
    plan = constant_plan(CHAIN_STEPS, step_size)  # type: ignore[arg-type]
    value = lambda action, _: env.reward(action) + disturb(action)  # noqa: E731
    return sample_chain(value, plan, w, chain_key)


def sample_chain(value: Callable[[Array, Array], Array], plan: Plan, w: Array, key: Key) -> Array:
    """Run chains along the unit gradient of `value` from normal starts: (samples, 2)."""
    noise = draw_chain_noise(key, SAMPLES, len(plan.level), 1, Spec(1, 2, env.BOUND))
    start, steps = noise.first_chain()

    def score(action: Array, level: Array) -> Array:
        return w * unit(action_gradient(value, action, level))

    return langevin_in_box(score, start, plan, steps, env.BOUND)


def random_error(key: Key, error: float) -> Callable[[Array], Array]:
    """Return a smooth random function of the plane with root mean square `error`."""
    wave_key, phase_key, height_key = jax.random.split(key, 3)
    wave = jax.random.normal(wave_key, (2, NUM_WAVES)) / WAVE_LENGTH
    phase = jax.random.uniform(phase_key, (1, NUM_WAVES), maxval=2 * jnp.pi)
    height = jax.random.normal(height_key, (NUM_WAVES,)) * error * (2 / NUM_WAVES) ** 0.5
    return lambda action: jnp.cos(action @ wave + phase) @ height


def summarise(samples: Array) -> Row:
    """Return the sum of shares, the largest distance of a share from 0.25, and the reward."""
    actions = np.asarray(samples)
    shares = env.near_high_modes(actions).mean(axis=0)
    unequal = float(np.abs(shares - 0.25).max())
    return {"sum": shares.sum(), "unequal": unequal, "reward_mean": env.reward(actions).mean()}


if __name__ == "__main__":
    write_csv(Path(sys.argv[1]), list(search()))
