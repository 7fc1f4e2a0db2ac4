"""Summary of a collection of runs: every number that the page, tables and figures show.

Each number is computed here, once.  The page, the tables and the figures only format it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from langevinrl.analysis import paper
from langevinrl.analysis.comparison import Comparison, compare
from langevinrl.analysis.grids import final_returns, on_grid, shared_range
from langevinrl.analysis.groups import Group, group_runs
from langevinrl.analysis.normalise import Kind, Normalisation, normalise, require_one_version
from langevinrl.analysis.records import RunRecord
from langevinrl.analysis.statistics import (
    AGGREGATES,
    Estimate,
    estimate,
    estimate_curve,
    iqm,
    mean,
    probability_of_improvement,
    profile,
    standard_deviation,
)
from langevinrl.errors import UserError

CURVE_POINTS, PROFILE_POINTS = 40, 101
MAX_PAIRED = 24  # methods; more are too many to compare pair by pair


@dataclass(frozen=True)
class FinalReturn:
    """Returns of a curve's finished seeds at the end of training."""

    group: Group
    returns: np.ndarray  # (seeds,)
    mean: Estimate
    deviation: float  # sample standard deviation; nan for one seed


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


@dataclass(frozen=True)
class Summary:
    """A collection of runs with all its statistics."""

    records: list[RunRecord]
    groups: list[Group]
    finals: list[FinalReturn]  # one per group with a finished seed
    aggregates: Aggregates | None
    no_aggregates: str  # the reason if there are none
    notes: list[str]  # what is left out or uneven, a sentence each


@np.errstate(invalid="ignore", over="ignore")  # returns of a diverged run may be infinite
def summarise(
    records: Sequence[RunRecord], normalisation: Kind = "min-max", mix_versions: bool = False
) -> Summary:
    """Compute all statistics of some runs.

    summarise(find_runs(["runs"])).aggregates
    """
    groups = group_runs(records)
    if not mix_versions:
        require_one_version(groups)
    finals = [_final_return(group) for group in groups if final_returns(group).size]
    notes = _check_notes(records)
    aggregates, reason = None, ""
    try:
        scale = normalise(groups, normalisation)
        found = compare(groups)
        notes += found.notes
        if len(found.tasks) < 2:
            reason = "they need at least two tasks with finished runs"
        elif len(found.methods) < 2:
            reason = "scores are relative to the methods shown, and only one has all tasks"
        else:
            aggregates = _aggregate(found, scale)
    except UserError as error:
        reason = str(error)
    if reason:
        reason = f"There are no aggregates over tasks: {reason}."
        notes.append(reason)
    return Summary(list(records), groups, finals, aggregates, reason, notes)


def _check_notes(records: Sequence[RunRecord]) -> list[str]:
    """Name runs that cannot be read, and runs whose logs changed after they were written."""
    unreadable = [record.error for record in records if record.status == "unreadable"]
    changed = [
        f"{record.folder}: {' and '.join(record.changed_logs)}"
        for record in records
        if record.changed_logs
    ]
    return [f"A run is left out: {error}." for error in unreadable] + [
        f"A log is not what the run wrote, so its numbers may be wrong. {log}." for log in changed
    ]


def _final_return(group: Group) -> FinalReturn:
    returns = final_returns(group)
    deviation = standard_deviation(returns) if returns.size > 1 else float("nan")
    return FinalReturn(group, returns, estimate(mean, [returns]), deviation)


def _aggregate(found: Comparison, scale: Normalisation) -> Aggregates:
    scores = {label: _scores(found, scale, label) for label in found.methods}
    runs = np.concatenate([task for tasks in scores.values() for task in tasks])
    thresholds = np.linspace(min(0.0, runs.min()), max(1.0, runs.max()), PROFILE_POINTS)
    methods = [
        MethodScores(
            label,
            agent=found.methods[label][0][0].agent,
            colour=found.methods[label][0][0].colour,
            seeds=[task.size for task in final],
            progress=[_mean_at(found, scale, label, progress) for progress in paper.PROGRESS],
            aggregates={name: estimate(of, final) for name, of in AGGREGATES.items()},
            profile=estimate(lambda scores: profile(scores, thresholds), final),
            curve=_curve(found, scale, label),
        )
        for label, final in scores.items()
    ]
    pairs = permutations(scores if len(scores) <= MAX_PAIRED else (), 2)
    improvement = [
        Improvement(a, b, estimate(probability_of_improvement, scores[a], scores[b]))
        for a, b in pairs
    ]
    return Aggregates(scale, found.tasks, methods, thresholds, improvement)


def _scores(
    found: Comparison, scale: Normalisation, label: str, progress: float = 1.0
) -> list[np.ndarray]:
    """Return a method's scores per task at a fraction of training."""
    return [
        scale.score(task, np.concatenate([final_returns(group, progress) for group in groups]))
        for task, groups in zip(found.tasks, found.methods[label], strict=True)
    ]


def _mean_at(found: Comparison, scale: Normalisation, label: str, progress: float) -> Estimate:
    """Return the mean score at a fraction of training; nan if a task has no evaluation by then."""
    scores = _scores(found, scale, label, progress)
    if not all(task.size for task in scores):
        return Estimate(*(np.array(np.nan) for _ in range(3)))
    return estimate(mean, scores)


def _curve(found: Comparison, scale: Normalisation, label: str) -> ScoreCurve | None:
    methods = found.methods[label]
    span = shared_range([group for groups in methods for group in groups], "progress")
    if span is None:
        return None
    grid = np.linspace(*span, CURVE_POINTS)
    curves = [
        scale.score(task, np.concatenate([on_grid(group, "progress", grid) for group in groups]))
        for task, groups in zip(found.tasks, methods, strict=True)
    ]
    return ScoreCurve(grid, estimate_curve(curves, mean), estimate_curve(curves, iqm))
