"""Normalised scores over all tasks, of the methods that have them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

import numpy as np

from langevinrl.analysis import paper, statistics
from langevinrl.analysis.grids import final_returns, on_grid, shared_range
from langevinrl.analysis.groups import Group
from langevinrl.analysis.normalise import Normalisation
from langevinrl.analysis.statistics import AGGREGATES, Estimate, estimate, estimate_curve
from langevinrl.errors import UserError

CURVE_POINTS, PROFILE_POINTS = 40, 101
MAX_PAIRED = 24  # methods; more are too many to compare pair by pair
Tasks: TypeAlias = dict[str, list[Group]]  # one method's; versions of a task may be mixed


@dataclass(frozen=True)
class ScoreCurve:
    """Aggregate scores of a method by training progress, as far as all its seeds got."""

    progress: np.ndarray  # (P,)
    mean: Estimate
    iqm: Estimate


@dataclass(frozen=True)
class MethodScores:
    """Normalised scores of one method over all tasks."""

    label: str
    agent: str
    colour: str
    seeds: list[int]  # finished seeds per task
    progress: list[Estimate]  # mean score at each fraction of training in paper.PROGRESS
    aggregates: dict[str, Estimate]  # final scores, by name of the statistic
    profile: Estimate  # fraction of runs above each threshold
    curve: ScoreCurve | None  # None if its seeds share no progress


@dataclass(frozen=True)
class Improvement:
    """Probability that a run of the first method ends above one of the second."""

    first: str
    second: str
    probability: Estimate


@dataclass(frozen=True)
class Aggregates:
    """Scores over all tasks of the methods that can be compared."""

    normalisation: Normalisation
    tasks: list[str]
    methods: list[MethodScores]
    thresholds: np.ndarray  # scores at which profiles are given
    improvement: list[Improvement]  # of every ordered pair; empty if there are too many methods


def compare(finished: Sequence[Group]) -> tuple[dict[str, Tasks], list[str]]:
    """Select the methods that have all tasks, by label; return a sentence about each other one.

    All tasks are those of the method with most of them.
    """
    found: dict[str, Tasks] = {}
    for group in finished:
        found.setdefault(group.label, {}).setdefault(group.task, []).append(group)
    tasks = max((sorted(own) for own in found.values()), key=len, default=[])
    methods, notes = {}, []
    for label, own in found.items():
        lacking = [task for task in tasks if task not in own]
        if lacking:
            notes.append(
                f"{label} is not in the aggregates: it has no finished seed on {listed(lacking)}."
            )
        else:
            methods[label] = {task: own[task] for task in tasks}
    return methods, notes


def listed(words: Sequence[str]) -> str:
    """Join words as in a sentence: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def aggregate(methods: dict[str, Tasks], scale: Normalisation) -> Aggregates:
    """Compute the scores of methods that have the same tasks; raise if these are too few."""
    tasks = list(next(iter(methods.values()), {}))
    if len(tasks) < 2:
        raise UserError("they need at least two tasks with finished runs")
    if len(methods) < 2:
        raise UserError("scores are relative to the methods shown, and only one has all tasks")
    scores = {label: _scores(own, scale, 1.0) for label, own in methods.items()}
    runs = np.concatenate([task for final in scores.values() for task in final])
    thresholds = np.linspace(min(0.0, runs.min()), max(1.0, runs.max()), PROFILE_POINTS)
    found = []
    for (label, own), final in zip(methods.items(), scores.values(), strict=True):
        one = own[tasks[0]][0]
        found.append(
            MethodScores(
                label, one.agent, one.colour,
                seeds=[task.size for task in final],
                progress=[_mean_score(own, scale, progress) for progress in paper.PROGRESS],
                aggregates={name: estimate(of, final) for name, of in AGGREGATES.items()},
                profile=estimate(lambda scores: statistics.profile(scores, thresholds), final),
                curve=_curve(own, scale),
            )
        )  # fmt: skip
    chance = statistics.probability_of_improvement
    improvement = [
        Improvement(a, b, estimate(chance, scores[a], scores[b]))
        for a, b in permutations(scores if len(scores) <= MAX_PAIRED else (), 2)
    ]
    return Aggregates(scale, tasks, found, thresholds, improvement)


def _scores(own: Tasks, scale: Normalisation, progress: float) -> list[np.ndarray]:
    """Return a method's scores per task at a fraction of training."""
    return [
        scale.score(task, np.concatenate([final_returns(group, progress) for group in groups]))
        for task, groups in own.items()
    ]


def _mean_score(own: Tasks, scale: Normalisation, progress: float) -> Estimate:
    """Return the mean score at a fraction of training; nan if a task has no evaluation by then."""
    scores = _scores(own, scale, progress)
    if not all(task.size for task in scores):
        return Estimate(*np.full(3, np.nan))
    return estimate(statistics.mean, scores)


def _curve(own: Tasks, scale: Normalisation) -> ScoreCurve | None:
    span = shared_range([group for groups in own.values() for group in groups], "progress")
    if span is None:
        return None
    grid = np.linspace(*span, CURVE_POINTS)
    curves = [
        scale.score(task, np.concatenate([on_grid(group, "progress", grid) for group in groups]))
        for task, groups in own.items()
    ]
    mean = estimate_curve(curves, statistics.mean)
    return ScoreCurve(grid, mean, estimate_curve(curves, statistics.iqm))
