"""Selection among candidate actions, and exploration noise."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from langevinrl.types import Array

BLOCK_ROWS = 2048  # half of it for each of two cores: hidden layers, 256 wide, fit their caches


def blockwise(function: Callable[[Array], Array], candidates: Array) -> Array:
    """Apply `function` to candidates (N, B, A) a few at a time; to actions (B, A) at once.

    On a CPU large batches are limited by memory bandwidth, so blocks are faster. An accelerator
    gets all candidates at once.
    """
    rows = candidates.shape[-2]
    whole = candidates.ndim < 3 or not isinstance(rows, int) or jax.default_backend() != "cpu"
    if whole or len(candidates) <= max(1, BLOCK_ROWS // rows):
        return function(candidates)
    size = max(1, BLOCK_ROWS // rows)
    return jax.lax.map(lambda one: function(one[None])[0], candidates, batch_size=size)


def best_of(candidates: Array, value: Callable[[Array], Array]) -> Array:
    """Return each row's most valuable of candidates (N, B, A); the first one wins a tie.

    A single candidate is not scored.
    """
    if candidates.shape[0] == 1:
        return candidates[0]
    best = value(candidates).argmax(axis=0)
    chosen = jnp.arange(len(candidates))[:, None] == best[None]  # no gather: exports stay simple
    return jnp.where(chosen[..., None], candidates, 0.0).sum(axis=0)


def add_exploration(
    action: Array, std: Array | float, noise: Array, bound: float | None = None
) -> Array:
    """Add Gaussian exploration noise; clip to the action box if `bound` is given."""
    noisy = action + std * noise
    return noisy if bound is None else jnp.clip(noisy, -bound, bound)
