"""Shares near the modes, rewards, and distances of samples to the exact soft policy."""

from __future__ import annotations

from functools import cache

import numpy as np

from langevinrl.analysis.tables import Row
from langevinrl.studies.bandit import env

MODES = list(env.HIGH_MODES)
NEAREST = np.geomspace(0.5, 500.0, 49).tolist()  # w tried for the exact policy nearest to samples


def measure(actions: np.ndarray, w: float | None, bound: float) -> Row:
    """Measure samples (B, 2), and their distance to the exact policy at w and at the nearest w."""
    shares, r = env.near_high_modes(actions).mean(axis=0), env.reward(actions)
    distances = [exact_policy(w, bound).total_variation(actions) for w in NEAREST]
    nearest = int(np.argmin(distances))
    row: Row = dict(zip(MODES, shares, strict=True))
    return row | {
        "sum": shares.sum(),
        "reward_mean": r.mean(),
        "reward_std": r.std(),
        "w": w,
        "total_variation": exact_policy(w, bound).total_variation(actions) if w else None,
        "nearest_w": NEAREST[nearest],
        "nearest_total_variation": distances[nearest],
    }


@cache
def exact_policy(w: float, bound: float) -> env.Density:
    """Return exp(w r)/Z, computed once."""
    return env.soft_policy(w, bound)
