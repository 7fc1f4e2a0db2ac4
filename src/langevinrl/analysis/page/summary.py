"""What is computed over all tasks, for the page: scores x 100, with intervals where seeds allow.

Each part is its numbers, or {"absent": a sentence that says why it is not there}.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from langevinrl.analysis import paper
from langevinrl.analysis.comparison import Comparison
from langevinrl.analysis.groups import Group
from langevinrl.analysis.normalise import WORDS, Kind
from langevinrl.analysis.page.rounding import rounded
from langevinrl.analysis.report_files import comparison_of
from langevinrl.analysis.statistics import (
    AGGREGATES,
    Estimate,
    estimate,
    mean,
    probability_of_improvement,
    profile,
)

THRESHOLDS = np.linspace(0, 1, 51)
MOST_PAIRED = 24  # methods whose pairs still fit a page
NAMES = {
    "mean": "Mean",
    "median": "Median",
    "IQM": "Interquartile mean",
    "optimality gap": "Optimality gap",
}


def summarise(
    groups: Sequence[Group], kind: Kind = "min-max", mix_versions: bool = False
) -> dict[str, Any]:
    """Curve, table, metrics, profiles and pairs of the methods that have every task."""
    comparison, notes = comparison_of(groups, kind, mix_versions)
    if comparison is None:
        return {"absent": notes[-1]}  # the others say who was left out before that
    labels = list(dict.fromkeys(group.label for group in groups))
    places = {label: labels.index(label) for label in comparison.methods}
    return {
        "note": (
            f"{WORDS[kind]} Scores are shown × 100. Bands and intervals are 95 % bootstrap "
            "intervals over seeds within tasks; all seeds count here, whichever are chosen."
        ),
        "notes": notes,
        "scale": [
            {"task": task, "low": _one(low), "high": _one(high)}
            for task, (low, high) in comparison.normalisation.bounds.items()
            if task in comparison.tasks
        ],
        "curve": _curve(comparison, places),
        "table": _table(comparison, places),
        "metrics": _metrics(comparison, places),
        "profiles": _profiles(comparison, places),
        "improvement": _improvement(comparison, places),
    }


def _curve(comparison: Comparison, places: dict[str, int]) -> dict[str, Any]:
    rows = []
    for label, place in places.items():
        found = comparison.curve(label, "progress")
        if found is not None:
            progress, scores = found
            rows.append({"method": place, "xs": rounded(progress, 4)} | _scored(scores))
    return {"rows": rows}


def _table(comparison: Comparison, places: dict[str, int]) -> dict[str, Any]:
    """The paper's table: a mean over tasks at five shares of training."""
    rows, printed = [], {}
    for label, place in places.items():
        means = [_at(comparison, label, share) for share in paper.PROGRESS]
        low, high = means[-1][1:]
        values = [float(found.value) for found in means]
        rows.append(
            {"method": place, "values": rounded(values, 4), "low": _one(low), "high": _one(high)}
        )
        agent = comparison.agent(label)
        if agent in paper.NORMALISED:
            theirs = {"values": paper.NORMALISED[agent], "spread": paper.PLUS_MINUS[agent]}
            printed[str(place)] = theirs
    nine = set(comparison.tasks) == set(paper.TASKS)
    caution = "" if nine else ", and its nine tasks are not those here"
    return {
        "progress": paper.PROGRESS,
        "rows": rows,
        "paper": printed,
        "note": (
            "Mean over tasks × 100. The last column belongs to the one before it: an interval "
            "here, the ± printed in the paper. The paper does not say how it normalises, so its "
            f"rows show the order of methods, not numbers to be met{caution}."
        ),
    }


def _at(comparison: Comparison, label: str, share: float) -> Estimate:
    """The mean score x 100 at a share of training; nan if a task was not evaluated so early."""
    scores = [100 * task for task in comparison.scores(label, share)]
    if not all(task.size for task in scores):
        return Estimate(*(np.array(np.nan) for _ in range(3)))
    return estimate(mean, scores)


def _metrics(comparison: Comparison, places: dict[str, int]) -> dict[str, Any]:
    found = []
    for name, statistic in AGGREGATES.items():
        rows = []
        for label, place in places.items():
            value, low, high = (
                _one(100 * x) for x in estimate(statistic, comparison.scores(label))
            )
            rows.append({"method": place, "value": value, "low": low, "high": high})
        found.append({"name": NAMES.get(name, name), "rows": rows})
    return {
        "list": found,
        "note": (
            "Scores at the end of training. The interquartile mean leaves out the best and the "
            "worst quarter of all runs; the optimality gap is how far runs stay below 100, so "
            f"there less is better.{_without_intervals(comparison)}"
        ),
    }


def _profiles(comparison: Comparison, places: dict[str, int]) -> dict[str, Any]:
    rows = []
    for label, place in places.items():
        share = estimate(lambda scores: profile(scores, THRESHOLDS), comparison.scores(label))
        low, high = (rounded(x, 3) for x in share[1:])
        rows.append({"method": place, "share": rounded(share.value, 3), "low": low, "high": high})
    return {
        "scores": rounded(100 * THRESHOLDS, 4),
        "rows": rows,
        "note": (
            "The share of runs that end above a score, mean over tasks: a curve above another "
            "means more runs at every score; where they cross, the methods trade places."
            f"{_without_intervals(comparison)}"
        ),
    }


def _improvement(comparison: Comparison, places: dict[str, int]) -> dict[str, Any]:
    if len(places) > MOST_PAIRED:
        return {"absent": f"{len(places)} methods are too many to compare pair by pair."}
    rows = []
    for one, other in combinations(places, 2):
        scores = comparison.scores(one), comparison.scores(other)
        found = estimate(probability_of_improvement, *scores)
        p, low, high = (float(x) for x in found)
        rows.append(_pair(places[one], places[other], p, low, high))
        rows.append(_pair(places[other], places[one], 1 - p, 1 - high, 1 - low))
    return {
        "rows": rows,
        "note": (
            "How often, in per cent, a run of the method in the row ends above one of the method "
            "in the column, mean over tasks. 50 is no difference; bold where the 95 % interval "
            "leaves 50 out."
        ),
    }


def _pair(a: int, b: int, p: float, low: float, high: float) -> dict[str, Any]:
    return {"a": a, "b": b, "p": _one(p), "low": _one(low), "high": _one(high)}


def _without_intervals(comparison: Comparison) -> str:
    single = any(task.size < 2 for label in comparison.methods for task in comparison.scores(label))
    return " Where a task has one seed only there is no interval." if single else ""


def _scored(scores: Estimate) -> dict[str, Any]:
    names = ("mean", "low", "high")
    return {name: rounded(100 * x, 4) for name, x in zip(names, scores, strict=True)}


def _one(value: Any) -> float | int | None:
    return rounded([float(value)], 4)[0]
