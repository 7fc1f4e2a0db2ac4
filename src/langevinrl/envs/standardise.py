"""Observations standardised to mean 0 and standard deviation 1 by fixed statistics.

Running statistics differ between environments and restart in every evaluation.  These are measured
once, under random actions, and are part of the factory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from langevinrl.envs.build import build
from langevinrl.envs.factory import EnvFactory, EnvLike, as_factory, name_of
from langevinrl.envs.flat import FlatWrapper

MIN_STD = 1e-3  # so that a nearly constant number is not amplified
CLIP = 10.0  # standard deviations


@dataclass(frozen=True)
class Standardised:
    """A factory of environments whose flat observations are (obs - mean) / std."""

    factory: EnvFactory
    name: str
    mean: np.ndarray  # (O,)
    std: np.ndarray  # (O,)

    def __call__(self) -> gym.Env[Any, Any]:
        flat = FlatWrapper(self.factory(), self.name)
        box = gym.spaces.Box(-CLIP, CLIP, self.mean.shape, np.float32)
        return gym.wrappers.TransformObservation(flat, self.apply, box)

    def apply(self, obs: np.ndarray) -> np.ndarray:
        scaled = (obs - self.mean) / self.std
        return np.clip(scaled, -CLIP, CLIP).astype(np.float32)


def standardise(env: EnvLike, steps: int = 5_000, seed: int = 0) -> Standardised:
    """Measure observations over random steps; return a factory that standardises them.

    make = standardise("Hopper-v5")      # then Model("nclql", make), or --env my_tasks:make
    """
    factory, name = as_factory(env), name_of(env)
    played = build(factory, name)
    played.action_space.seed(seed)
    rows = [played.reset(seed=seed)[0]]
    for _ in range(steps):
        obs, _, terminated, truncated, _ = played.step(played.action_space.sample())
        rows.append(played.reset()[0] if terminated or truncated else obs)
    played.close()
    table = np.array(rows, np.float64)
    return Standardised(factory, name, table.mean(axis=0), table.std(axis=0).clip(MIN_STD))
