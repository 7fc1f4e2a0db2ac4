"""Choosing among candidate actions."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from langevinrl.types import Array, Key


def best_of(candidates: Array, value: Callable[[Array], Array]) -> Array:
    """Each row's most valuable of candidates (N, B, A); the first wins a tie, one is unscored."""
    if candidates.shape[0] == 1:
        return candidates[0]
    best = value(candidates).argmax(axis=0)
    return jnp.take_along_axis(candidates, best[None, :, None], axis=0)[0]


def jitter(action: Array, std: Array | float, key: Key, bound: float | None) -> Array:
    """Actions with Gaussian noise of this spread, for exploring; held in the box if it is given."""
    noisy = action + std * jax.random.normal(key, action.shape)
    return noisy if bound is None else jnp.clip(noisy, -bound, bound)
