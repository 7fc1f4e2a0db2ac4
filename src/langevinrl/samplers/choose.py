"""Judging candidate actions, and choosing among them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from langevinrl.types import Array, Key

BLOCK_ROWS = 2048  # half of it for each of two cores: hidden layers, 256 wide, fit their caches


def blockwise(function: Callable[[Array], Array], candidates: Array) -> Array:
    """`function` of candidates (N, B, A), mapped over N a few at a time; of actions (B, A) at once.

    On a processor all of them at once spend more time on the way to memory than a block does; an
    accelerator would rather have them all.
    """
    size = max(1, BLOCK_ROWS // candidates.shape[-2])
    if candidates.ndim < 3 or len(candidates) <= size or jax.default_backend() != "cpu":
        return function(candidates)
    return jax.lax.map(lambda one: function(one[None])[0], candidates, batch_size=size)


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
