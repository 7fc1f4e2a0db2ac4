"""Statistics against values worked out by hand, and intervals with known values."""

from __future__ import annotations

import numpy as np
import pytest

from langevinrl.analysis import statistics
from langevinrl.analysis.statistics import estimate, estimate_curve

EVEN = [np.array([0.0, 0.2, 0.4, 0.9]), np.array([1.0, 0.1, 0.3, 0.8])]
RAGGED = [np.array([0.0, 1.0]), np.array([0.5])]


def test_tasks_have_equal_weight_with_different_numbers_of_seeds() -> None:
    assert statistics.mean(RAGGED) == pytest.approx(0.5)
    # As if 0 0.5 0.5 1: the middle half is 0.5 0.5.
    assert statistics.iqm(RAGGED) == pytest.approx(0.5)
    # Three seeds and two: as if 0 0 1 1 2 2 and 5 5 5 6 6 6, of which three are cut at each end.
    uneven = [np.array([0.0, 1.0, 2.0]), np.array([5.0, 6.0])]
    assert statistics.iqm(uneven) == pytest.approx((1 + 2 + 2 + 5 + 5 + 5) / 6)
    doubled = [np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.5, 0.5])]
    for statistic in statistics.AGGREGATES.values():
        assert statistic(doubled) == pytest.approx(statistic(RAGGED))
    np.testing.assert_allclose(statistics.profile(RAGGED, np.array([0.4])), [0.75])
    ties = statistics.probability_of_improvement(RAGGED, [np.array([1.0, 0.5, 0.0]), RAGGED[1]])
    assert ties == pytest.approx(0.5)


def test_interval_of_the_mean_of_two_seeds() -> None:
    """Resampled means of 0 and 1 are 0, 0.5 and 1 with probabilities 1/4, 1/2, 1/4."""
    assert estimate(statistics.mean, [np.array([0.0, 1.0])]) == (0.5, 0.0, 1.0)


def test_seeds_are_resampled_within_their_task() -> None:
    found = estimate(statistics.iqm, [np.full(3, 0.1), np.full(3, 0.9)])
    assert found.low == found.high == found.value
    assert estimate(statistics.iqm, EVEN) == estimate(statistics.iqm, EVEN)  # deterministic


def test_single_seed_on_a_task_gives_no_interval() -> None:
    found = estimate(statistics.mean, RAGGED)
    assert found.value == 0.5 and np.isnan(found.low) and np.isnan(found.high)
    both = estimate(statistics.probability_of_improvement, EVEN, [EVEN[0], np.array([1.0])])
    assert np.isnan(both.low)
    shape = estimate(lambda s: statistics.profile(s, np.arange(3.0)), RAGGED)
    assert shape.low.shape == (3,) and np.isnan(shape.low).all()


def test_curve_has_values_where_every_seed_has() -> None:
    first = np.array([[np.nan, 1.0, 2.0], [0.0, 1.0, 4.0]])
    second = np.array([[0.0, 3.0, 5.0], [0.0, 3.0, 7.0]])
    found = estimate_curve([first, second])
    np.testing.assert_allclose(found.value, [np.nan, 2.0, 4.5])
    np.testing.assert_allclose(found.low, [np.nan, 2.0, 3.5])
    np.testing.assert_allclose(found.high, [np.nan, 2.0, 5.5])
    assert np.isnan(estimate_curve([np.full((2, 3), np.nan)]).value).all()


@pytest.mark.parametrize("name", statistics.AGGREGATES)
def test_statistics_are_vectorised_over_resamples(name: str) -> None:
    uneven = [np.array([0.0, 1.0, 2.0]), np.array([5.0, 6.0])]
    statistic = statistics.AGGREGATES[name]
    resampled = statistics.resample(uneven, np.random.default_rng(0))
    each = [statistic([task[i] for task in resampled]) for i in range(20)]
    np.testing.assert_allclose(statistic(resampled)[:20], each)
    assert all(set(task.ravel()) <= set(own) for task, own in zip(resampled, uneven, strict=True))


# Scores of seven runs of five tasks, with ties, and what rliable 1.2.0 says of them with 20,000
# resamples: value, low and high.
X = ((np.arange(35) * 7 % 16).reshape(7, 5) + np.arange(5)) / 10
Y = (np.arange(35) * 5 % 13).reshape(7, 5) / 10
THRESHOLDS = np.array([0.1, 0.45, 0.75, 1.05, 1.5])
RLIABLE = {
    "mean": (0.94571429, 0.79428571, 1.09714286),
    "median": (0.9, 0.68571429, 1.14285714),
    "IQM": (0.95263158, 0.74210526, 1.14736842),
    "optimality gap": (0.24571429, 0.15142857, 0.34285714),
    "improvement": (0.68163265, 0.55510204, 0.80005102),
    "profile": (
        (0.94285714, 0.77142857, 0.62857143, 0.42857143, 0.14285714),
        (0.85714286, 0.62857143, 0.48571429, 0.28571429, 0.05714286),
        (1.0, 0.88571429, 0.77142857, 0.57142857, 0.25714286),
    ),
}


@pytest.mark.parametrize("name", RLIABLE)
def test_estimates_agree_with_rliable(name: str) -> None:
    if name == "improvement":
        found = estimate(statistics.probability_of_improvement, list(X.T), list(Y.T))
    elif name == "profile":
        found = estimate(lambda scores: statistics.profile(scores, THRESHOLDS), list(X.T))
    else:
        found = estimate(statistics.AGGREGATES[name], list(X.T))
    value, low, high = np.array(RLIABLE[name])
    np.testing.assert_allclose(found.value, value, atol=1e-8)
    noise = 0.1 * np.max(high - low)  # two bootstraps differ
    np.testing.assert_allclose(found.low, low, atol=noise)
    np.testing.assert_allclose(found.high, high, atol=noise)
