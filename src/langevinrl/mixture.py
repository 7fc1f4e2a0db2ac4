"""Gaussian mixtures fitted by expectation-maximisation, for estimating entropy from samples."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from langevinrl.types import Array, Key

FLOOR = 1e-6  # added to every variance, since points may not fill every direction


class Mixture(NamedTuple):
    """K Gaussians with full covariances, stored as Cholesky factors."""

    weight: Array  # (K,)
    mean: Array  # (K, A)
    factor: Array  # (K, A, A)  lower triangular


def fit(
    points: Array,
    num_components: int,
    key: Key,
    max_iterations: int = 100,
    tolerance: float = 1e-3,
) -> Mixture:
    """Fit a mixture to points (n, A).

    The defaults are scikit-learn's, which the released code uses. The stopping rule, a gain in mean
    log density below `tolerance`, is part of the estimate: more iterations overfit a few hundred
    points, and the entropy falls by up to a nat.
    """

    def unfinished(carry: tuple[Mixture, Array, Array, Array]) -> Array:
        _, _, gain, iteration = carry
        return (iteration < max_iterations) & (jnp.abs(gain) >= tolerance)

    def step(carry: tuple[Mixture, Array, Array, Array]) -> tuple[Mixture, Array, Array, Array]:
        mixture, before, _, iteration = carry
        joint = _joint(mixture, points)
        mean = jax.nn.logsumexp(joint, axis=1).mean()
        return _maximise(points, jax.nn.softmax(joint)), mean, mean - before, iteration + 1

    start = _maximise(points, _cluster(points, num_components, key))
    initial = (jnp.array(-jnp.inf), jnp.array(jnp.inf), jnp.array(0))
    return jax.lax.while_loop(unfinished, step, (start, *initial))[0]


def mean_entropy(points: Array, num_components: int, key: Key) -> Array:
    """Return the entropy of a mixture fitted to each row's points (n, B, A), averaged over rows."""

    def one(points: Array, key: Key) -> Array:
        return entropy(fit(points, num_components, key))

    return jax.vmap(one, in_axes=(1, 0))(points, jax.random.split(key, points.shape[1])).mean()


def log_density(mixture: Mixture, points: Array) -> Array:
    """Return the log density at points (n, A): (n,)."""
    return jax.nn.logsumexp(_joint(mixture, points), axis=1)


def entropy(mixture: Mixture) -> Array:
    """Return the entropy of a component and a point of it: Σ p (-log p + ½ log((2πe)^A |Σ|)).

    It is an upper bound of the mixture's own entropy, exact if components do not overlap.
    """
    size = mixture.mean.shape[1]
    log_volume = jnp.log(_diagonal(mixture.factor)).sum(axis=1)  # ½ log |Σ|
    within = 0.5 * size * jnp.log(2 * jnp.pi * jnp.e) + log_volume
    return (mixture.weight * (within - jnp.log(mixture.weight))).sum()


def _joint(mixture: Mixture, points: Array) -> Array:
    """Return the joint log density of each point and each component: (n, K)."""

    def one(weight: Array, mean: Array, factor: Array) -> Array:
        # The factor is inverted first: solving for hundreds of points at once is far slower.
        inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(len(mean)), lower=True)
        white = inverse @ (points - mean[None]).T
        log_scale = jnp.log(_diagonal(factor)).sum() + 0.5 * len(mean) * jnp.log(2 * jnp.pi)
        return jnp.log(weight) - log_scale - 0.5 * jnp.square(white).sum(axis=0)

    return jax.vmap(one, out_axes=1)(*mixture)


def _maximise(points: Array, share: Array) -> Mixture:
    """Return the maximum-likelihood mixture for responsibilities `share` (n, K)."""

    def one(share: Array) -> tuple[Array, Array, Array]:
        count = share.sum() + 1e-6  # an empty component keeps a small weight instead of NaN
        mean = share @ points / count
        centred = points - mean[None]
        covariance = (share[:, None] * centred).T @ centred / count
        return count, mean, _factorise(covariance + FLOOR * jnp.eye(len(mean)))

    count, mean, factor = jax.vmap(one, in_axes=1)(share)
    return Mixture(count / count.sum(), mean, factor)


def _factorise(covariance: Array) -> Array:
    """Return the Cholesky factor with pivots of at least FLOOR.

    With few points in many dimensions, single precision can make the last pivots negative.
    """
    index = jnp.arange(len(covariance))

    def column(j: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        rest, factor = carry
        pivot = jnp.sqrt(jnp.maximum(rest[j, j], FLOOR))
        below = jnp.where(index > j, rest[:, j] / pivot, 0.0).at[j].set(pivot)
        return rest - jnp.outer(below, below), factor.at[:, j].set(below)

    start = (covariance, jnp.zeros_like(covariance))
    return jax.lax.fori_loop(0, len(covariance), column, start)[1]


def _cluster(points: Array, num_clusters: int, key: Key, num_rounds: int = 20) -> Array:
    """Return k-means cluster membership (n, K) of zeros and ones."""

    def assign(centres: Array) -> Array:
        return jax.nn.one_hot(_distances(points, centres).argmin(axis=1), num_clusters)

    def move(centres: Array, _: None) -> tuple[Array, None]:
        member = assign(centres)
        count = member.sum(axis=0)[:, None]
        means = member.T @ points / jnp.maximum(count, 1.0)
        return jnp.where(count > 0, means, centres), None

    seeds = _initial_centres(points, num_clusters, key)
    return assign(jax.lax.scan(move, seeds, length=num_rounds)[0])


def _initial_centres(points: Array, num_seeds: int, key: Key) -> Array:
    """Draw k-means++ centres: each with probability by squared distance to the nearest centre."""
    keys = jax.random.split(key, num_seeds)
    seeds = jax.random.choice(keys[0], points)[None]
    for k in keys[1:]:
        nearest = _distances(points, seeds).min(axis=1)
        # The small term keeps the distribution valid when all points are equal.
        chosen = jax.random.categorical(k, jnp.log(nearest + 1e-20))
        seeds = jnp.concatenate([seeds, points[chosen][None]])
    return seeds


def _distances(points: Array, centres: Array) -> Array:
    """Return squared distances of points to centres: (n, K)."""
    return jnp.square(points[:, None] - centres[None]).sum(axis=-1)


def _diagonal(factor: Array) -> Array:
    return jnp.diagonal(factor, axis1=-2, axis2=-1)
