"""Weights of a saved model, with the spaces of its task.  A run folder has these too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.errors import UserError
from langevinrl.storage import checkpoint
from langevinrl.storage.checkpoint import CheckpointData
from langevinrl.storage.folder import STATE, RunFolder
from langevinrl.storage.metadata import is_count
from langevinrl.types import PyTree


def write_weights(
    folder: RunFolder,
    state: PyTree,
    iteration: int,
    *,
    config: dict[str, Any],
    spaces: dict[str, Any],
    run: str,
) -> None:
    """Write weights without replay to a new folder, or over a saved model.

    run: the folder of the run the weights are of, where learning can go on
    """
    if folder.path.suffix == ".zip":
        raise UserError(f"a model is saved as a folder: write save({str(folder.path)[:-4]!r})")
    if folder.path.exists() and not folder.path.is_dir():
        raise UserError(f"{folder} is a file; a model is saved as a folder")
    if folder.kind() in ("run", "sweep") or folder.evaluations.exists():
        raise UserError(
            f"{folder} already holds a run or a sweep, which saving would destroy; a run folder is "
            "its own saved model: Model.load reads it"
        )
    folder.path.mkdir(parents=True, exist_ok=True)
    metadata = {"iteration": iteration, "spaces": spaces, "run": str(Path(run).absolute())}
    arrays = {STATE: checkpoint.name_leaves(state)}
    checkpoint.save(folder, iteration, CheckpointData(arrays, metadata, config))


def read_weights(folder: RunFolder) -> CheckpointData:
    """Return the newest weights of a run folder or a saved model."""
    saved = checkpoint.load(folder, groups=[STATE])
    done = saved.metadata.get("iteration")
    if not is_count(done):
        raise UserError(f"the checkpoint in {folder} says that {done!r} iterations were done")
    return saved


def find_run(folder: RunFolder, state: PyTree, metadata: dict[str, Any]) -> RunFolder:
    """Return the run folder where a model's learning can go on exactly.

    A saved model has no replay: its run is found by the path it recorded, and must still have the
    same weights.
    """
    if folder.kind() == "run":
        return folder
    problem = f"{folder} holds weights without replay, so learning cannot go on from it exactly"
    if "run" not in metadata:
        raise UserError(f"{problem}: its replay was dropped when its run was done")
    run = RunFolder(metadata["run"])
    if run.kind() != "run" or not run.saved_checkpoints():
        raise UserError(f"{problem}, and the run it was saved from is not in {run} any more")
    if run.saved_iteration() != metadata["iteration"]:
        raise UserError(
            f"{problem}: it is of iteration {metadata['iteration']}, and its run in {run} is at "
            f"{run.saved_iteration()}. Model.load({str(run.path)!r}) goes on from there"
        )
    theirs = checkpoint.load(run, [STATE]).arrays[STATE]
    ours = checkpoint.name_leaves(state)
    same = theirs.keys() == ours.keys() and all(np.array_equal(ours[k], theirs[k]) for k in ours)
    if not same:
        raise UserError(f"{problem}, and {run} now holds another run")
    return run
