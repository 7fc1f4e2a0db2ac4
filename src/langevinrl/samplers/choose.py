"""Choosing among candidate actions."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp

from langevinrl.types import Array


def best_of(candidates: Array, value: Callable[[Array], Array]) -> Array:
    """Of candidates (N, B, A), each row's most valuable: (B, A).  The first wins a tie; one is not scored."""
    if candidates.shape[0] == 1:
        return candidates[0]
    best = value(candidates).argmax(axis=0)
    return jnp.take_along_axis(candidates, best[None, :, None], axis=0)[0]
