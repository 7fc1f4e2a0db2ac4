"""Summary of a collection of runs: every number that the page, tables and figures show.

Each number is computed here, once.  The page, the tables and the figures only format it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from langevinrl.analysis.aggregates import Aggregates, aggregate, compare, listed
from langevinrl.analysis.grids import final_returns, planned_iterations
from langevinrl.analysis.groups import Group, by_task, counted_fields, differing, group_runs
from langevinrl.analysis.normalise import Kind, normalise, require_one_version
from langevinrl.analysis.records import RunRecord
from langevinrl.analysis.statistics import Estimate, estimate, mean, standard_deviation
from langevinrl.errors import UserError


@dataclass(frozen=True)
class FinalReturn:
    """Returns of a curve's finished seeds at the end of training."""

    group: Group
    returns: np.ndarray  # (seeds,)
    mean: Estimate
    deviation: float  # sample standard deviation; nan for one seed


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
    finals = []
    for group in groups:
        returns = final_returns(group)
        if returns.size:
            deviation = standard_deviation(returns) if returns.size > 1 else float("nan")
            finals.append(FinalReturn(group, returns, estimate(mean, [returns]), deviation))
    methods, left_out = compare([one.group for one in finals])
    notes = _run_notes(records) + _curve_notes(groups) + left_out
    aggregates, reason = None, ""
    try:
        aggregates = aggregate(methods, normalise(groups, normalisation))
    except UserError as error:
        reason = f"There are no aggregates over tasks: {error}."
        notes.append(reason)
    return Summary(list(records), groups, finals, aggregates, reason, notes)


def _run_notes(records: Sequence[RunRecord]) -> list[str]:
    """Name runs that cannot be read, and runs whose logs changed after they were written."""
    unreadable = [r.error for r in records if r.status == "unreadable"]
    changed = [f"{r.folder}: {' and '.join(r.changed_logs)}" for r in records if r.changed_logs]
    return [f"A run is left out: {error}." for error in unreadable] + [
        f"A log is not what the run wrote, so its numbers may be wrong. {log}." for log in changed
    ]


def _curve_notes(groups: Sequence[Group]) -> list[str]:
    """Name unfinished seeds, and differences that a mean over tasks would hide."""
    notes = []
    for group in groups:
        total, finished = len(group.series), len(final_returns(group))
        if finished < total:
            notes.append(
                f"{group.label} on {group.env}: {total - finished} of {total} seeds did not finish "
                "and are left out of final returns and aggregates."
            )
    for task, some in by_task(groups).items():
        lengths = {planned_iterations(run) for group in some for run in group.runs}
        if len(lengths) > 1:
            numbers = listed([f"{length:,}" for length in sorted(lengths)])
            notes.append(
                f"Runs on {task} are {numbers} iterations long; progress is relative to each run."
            )
    for label in dict.fromkeys(group.label for group in groups):
        runs = [counted_fields(group.runs[0]) for group in groups if group.label == label]
        fields = [name for name in differing(runs) if name != "capacity"]
        if fields:
            notes.append(f"{label} has different settings on different tasks: {listed(fields)}.")
    return notes
