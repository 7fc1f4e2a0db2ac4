"""Exact scores of the smoothed density and of the smoothed value."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from langevinrl.studies.bandit import scores
from langevinrl.studies.bandit.env import CENTRES, soft_policy

AXIS = np.array([0.0, 1.2, -0.3])
GRID = np.stack(np.meshgrid(AXIS, AXIS, indexing="ij"), axis=-1)


def test_smoothed_density_is_the_convolution_with_noise() -> None:
    policy, sigma = soft_policy(10.0), 0.5
    distance = ((GRID[:, :, None] - policy.actions) ** 2).sum(-1)
    expected = (policy.mass.ravel() * np.exp(-distance / (2 * sigma**2))).sum(-1)
    density, _ = scores.density_score(jnp.asarray(AXIS), 10.0, sigma, 2.0)
    np.testing.assert_allclose(density, expected / expected.max(), atol=1e-3)


def test_score_at_large_w_is_that_of_the_high_modes() -> None:
    """At w = 500 the density is four points, whose smoothed score is known."""
    sigma = 0.7
    modes = CENTRES[[0, 2, 4, 6]] * 1.4136 / 2**0.5  # the maxima are just inside the modes
    weight = np.exp(-((GRID[:, :, None] - modes) ** 2).sum(-1) / (2 * sigma**2))[..., None]
    expected = ((weight * modes).sum(2) / weight.sum(2) - GRID) / sigma**2
    _, found = scores.density_score(jnp.asarray(AXIS), 500.0, sigma, 2.0)
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_scores_are_stored_for_the_shown_levels() -> None:
    found = scores.exact_scores([*np.linspace(0.7, 0.3, 9).tolist(), 0.0], 2.0)
    assert found["smoothed_density"].shape == (2, 3, 33, 33)
    assert found["density_score"].shape == (2, 3, 33, 33, 2)
    assert found["value_score"].shape == (3, 33, 33, 2)
