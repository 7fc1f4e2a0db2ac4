"""Exact scores of the soft policy smoothed by noise, and of the smoothed value.

Diffusion models learn the score of a smoothed density, ∇ log ∫ exp(w r(a)) N(x; a, σ²) da.
NC-LQL follows w ∇ E[r(a) | a + σz = x], the gradient of a smoothed value.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.studies.bandit import env
from langevinrl.types import Array

LEVELS = (1, 4, 7)  # noise levels shown, starting at 1
WEIGHTS = (10.0, 500.0)  # values of w shown
POINTS = 33  # along an axis


def density_score(axis: Array, w: float, sigma: float, bound: float) -> tuple[Array, Array]:
    """Return the smoothed density (G, G), with maximum 1, and its score (G, G, 2) on a grid."""
    cells = jnp.asarray(env.soft_policy(0.0, bound, cells=200).axis)
    kernel = -jnp.square(axis[:, None] - cells[None]) / (2 * sigma**2)  # (G, C)
    logits = w * jnp.asarray(env.reward_map(np.asarray(cells)))  # (C, C)
    # The noise is independent along the two axes, so that the sum over cells is done in two steps.
    second = jax.nn.logsumexp(logits[:, None] + kernel[None], axis=-1)  # (C, G)
    first = kernel[:, None] + second.T[None]  # (G, G, C)
    log_density = jax.nn.logsumexp(first, axis=-1)
    mean = jax.nn.softmax(first) @ cells  # E[a₁ | x]
    score = (mean - axis[:, None]) / sigma**2
    # The reward is symmetric in its axes, and so is the density.
    return jnp.exp(log_density - log_density.max()), jnp.stack([score, score.T], axis=-1)


def value_score(sigma: float, bound: float) -> tuple[Array, Array]:
    """Return the smoothed value (G, G) and its gradient (G, G, 2) on a grid."""
    points = env.grid(bound, POINTS)
    value, pull_back = jax.vjp(lambda x: env.smoothed_value(x, sigma, bound), points)
    return value, pull_back(jnp.ones_like(value))[0]


def exact_scores(sigmas: list[float], bound: float) -> dict[str, np.ndarray]:
    """Return densities (W, L, G, G), values (L, G, G), and their scores (..., 2)."""
    axis = jnp.linspace(-bound, bound, POINTS)
    shown = [sigmas[level - 1] for level in LEVELS if level < len(sigmas)]
    densities = [[density_score(axis, w, sigma, bound) for sigma in shown] for w in WEIGHTS]
    values = [value_score(sigma, bound) for sigma in shown]
    return {
        "score_sigmas": np.array(shown),
        "score_weights": np.array(WEIGHTS),
        "smoothed_density": np.array([[density for density, _ in row] for row in densities]),
        "density_score": np.array([[score for _, score in row] for row in densities]),
        "smoothed_value": np.array([value for value, _ in values]),
        "value_score": np.array([score for _, score in values]),
    }
