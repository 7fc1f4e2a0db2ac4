"""Checks for NaN and infinity in updates, actions and state.

`envs.vector` checks what environments return.  A run stops at the first such number, keeps its
last checkpoint, and writes a small file that describes the batch.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from langevinrl.errors import UserError, field
from langevinrl.storage.files import write_text
from langevinrl.storage.folder import RunFolder
from langevinrl.types import Array, Batch


class BadNumberError(UserError):
    """Training produced NaN or infinity; `report` describes the update, for a file."""

    def __init__(self, message: str, report: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report


class LastUpdate(NamedTuple):
    """Metrics and batch of an update, kept until its result is checked."""

    iteration: int
    metrics: dict[str, Array]  # (S,) each
    batch: Batch  # (S, B, ...), on the host


def require_finite_update(update: LastUpdate, seeds: list[int]) -> dict[str, np.ndarray]:
    """Return the metrics of an update; raise, with a report on the batch, if one is not finite."""
    values = {name: np.asarray(value) for name, value in update.metrics.items()}
    for name, value in values.items():
        if (s := _bad_seed(value)) is not None:
            raise BadNumberError(
                f"{name} of seed {seeds[s]} became {value[s]} at iteration {update.iteration}. "
                f"{_advice()}",
                _report(update, values, s, seeds[s]),
            )
    return values


def require_finite_actions(action: np.ndarray, iteration: int, seeds: list[int]) -> None:
    """Refuse actions that are not finite."""
    if (s := _bad_seed(action)) is not None:
        raise BadNumberError(
            f"the weights of seed {seeds[s]} draw actions that are not finite after iteration "
            f"{iteration}. {_advice()}"
        )


def require_finite_state(arrays: dict[str, np.ndarray], iteration: int, seeds: list[int]) -> None:
    """Refuse to save weights, targets or optimiser state that are not finite."""
    for name, array in arrays.items():
        if (s := _bad_seed(array)) is not None:
            raise BadNumberError(
                f"{name} of seed {seeds[s]} is not finite at iteration {iteration}, so nothing is "
                f"saved. {_advice()}"
            )


def _bad_seed(array: np.ndarray) -> int | None:
    """Return the first index of an array (S, ...) with a number that is not finite, if any."""
    if np.isfinite(array).all():
        return None
    return int(np.argwhere(~np.isfinite(array))[0][0])


def _advice() -> str:
    return (
        "Possible causes: very large rewards or observations, or a learning rate or "
        f"{field('reward_scale')} that is too large for them."
    )


def write_report(folder: RunFolder, error: BadNumberError) -> str:
    """Write the error's report, if any, beside the logs and return a sentence that names it."""
    if error.report is None:
        return ""
    try:
        write_text(folder.bad_numbers, json.dumps(error.report, indent=1) + "\n")
    except UserError:  # the error itself matters more
        return ""
    return f" {folder.bad_numbers} describes the batch."


def _report(
    update: LastUpdate, metrics: dict[str, np.ndarray], seed_index: int, seed: int
) -> dict[str, Any]:
    """Describe one seed's update: its metrics, and range and mean of each column of its batch."""
    columns = update.batch._asdict()
    columns |= columns.pop("extra")
    del columns["row"]
    return {
        "iteration": update.iteration,
        "seed": seed,
        "metrics": {name: str(value[seed_index]) for name, value in metrics.items()},
        "batch": {name: _describe(np.asarray(c)[seed_index]) for name, c in columns.items()},
    }


def _describe(column: np.ndarray) -> dict[str, Any]:
    finite = column[np.isfinite(column)].astype(np.float64)
    found: dict[str, Any] = {"shape": list(column.shape), "not_finite": column.size - finite.size}
    if finite.size:
        found |= {"min": finite.min(), "max": finite.max(), "mean": finite.mean()}
    return found
