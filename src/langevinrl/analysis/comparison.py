"""Methods side by side on the same tasks: who is compared, on what, and what was left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from langevinrl.analysis.grids import Axis, final_returns, on_grid, planned_iterations, shared_range
from langevinrl.analysis.groups import Group, counted_fields
from langevinrl.analysis.normalise import Normalisation
from langevinrl.analysis.statistics import Estimate, Statistic, estimate_curve, mean


@dataclass(frozen=True)
class Comparison:
    """Methods with finished seeds on every one of the tasks, by label, in order."""

    normalisation: Normalisation
    tasks: list[str]
    methods: dict[str, list[list[Group]]]  # per task the groups: several if versions are mixed
    notes: list[str] = field(default_factory=list)  # who was left out and why, a sentence each

    def scores(self, label: str, progress: float = 1.0) -> list[np.ndarray]:
        """Per task the scores of a method's seeds at a fraction of training."""
        return [
            self.normalisation.score(
                task, np.concatenate([final_returns(group, progress) for group in groups])
            )
            for task, groups in zip(self.tasks, self.methods[label], strict=True)
        ]

    def curve(
        self, label: str, x: Axis, points: int = 40, statistic: Statistic = mean
    ) -> tuple[np.ndarray, Estimate] | None:
        """The aggregate score of a method along an axis, as far as all its seeds have got."""
        groups = [group for task in self.methods[label] for group in task]
        span = shared_range(groups, x)
        if span is None:
            return None
        grid = np.linspace(*span, points)
        curves = []
        for task, some in zip(self.tasks, self.methods[label], strict=True):
            returns = np.concatenate([on_grid(group, x, grid) for group in some])
            curves.append(self.normalisation.score(task, returns))
        return grid, estimate_curve(curves, statistic)

    def colour(self, label: str) -> str:
        return self.methods[label][0][0].colour

    def agent(self, label: str) -> str:
        return self.methods[label][0][0].agent


def compare(
    groups: Sequence[Group], normalisation: Normalisation, progress: float = 1.0
) -> Comparison:
    """Who can be compared at a fraction of training: methods with a seed that far on every task.

    The tasks are those of the method that has most; who lacks one of them is left out, and so are
    seeds that were not evaluated that far.  The notes say so.
    """
    notes = _unfinished(groups, progress) + _lengths(groups) + _tuned(groups)
    found: dict[str, dict[str, list[Group]]] = {}
    for group in groups:
        if final_returns(group, progress).size:
            found.setdefault(group.label, {}).setdefault(group.task, []).append(group)
    most = max((len(own) for own in found.values()), default=0)
    tasks = next((sorted(own) for own in found.values() if len(own) == most), [])
    methods = {}
    for label, own in found.items():
        lacking = [task for task in tasks if task not in own]
        if lacking:
            notes.append(
                f"{label} is not in the aggregates: it has no finished seed on {_listed(lacking)}."
            )
        else:
            methods[label] = [own[task] for task in tasks]
    return Comparison(normalisation, tasks, methods, notes)


def _unfinished(groups: Sequence[Group], progress: float) -> list[str]:
    notes = []
    for group in groups:
        have, reached = len(group.series), len(final_returns(group, progress))
        if reached < have:
            notes.append(
                f"{group.label} on {group.env}: {have - reached} of {have} seeds were not "
                f"evaluated at {progress:.0%} of their training and are left out there."
            )
    return notes


def _lengths(groups: Sequence[Group]) -> list[str]:
    """Runs on one task of different lengths: their progress does not mean the same."""
    notes = []
    for task in dict.fromkeys(group.task for group in groups):
        lengths = {planned_iterations(r) for g in groups if g.task == task for r in g.runs}
        if len(lengths) > 1:
            numbers = _listed([f"{length:,}" for length in sorted(lengths)])
            notes.append(
                f"Runs on {task} are {numbers} iterations long; progress is of each run's own."
            )
    return notes


def _tuned(groups: Sequence[Group]) -> list[str]:
    """Methods with other settings on other tasks, which a mean over tasks would hide."""
    notes = []
    for label in dict.fromkeys(group.label for group in groups):
        runs = [counted_fields(group.runs[0]) for group in groups if group.label == label]
        names = dict.fromkeys(name for run in runs for name in run if name != "capacity")
        differ = [n for n in names if len({json.dumps(run[n]) for run in runs if n in run}) > 1]
        if differ:
            notes.append(f"{label} has other settings on other tasks: {_listed(differ)}.")
    return notes


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
