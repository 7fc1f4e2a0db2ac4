"""Gaussian mixtures compared with hand-worked values and with scikit-learn."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.mixture import FLOOR, Mixture, entropy, fit, log_density, mean_entropy

KEY = jax.random.key(3)
FIT = jax.jit(fit, static_argnums=1)
MEAN_ENTROPY = jax.jit(mean_entropy, static_argnums=1)
BY_HAND = Mixture(
    weight=jnp.array([0.25, 0.75]),
    mean=jnp.array([[0.0, 1.0], [2.0, -1.0]]),
    factor=jnp.array([[[0.5, 0.0], [0.3, 0.2]], [[1.0, 0.0], [0.0, 2.0]]]),
)


def clusters(std: float, size: int = 200, seed: int = 0) -> np.ndarray:
    """Return points around three corners of a triangle with sides of about 2."""
    rng = np.random.default_rng(seed)
    corners = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.7]])
    member = rng.choice(3, size, p=[0.5, 0.3, 0.2])
    return (corners[member] + std * rng.normal(size=(size, 2))).astype(np.float32)


def covariances(mixture: Mixture) -> np.ndarray:
    factor = np.asarray(mixture.factor, np.float64)
    return factor @ factor.swapaxes(-1, -2)


def entropy_by_hand(weight: np.ndarray, covariance: np.ndarray) -> float:
    log_volume = np.linalg.slogdet(2 * np.pi * np.e * covariance)[1]
    return float((weight * (-np.log(weight) + log_volume / 2)).sum())


def test_entropy_sums_component_and_point() -> None:
    expected = entropy_by_hand(np.array([0.25, 0.75]), covariances(BY_HAND))
    np.testing.assert_allclose(entropy(BY_HAND), expected, rtol=1e-5)


def test_entropy_of_one_gaussian_is_exact() -> None:
    one = Mixture(jnp.ones(1), jnp.zeros((1, 3)), 0.2 * jnp.eye(3)[None])
    np.testing.assert_allclose(entropy(one), 1.5 * np.log(2 * np.pi * np.e * 0.04), rtol=1e-5)


def test_log_density_equals_the_formula() -> None:
    points = np.array([[0.1, 0.9], [1.0, 1.0], [3.0, -2.0]])
    density = np.zeros(3)
    for weight, mean, covariance in zip(
        *(np.asarray(x) for x in BY_HAND[:2]), covariances(BY_HAND), strict=True
    ):
        offset = points - mean
        exponent = np.einsum("ni,ij,nj->n", offset, np.linalg.inv(covariance), offset)
        volume = np.sqrt(np.linalg.det(2 * np.pi * covariance))
        density += weight * np.exp(-exponent / 2) / volume
    value = log_density(BY_HAND, jnp.asarray(points, jnp.float32))
    np.testing.assert_allclose(value, np.log(density), rtol=1e-4)


def test_one_component_has_the_mean_and_covariance_of_the_points() -> None:
    points = clusters(0.5)
    mixture = FIT(jnp.asarray(points), 1, KEY)
    np.testing.assert_allclose(mixture.mean[0], points.mean(axis=0), atol=1e-5)
    expected = np.cov(points.T, bias=True) + FLOOR * np.eye(2)
    np.testing.assert_allclose(covariances(mixture)[0], expected, atol=1e-5)


@pytest.mark.parametrize("std", [0.1, 0.5])
def test_clusters_equal_those_of_scikit_learn(std: float) -> None:
    # The wide clusters overlap, so the fit takes a dozen steps and depends on the stopping rule.
    reference = pytest.importorskip("sklearn.mixture").GaussianMixture(3, random_state=0)
    points = clusters(std)
    reference.fit(points.astype(np.float64))
    mixture = FIT(jnp.asarray(points), 3, KEY)
    ours, theirs = np.argsort(mixture.mean[:, 0]), np.argsort(reference.means_[:, 0])
    np.testing.assert_allclose(mixture.weight[ours], reference.weights_[theirs], atol=5e-3)
    np.testing.assert_allclose(mixture.mean[ours], reference.means_[theirs], atol=2e-2)
    np.testing.assert_allclose(
        covariances(mixture)[ours], reference.covariances_[theirs], atol=2e-2
    )
    score = log_density(mixture, jnp.asarray(points)).mean()
    np.testing.assert_allclose(score, reference.score(points.astype(np.float64)), atol=2e-3)


@pytest.mark.parametrize(("size", "std", "margin"), [(6, 0.8, 0.5), (17, 0.5, 0.2)])
def test_entropy_of_clipped_actions_agrees_with_scikit_learn(
    size: int, std: float, margin: float
) -> None:
    # There are many optima and the starts differ, so the mean over states is compared.
    reference = pytest.importorskip("sklearn.mixture").GaussianMixture
    rng = np.random.default_rng(1)
    points = np.clip(std * rng.normal(size=(200, 6, size)), -1, 1).astype(np.float32)
    theirs = []
    for state in range(points.shape[1]):
        model = reference(3, random_state=0).fit(points[:, state].astype(np.float64))
        theirs.append(entropy_by_hand(model.weights_, model.covariances_))
    ours = MEAN_ENTROPY(jnp.asarray(points), 3, KEY)
    assert abs(float(ours) - np.mean(theirs)) < margin


def test_points_on_a_line_are_fitted_as_by_scikit_learn() -> None:
    # A line in six dimensions: five directions have no variance but the floor and rounding.
    reference = pytest.importorskip("sklearn.mixture").GaussianMixture(3, random_state=0)
    points = np.linspace(-1, 1, 200, dtype=np.float32)[:, None] * np.ones((1, 6), np.float32)
    reference.fit(points.astype(np.float64))
    expected = entropy_by_hand(reference.weights_, reference.covariances_)
    np.testing.assert_allclose(entropy(FIT(jnp.asarray(points), 3, KEY)), expected, atol=0.1)


def test_equal_points_have_the_smallest_variance() -> None:
    mixture = FIT(jnp.full((200, 2), 0.3), 3, KEY)
    expected = np.log(2 * np.pi * np.e * FLOOR)
    np.testing.assert_allclose(entropy(mixture), expected, rtol=1e-4)


def test_fewer_distinct_points_than_axes_stay_finite() -> None:
    points = jnp.tile(0.7 * jax.random.normal(KEY, (5, 6)), (40, 1))
    mixture = FIT(points, 3, KEY)
    assert np.isfinite(entropy(mixture)) and np.isfinite(log_density(mixture, points)).all()


def test_states_are_fitted_independently() -> None:
    # Each state stops by its own criterion.
    quick, slow = jnp.asarray(clusters(0.1)), jnp.asarray(clusters(0.9, seed=1))
    keys = jax.random.split(KEY, 2)
    alone = [entropy(FIT(points, 3, k)) for points, k in zip((quick, slow), keys, strict=True)]
    together = MEAN_ENTROPY(jnp.stack([quick, slow], axis=1), 3, KEY)
    np.testing.assert_allclose(together, np.mean(alone), rtol=1e-4)


def test_more_iterations_than_the_default_overfit() -> None:
    points = jnp.asarray(clusters(0.9, seed=1))
    stopped, on = FIT(points, 3, KEY), FIT(points, 3, KEY, 300, 0.0)
    assert log_density(on, points).mean() > log_density(stopped, points).mean()
    assert entropy(on) < entropy(stopped)
