"""Curves on common axes: progress, iterations, environment steps or hours; never extrapolated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from langevinrl.analysis.evaluations import Series
from langevinrl.analysis.groups import Group
from langevinrl.analysis.records import RunRecord
from langevinrl.errors import UserError, unknown

Axis: TypeAlias = Literal["progress", "iterations", "env_steps", "hours"]
AXIS_LABELS: dict[str, str] = {
    "progress": "training progress",
    "iterations": "iterations",
    "env_steps": "environment steps",
    "hours": "wall-clock hours",
}


def x_values(record: RunRecord, series: Series, x: Axis) -> np.ndarray:
    """Where a seed was evaluated, on an axis; nan where its file does not say.  (P,)"""
    if x not in get_args(Axis):
        raise UserError(unknown("axis", x, get_args(Axis)))
    if x == "hours":
        return series.hours
    if x == "env_steps":
        return np.where(series.env_steps < 0, np.nan, series.env_steps)
    if x == "iterations":
        return series.iterations.astype(float)
    return series.iterations / planned_iterations(record)


def planned_iterations(record: RunRecord) -> int:
    """How long a run is to be; without a config, as long as it got."""
    reached = max((int(one.iterations[-1]) for one in record.series), default=0)
    return int(record.config.get("iterations") or reached)


def seeds_of(group: Group, x: Axis) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of every seed, where it was evaluated and its returns; points without a place left out."""
    found = []
    for record in group.runs:
        for one in record.series:
            places = x_values(record, one, x)
            known = np.isfinite(places)
            if known.any():
                found.append((places[known], one.returns[known]))
    return found


def on_grid(group: Group, x: Axis, grid: np.ndarray) -> np.ndarray:
    """Returns of every seed at the grid's points by linear interpolation; (seeds, P).

    nan before a seed's first evaluation and after its last.
    """
    rows = [np.interp(grid, *seed, left=np.nan, right=np.nan) for seed in seeds_of(group, x)]
    return np.array(rows).reshape(len(rows), len(grid))


def shared_range(groups: Sequence[Group], x: Axis) -> tuple[float, float] | None:
    """From the latest first evaluation to the earliest last one; none if they do not meet."""
    seeds = [places for group in groups for places, _ in seeds_of(group, x)]
    if not seeds or any(not seeds_of(group, x) for group in groups):
        return None
    start, end = max(p[0] for p in seeds), min(p[-1] for p in seeds)
    return (float(start), float(end)) if start <= end else None


def own_grid(group: Group, x: Axis) -> np.ndarray:
    """The points of a group's curve: where some seed was evaluated and every seed has a value.

    If clocks differ, as hours do, that would be a point per seed and evaluation: then as many
    points as a seed has, evenly spread.
    """
    span = shared_range([group], x)
    if span is None:
        return np.empty(0)
    seeds = [places for places, _ in seeds_of(group, x)]
    points = np.unique(np.concatenate(seeds))
    if x == "hours" and len(seeds) > 1:
        return np.linspace(*span, max(map(len, seeds)))
    return points[(points >= span[0]) & (points <= span[1])]


def mean_curve(group: Group, x: Axis = "iterations") -> tuple[np.ndarray, np.ndarray]:
    """A group's points and the mean over its seeds there."""
    grid = own_grid(group, x)
    return grid, on_grid(group, x, grid).mean(axis=0)


def final_returns(group: Group, progress: float = 1.0) -> np.ndarray:
    """Returns at a fraction of training, of the seeds that were evaluated so far.  (seeds,)"""
    values = on_grid(group, "progress", np.array([progress]))[:, 0]
    reached = [places[0] <= progress <= places[-1] for places, _ in seeds_of(group, "progress")]
    return values[np.array(reached, dtype=bool)]
