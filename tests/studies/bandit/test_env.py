"""Exact quantities of the bandit, compared with derived values and numerical integration."""

from __future__ import annotations

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from langevinrl.envs.snapshot import SnapshotWrapper
from langevinrl.studies.bandit.env import (
    CENTRES,
    PEAK,
    WEIGHTS,
    Bandit,
    Density,
    make,
    near_high_modes,
    reward,
    reward_map,
    smoothed_value,
    soft_policy,
)

# w: mass near the high modes, mean and standard deviation of the reward by quadrature
DERIVED = {
    1: (0.123, 0.266, 0.259),
    5: (0.585, 0.629, 0.299),
    10: (0.943, 0.873, 0.140),
    20: (0.999, 0.947, 0.054),
    50: (1.000, 0.980, 0.021),
    100: (1.000, 0.990, 0.010),
    500: (1.000, 0.998, 0.002),
}


def shares(policy: Density) -> np.ndarray:
    """Mass near the top, right, bottom and left mode."""
    return np.array([policy.mass.ravel()[on].sum() for on in near_high_modes(policy.actions).T])


def test_reward_is_the_scaled_sum_of_gaussians() -> None:
    action = np.array([0.9, 0.2])
    total = 0.0
    for (x, y), weight in zip(CENTRES, WEIGHTS, strict=True):
        total += weight * np.exp(-((0.9 - x) ** 2 + (0.2 - y) ** 2) / 0.18)
    assert reward(action) == pytest.approx(total / PEAK)


def test_reward_at_a_low_mode_between_modes_and_at_the_origin() -> None:
    between = (CENTRES[0] + CENTRES[1]) / 2
    values = reward(np.array([[1.0, 1.0], between, [0.0, 0.0]]))
    np.testing.assert_allclose(values, [0.5022, 0.2943, 9.0e-5], atol=5e-5)


def test_maximum_reward_is_one_just_inside_the_high_modes() -> None:
    radius = np.linspace(1.40, 1.42, 20_001)
    for direction in ([1, 0], [0, 1], [-1, 0], [0, -1]):
        along = reward(radius[:, None] * np.array([direction], float))
        assert along.max() == pytest.approx(1.0, abs=1e-8)
        assert radius[along.argmax()] == pytest.approx(1.4136, abs=1e-4)
    assert reward(soft_policy(0.0).actions).max() <= 1.0 + 1e-8


def test_reward_map_and_jax_reward_equal_the_numpy_reward() -> None:
    policy = soft_policy(0.0, cells=30)
    values = reward(policy.actions)
    assert isinstance(values, np.ndarray)
    np.testing.assert_allclose(reward_map(policy.axis).ravel(), values)
    np.testing.assert_allclose(reward(jnp.asarray(policy.actions)), values, atol=1e-6)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0])
def test_smoothed_value_is_the_mean_reward_given_the_noisy_action(sigma: float) -> None:
    clean = soft_policy(0.0, bound=2.0, cells=200).actions
    noisy = np.array([[0.0, 0.0], [1.2, -0.3], [1.9, 1.9], [2.4, 0.1], [-1.5, 0.4]])
    distance = ((noisy[:, None] - clean[None]) ** 2).sum(-1)
    weight = np.exp(-distance / (2 * sigma**2))
    brute = (weight * reward(clean)[None]).sum(1) / weight.sum(1)
    np.testing.assert_allclose(smoothed_value(jnp.asarray(noisy), sigma), brute, atol=5e-4)


def test_smoothed_value_depends_on_the_box_only_near_its_edge() -> None:
    points, sigma = jnp.array([[0.3, -0.2], [1.0, 0.1]]), 0.4
    total = 0.09 + sigma**2
    distance = np.square(np.asarray(points)[:, None] - CENTRES[None]).sum(-1)
    plane = (WEIGHTS[None] / PEAK * 0.09 / total * np.exp(-distance / (2 * total))).sum(-1)
    np.testing.assert_allclose(smoothed_value(points, sigma, bound=20.0), plane, atol=1e-6)
    edge = jnp.array([[1.9, 0.0]])  # beyond the edge no low rewards are averaged in
    assert smoothed_value(edge, sigma)[0] > smoothed_value(edge, sigma, bound=20.0)[0] + 0.05


