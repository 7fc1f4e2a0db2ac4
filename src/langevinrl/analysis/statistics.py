"""Statistics over seeds and tasks: aggregates, profiles, comparisons, and their intervals.

Scores are a list with one array per task, seeds on the last axis.  Tasks may have different numbers
of seeds; every task has the same weight.  Leading axes are resamples.  For equal numbers of seeds
these are the statistics of Agarwal et al., Deep Reinforcement Learning at the Edge of the
Statistical Precipice (2021), arXiv 2108.13264.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

Scores: TypeAlias = Sequence[np.ndarray]  # per task (..., seeds)
Statistic: TypeAlias = Callable[[Scores], np.ndarray]  # -> (...,) or (..., anything)
RESAMPLES, BOOTSTRAP_SEED = 2_000, 0
TAILS = (0.025, 0.975)  # of 95 % intervals


class Estimate(NamedTuple):
    """A statistic and its interval; low and high are nan where a task has a single seed."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def standard_deviation(values: Sequence[float] | np.ndarray) -> float:
    """Return the sample standard deviation; 0 for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def mean(scores: Scores) -> np.ndarray:
    """Return the mean over tasks of each task's mean."""
    return _task_means(scores).mean(axis=-1)


def median(scores: Scores) -> np.ndarray:
    """Return the median over tasks of each task's mean."""
    return np.median(_task_means(scores), axis=-1)


def _task_means(scores: Scores) -> np.ndarray:
    return np.stack([task.mean(axis=-1) for task in scores], axis=-1)


def iqm(scores: Scores) -> np.ndarray:
    """Return the interquartile mean: the mean of the middle half of all runs of all tasks.

    A quarter of the runs is cut at each end, rounded down to whole runs.  Where tasks have
    different numbers of seeds, runs are weighted so that tasks are equal.
    """
    counts = [task.shape[-1] for task in scores]
    times = math.lcm(*counts)
    total = times * len(counts)
    cut = total // 4
    runs = np.concatenate(list(scores), axis=-1)
    if len(set(counts)) == 1:  # equal weights: much faster
        return np.sort(runs, axis=-1)[..., cut : total - cut].mean(axis=-1)
    weights = np.concatenate([np.full(n, times // n) for n in counts])
    order = np.argsort(runs, axis=-1, kind="stable")
    runs, weights = np.take_along_axis(runs, order, axis=-1), weights[order]
    ends = weights.cumsum(axis=-1)
    inside = np.minimum(ends, total - cut) - np.maximum(ends - weights, cut)
    return (runs * inside.clip(0)).sum(axis=-1) / (total - 2 * cut)


def optimality_gap(scores: Scores) -> np.ndarray:
    """Return how far runs stay below 1 on average; scores above 1 count as 1."""
    return 1 - mean([np.minimum(task, 1) for task in scores])


def profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """Return the fraction of runs above each threshold, mean over tasks; (..., thresholds)."""
    above = [(task[..., None, :] > thresholds[:, None]).mean(axis=-1) for task in scores]
    return np.mean(above, axis=0)


def probability_of_improvement(first: Scores, second: Scores) -> np.ndarray:
    """Return how often a run of the first beats one of the second; a tie counts as half."""
    wins = []
    for x, y in zip(first, second, strict=True):
        x, y = x[..., :, None], y[..., None, :]
        wins.append(((x > y) + 0.5 * (x == y)).mean(axis=(-2, -1)))
    return np.mean(wins, axis=0)


AGGREGATES: dict[str, Statistic] = {
    "mean": mean,
    "median": median,
    "IQM": iqm,
    "optimality gap": optimality_gap,
}


def resample(scores: Scores, draws: np.random.Generator) -> list[np.ndarray]:
    """Resample seeds with replacement within each task: (..., seeds) to (R, ..., seeds)."""
    resampled = []
    for task in scores:
        seeds = task.shape[-1]
        chosen = draws.integers(seeds, size=(RESAMPLES, seeds))
        resampled.append(np.moveaxis(task[..., chosen], -2, 0))
    return resampled


def estimate(statistic: Callable[..., np.ndarray], *scores: Scores) -> Estimate:
    """Estimate a statistic of one or more methods' scores, with a stratified bootstrap interval.

    estimate(iqm, scores); estimate(probability_of_improvement, ours, theirs).  There is no interval
    if some task has a single seed: it would be too narrow.
    """
    value = np.asarray(statistic(*scores))
    if min(task.shape[-1] for one in scores for task in one) < 2:
        absent = np.full_like(value, np.nan, dtype=float)
        return Estimate(value, absent, absent)
    draws = np.random.default_rng(BOOTSTRAP_SEED)
    resampled = statistic(*(resample(one, draws) for one in scores))
    return Estimate(value, *np.quantile(resampled, TAILS, axis=0))


def estimate_curve(curves: Scores, statistic: Statistic = mean) -> Estimate:
    """Estimate a statistic at every point of a curve; per task (seeds, P), nan for no value.

    A point has a value where every seed of every task has one.  A seed that stopped early would
    otherwise make the curve jump.  Whole seeds are resampled.
    """
    known = np.all([np.isfinite(task).all(axis=0) for task in curves], axis=0)
    found = np.full((3, known.size), np.nan)
    if known.any():
        found[:, known] = estimate(statistic, [task[:, known].T for task in curves])
    return Estimate(*found)
