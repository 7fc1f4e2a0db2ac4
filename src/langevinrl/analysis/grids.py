"""Curves interpolated on a common axis: progress, iterations, environment steps or hours."""

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
    """Return where a seed was evaluated on an axis; nan if not recorded.  (P,)"""
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
    """Return a run's planned length; without a config, the length it reached."""
    reached = max((int(one.iterations[-1]) for one in record.series), default=0)
    return int(record.config.get("iterations") or reached)


def seeds_of(group: Group, x: Axis) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return every seed's places on an axis and its returns, where the place is known."""
    found = []
    for record in group.runs:
        for one in record.series:
            places = x_values(record, one, x)
            known = np.isfinite(places)
            if known.any():
                found.append((places[known], one.returns[known]))
    return found


def on_grid(group: Group, x: Axis, grid: np.ndarray) -> np.ndarray:
    """Interpolate the returns of every seed linearly at the grid's points; (seeds, P).

    nan before a seed's first evaluation and after its last: nothing is extrapolated.
    """
    rows = [np.interp(grid, *seed, left=np.nan, right=np.nan) for seed in seeds_of(group, x)]
    return np.array(rows).reshape(len(rows), len(grid))


def shared_range(groups: Sequence[Group], x: Axis) -> tuple[float, float] | None:
    """Return the range that all seeds cover, or None."""
    found = [seeds_of(group, x) for group in groups]
    if not all(found):
        return None
    seeds = [places for some in found for places, _ in some]
    start, end = max(p[0] for p in seeds), min(p[-1] for p in seeds)
    return (float(start), float(end)) if start <= end else None


def own_grid(group: Group, x: Axis) -> np.ndarray:
    """Return the points of a group's curve: evaluations of any seed, where all seeds have values.

    Hours differ between seeds and would give a point per seed and evaluation, so they get as many
    evenly spaced points as one seed has.
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
    """Return a group's points and the mean over its seeds there."""
    grid = own_grid(group, x)
    return grid, on_grid(group, x, grid).mean(axis=0)


def final_returns(group: Group, progress: float = 1.0) -> np.ndarray:
    """Return returns at a fraction of training, of the seeds that reached it.  (seeds,)"""
    seeds = seeds_of(group, "progress")
    return np.array([np.interp(progress, p, r) for p, r in seeds if p[0] <= progress <= p[-1]])
