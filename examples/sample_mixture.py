"""Draw from a mixture of two Gaussians with annealed Langevin dynamics on its energy."""

import jax
import jax.numpy as jnp

from langevinrl import samplers

centres = jnp.array([[-2.0, 0.0], [2.0, 1.0]])
shares, std = jnp.array([0.3, 0.7]), 0.4
sigmas = samplers.geometric_sigmas(3.0, 0.1, 30)  # smoothest level first


def energy(points: jax.Array, level: jax.Array) -> jax.Array:
    """Return -log density of points (B, 2) under the mixture with the level's noise added."""
    variance = std**2 + sigmas[level] ** 2
    squares = ((points[:, None] - centres[None]) ** 2).sum(-1)  # (B, 2), one per centre
    return -jax.nn.logsumexp(-squares / (2 * variance), axis=-1, b=shares[None])


start_key, chain_key = jax.random.split(jax.random.key(0))
start = 3.0 * jax.random.normal(start_key, (2_000, 2))
plan = samplers.annealed_plan(sigmas, steps_per_level=40, step_size=0.005)
points = jax.jit(lambda start: samplers.sample(energy, start, plan, chain_key))(start)

right = points[:, 0] > 0
print(f"share of the right mode {right.mean():.3f}, exact {shares[1]:.3f}")
for name, some, centre in [("left", ~right, centres[0]), ("right", right, centres[1])]:
    mean, found = points[some].mean(0), points[some].std(0)
    print(f"{name}: mean {mean.round(2)} of {centre}, standard deviation {found.round(2)} of {std}")
