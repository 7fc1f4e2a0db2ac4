"""Selection of the methods that can be compared over all tasks, and notes on the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from langevinrl.analysis.grids import final_returns, planned_iterations
from langevinrl.analysis.groups import Group, counted_fields


@dataclass(frozen=True)
class Comparison:
    """Methods with a finished seed on every task, by label, in order."""

    tasks: list[str]
    methods: dict[str, list[list[Group]]]  # groups per task: several if versions are mixed
    notes: list[str]  # what is left out or uneven, a sentence each


def compare(groups: Sequence[Group]) -> Comparison:
    """Select the methods with a finished seed on every task.

    The tasks are those of the method with most of them.  A method that lacks one is left out, and
    so are seeds that did not finish; the notes name them.
    """
    notes = _unfinished(groups) + _lengths(groups) + _settings_per_task(groups)
    found: dict[str, dict[str, list[Group]]] = {}
    for group in groups:
        if final_returns(group).size:
            found.setdefault(group.label, {}).setdefault(group.task, []).append(group)
    tasks = max((sorted(own) for own in found.values()), key=len, default=[])
    methods = {}
    for label, own in found.items():
        lacking = [task for task in tasks if task not in own]
        if lacking:
            notes.append(
                f"{label} is not in the aggregates: it has no finished seed on {_join(lacking)}."
            )
        else:
            methods[label] = [own[task] for task in tasks]
    return Comparison(tasks, methods, notes)


def _unfinished(groups: Sequence[Group]) -> list[str]:
    notes = []
    for group in groups:
        total, finished = len(group.series), len(final_returns(group))
        if finished < total:
            notes.append(
                f"{group.label} on {group.env}: {total - finished} of {total} seeds did not finish "
                "and are left out of final returns and aggregates."
            )
    return notes


def _lengths(groups: Sequence[Group]) -> list[str]:
    """Name tasks with runs of different lengths: the same progress is not the same training."""
    notes = []
    for task in dict.fromkeys(group.task for group in groups):
        lengths = {planned_iterations(r) for g in groups if g.task == task for r in g.runs}
        if len(lengths) > 1:
            numbers = _join([f"{length:,}" for length in sorted(lengths)])
            notes.append(
                f"Runs on {task} are {numbers} iterations long; progress is relative to each run."
            )
    return notes


def _settings_per_task(groups: Sequence[Group]) -> list[str]:
    """Name methods whose settings differ between tasks, which a mean over tasks would hide."""
    notes = []
    for label in dict.fromkeys(group.label for group in groups):
        runs = [counted_fields(group.runs[0]) for group in groups if group.label == label]
        names = dict.fromkeys(name for run in runs for name in run if name != "capacity")
        differ = [n for n in names if len({json.dumps(run[n]) for run in runs if n in run}) > 1]
        if differ:
            notes.append(f"{label} has different settings on different tasks: {_join(differ)}.")
    return notes


def _join(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