def test_smoothed_value_without_noise_is_the_reward() -> None:
    points = jnp.array([[0.3, -0.2], [1.0, 0.1]])
    np.testing.assert_allclose(smoothed_value(points, 0.0), reward(points), atol=1e-5)
    np.testing.assert_allclose(smoothed_value(points, 0.02), reward(points), atol=5e-3)


@pytest.mark.parametrize("w", DERIVED)
def test_soft_policy_has_the_derived_moments(w: int) -> None:
    policy = soft_policy(w)
    mean = (policy.mass * reward_map(policy.axis)).sum()
    std = (policy.mass * (reward_map(policy.axis) - mean) ** 2).sum() ** 0.5
    found = (shares(policy).sum(), mean, std)
    np.testing.assert_allclose(found, DERIVED[w], atol=1e-3)
    np.testing.assert_allclose(
        shares(policy), shares(policy).mean(), atol=1e-6
    )  # the four are equal


def test_samples_have_the_moments_of_the_soft_policy() -> None:
    policy = soft_policy(10.0)
    draws = policy.sample(20_000, np.random.default_rng(1))
    assert np.abs(draws).max() <= 2.0
    assert reward(draws).mean() == pytest.approx(DERIVED[10][1], abs=0.005)
    np.testing.assert_allclose(near_high_modes(draws).mean(0), shares(policy), atol=0.01)


def test_coarse_cells_sum_the_fine_ones() -> None:
    policy = Density(np.arange(4.0), np.arange(16.0).reshape(4, 4))
    np.testing.assert_array_equal(policy.coarse(2), [[10, 18], [42, 50]])


def test_total_variation_is_half_the_difference_of_histograms() -> None:
    policy = Density(np.array([-1.5, -0.5, 0.5, 1.5]), np.full((4, 4), 1 / 16))
    corner = np.array([[-2.0, -2.0], [-1.2, -0.1], [2.0, 2.0], [1.0, 0.5]])  # edges belong
    assert policy.total_variation(corner, cells=2) == pytest.approx(0.5)
    assert policy.total_variation(corner[:2], cells=2) == pytest.approx(0.75)


def test_total_variation_is_smallest_at_the_w_of_the_samples() -> None:
    policies = {w: soft_policy(w) for w in (5.0, 10.0, 20.0)}
    draws = policies[10.0].sample(10_000, np.random.default_rng(3))
    variation = {w: policy.total_variation(draws) for w, policy in policies.items()}
    assert variation[10.0] < 0.05 < min(variation[5.0], variation[20.0]) - 0.1


def test_near_high_modes_in_the_order_top_right_bottom_left() -> None:
    root = 2**0.5
    points = np.array([[0, root + 0.29], [root, 0.29], [0, -root], [-root - 0.31, 0], [1, 1]])
    expected = np.zeros((5, 4), bool)
    expected[[0, 1, 2], [0, 1, 2]] = True
    np.testing.assert_array_equal(near_high_modes(points), expected)


@pytest.mark.filterwarnings("ignore:.*symmetric and normalized")  # the modes are beyond 1
def test_environment_passes_gymnasiums_check_and_ends_after_one_step() -> None:
    env = make()
    check_env(env, skip_render_check=True)
    obs, _ = env.reset(seed=3)
    last, value, terminated, truncated, _ = env.step(np.array([1.0, 1.0], np.float32))
    assert terminated and not truncated
    assert value == pytest.approx(0.5022, abs=1e-4)
    np.testing.assert_array_equal(obs, last)
    assert Bandit(3.0).action_space == gym.spaces.Box(-3.0, 3.0, (2,), np.float32)


def test_environment_state_can_be_saved_and_restored() -> None:
    env = SnapshotWrapper(make())
    env.reset(seed=4)
    saved = env.env_state
    assert saved is not None and saved.arrays == {}
    first = env.unwrapped.np_random.uniform()
    env.env_state = saved
    assert env.unwrapped.np_random.uniform() == first
