"""How far samples are from the exact law: shares, rewards and distances."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np

from langevinrl.agents import Agent
from langevinrl.analysis.tables import Row
from langevinrl.studies.bandit import env
from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.training import constant_obs, key_for
from langevinrl.types import Array, Key, PyTree

MODES = list(env.HIGH_MODES)
NEAREST = np.geomspace(0.5, 500.0, 49).tolist()  # w tried for the exact law nearest to samples


def sample(
    agent: Agent, state: PyTree, config: BanditConfig, seed: int, explore: bool
) -> np.ndarray:
    """Actions of one trained policy, (samples, 2), each with noise of its own."""
    act = _compiled_act(agent, config.samples, explore)  # type: ignore[arg-type]
    return np.asarray(act(state, key_for(seed, "sample")))


@cache
def _compiled_act(agent: Any, num: int, explore: bool) -> Callable[[PyTree, Key], Array]:
    return jax.jit(lambda state, key: agent.act(state, constant_obs(num), key, explore=explore))


def measure(actions: np.ndarray, w: float | None, bound: float) -> Row:
    """Shares, reward, and distances to the exact law: at w if there is one, and at the nearest."""
    shares, r = env.near_high_modes(actions).mean(axis=0), env.reward(actions)
    row: Row = dict(zip(MODES, shares, strict=True))
    row |= {"sum": shares.sum(), "reward_mean": r.mean(), "reward_std": r.std(), "w": w}
    row |= _distances("", actions, w, bound)
    laws = [exact_law(candidate, bound) for candidate in NEAREST]
    best = int(np.argmin([law.total_variation(actions) for law in laws]))
    return (
        row | {"nearest_w": NEAREST[best]} | _distances("nearest_", actions, NEAREST[best], bound)
    )


def _distances(prefix: str, actions: np.ndarray, w: float | None, bound: float) -> Row:
    if w is None:
        return {f"{prefix}total_variation": None, f"{prefix}wasserstein": None}
    law, quantiles = exact_law(w, bound), exact_quantiles(w, bound, len(actions))
    return {
        f"{prefix}total_variation": law.total_variation(actions),
        f"{prefix}wasserstein": env.sliced_wasserstein(actions, quantiles),
    }


@cache
def exact_law(w: float, bound: float) -> env.Density:
    """exp(w r)/Z, worked out once."""
    return env.soft_policy(w, bound)


@cache
def exact_quantiles(w: float, bound: float, num: int) -> np.ndarray:
    """Quantiles of its projections, for the Wasserstein distance of `num` samples."""
    return exact_law(w, bound).quantiles(num)
