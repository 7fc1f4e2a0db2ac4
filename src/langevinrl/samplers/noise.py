"""Random numbers of sampling chains, drawn before the chain starts."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.types import Array, Key, Spec

StartDistribution: TypeAlias = Literal["uniform", "normal", "zero"]


class ChainNoise(NamedTuple):
    """Raw draws for N chains of T steps per row; the batch axis is first in both arrays."""

    start: Array  # (B, N, A)  uniform on the action box, standard normal or zero
    steps: Array  # (B, T, N, A)  standard normal

    def for_chains(self) -> tuple[Array, Array]:
        """Return both arrays as a chain uses them: (N, B, A) and (T, N, B, A)."""
        return jnp.moveaxis(self.start, 0, 1), jnp.moveaxis(self.steps, 0, 2)

    def first_chain(self) -> tuple[Array, Array]:
        """Return the first chain of every row: (B, A) and (T, B, A)."""
        start, steps = self.for_chains()
        return start[0], steps[:, 0]


def draw_chain_noise(
    key: Key,
    num: int,
    num_steps: int,
    num_chains: int,
    spec: Spec,
    start: StartDistribution = "normal",
) -> ChainNoise:
    """Draw the noise of `num_chains` chains of `num_steps` steps for each of `num` rows."""
    start_key, steps_key = jax.random.split(key)
    shape = (num_chains, num, spec.act_dim)
    first = jnp.zeros(shape)
    if start == "uniform":
        first = jax.random.uniform(start_key, shape, minval=-spec.act_bound, maxval=spec.act_bound)
    elif start == "normal":
        first = jax.random.normal(start_key, shape)
    keys = jax.random.split(steps_key, num_steps)
    steps = jax.vmap(lambda step_key: jax.random.normal(step_key, shape))(keys)
    return ChainNoise(jnp.moveaxis(first, 1, 0), jnp.moveaxis(steps, 2, 0))
