"""Numbers that are not finite, found where they arise: in an update, in actions, in the state.

What enters from an environment is judged there (`envs.vector`).  A run stops at the first such
number, with its last checkpoint as it was and a small file that describes the batch behind it.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from langevinrl.errors import UserError, field
from langevinrl.storage.folder import RunFolder
from langevinrl.types import Array, Batch

MOST_ROWS = 1_000  # of a batch that a report lists


class BadNumberError(UserError):
    """A number that learning cannot go on with; `report` is what is known of it, for a file."""

    def __init__(self, message: str, report: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report


class LastUpdate(NamedTuple):
    """What the loop remembers of an update until it has been computed."""

    iteration: int
    metrics: dict[str, Array]  # (S,) each
    batch: Batch  # (S, B, ...), on the host


def require_finite_update(update: LastUpdate, seeds: list[int]) -> dict[str, np.ndarray]:
    """The metrics of an update on the host, all finite; else the batch goes into a report."""
    values = {name: np.asarray(value) for name, value in update.metrics.items()}
    for name, value in values.items():
        if not np.isfinite(value).all():
            s = int(np.flatnonzero(~np.isfinite(value))[0])
            raise BadNumberError(
                f"{name} of seed {seeds[s]} became {value[s]} at iteration {update.iteration}. "
                f"{_advice()}",
                _report(update, values, s, seeds[s]),
            )
    return values


def require_finite_actions(action: np.ndarray, iteration: int, seeds: list[int]) -> None:
    """Refuses what weights that are not finite draw."""
    if not np.isfinite(action).all():
        s = int(np.argwhere(~np.isfinite(action))[0][0])
        raise BadNumberError(
            f"the weights of seed {seeds[s]} draw actions that are not finite after iteration "
            f"{iteration}. {_advice()}"
        )


def require_finite_state(arrays: dict[str, np.ndarray], iteration: int, seeds: list[int]) -> None:
    """Refuses to save weights, target copies or an optimiser's moments that are not finite."""
    for name, array in arrays.items():
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            s = int(np.argwhere(~np.isfinite(array))[0][0])
            raise BadNumberError(
                f"{name} of seed {seeds[s]} is not finite at iteration {iteration}, so nothing is "
                f"saved. {_advice()}"
            )


def _advice() -> str:
    return (
        "Very large rewards or observations do this, and so does a learning rate or a "
        f"{field('reward_scale')} too large for them."
    )


def write_report(folder: RunFolder, error: BadNumberError) -> str:
    """A small file beside the logs, if there is something to describe; a sentence that names it."""
    if error.report is None:
        return ""
    try:
        folder.bad_numbers.write_text(json.dumps(error.report, indent=1) + "\n")
    except OSError:  # the message matters more
        return ""
    return f" {folder.bad_numbers} describes the batch."


def _report(
    update: LastUpdate, metrics: dict[str, np.ndarray], seed_index: int, seed: int
) -> dict[str, Any]:
    """What one seed's update was made of: the extremes and the mean of each column of its batch."""
    columns = update.batch._asdict()
    columns |= columns.pop("extra")
    rows = np.asarray(columns.pop("row"))[seed_index]
    return {
        "iteration": update.iteration,
        "seed": seed,
        "metrics": {name: str(value[seed_index]) for name, value in metrics.items()},
        "batch": {name: _describe(np.asarray(c)[seed_index]) for name, c in columns.items()},
        "rows": rows[:MOST_ROWS].tolist(),
    }


def _describe(column: np.ndarray) -> dict[str, Any]:
    finite = column[np.isfinite(column)].astype(np.float64)
    found: dict[str, Any] = {"shape": list(column.shape), "not_finite": column.size - finite.size}
    if finite.size:
        found |= {"min": finite.min(), "max": finite.max(), "mean": finite.mean()}
    return found
