"""Run state <-> files: arrays in safetensors, the rest in JSON, never pickle."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from langevinrl.errors import UserError
from langevinrl.runs.folder import (
    ARRAYS,
    ENVS,
    METADATA,
    REPLAY,
    RunFolder,
    checkpoint_name,
    draft_of,
    is_our_checkpoint,
    spare_of,
)
from langevinrl.types import PyTree


class Checkpoint(NamedTuple):
    """Groups of named arrays, one file each, and what JSON can hold."""

    arrays: dict[str, dict[str, np.ndarray]]
    metadata: dict[str, Any]


def save(folder: RunFolder, iteration: int, checkpoint: Checkpoint) -> Path:
    """Write `checkpoints/<iteration>` whole or not at all, then drop the older ones.

    Only folders of our own naming are ever removed: what else lies there is someone's.
    """
    place = folder.checkpoints
    place.mkdir(parents=True, exist_ok=True)
    for stale in place.glob(".*.partial"):  # of a crash; first, as the disk may be full
        if is_our_checkpoint(stale):
            shutil.rmtree(stale)
    final = place / checkpoint_name(iteration)
    draft = draft_of(final)
    draft.mkdir()
    (draft / METADATA).write_text(json.dumps(checkpoint.metadata))
    _sync(draft / METADATA)
    for group, arrays in checkpoint.arrays.items():
        path = draft / f"{group}{ARRAYS}"
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, path)
        shutil.copymode(draft / METADATA, path)  # which the library makes for its owner only
        _sync(path)
    _sync(draft)
    if final.exists():  # stays loadable under another name until its successor has taken its own
        spare = spare_of(final)
        shutil.rmtree(spare, ignore_errors=True)
        final.rename(spare)
    draft.rename(final)
    _sync(place)
    for path in place.iterdir():
        if path != final and is_our_checkpoint(path):
            shutil.rmtree(path, ignore_errors=True)
    return final


def load(folder: RunFolder, groups: list[str] | None = None) -> Checkpoint:
    """The newest whole checkpoint of a run; only some groups of arrays if asked."""
    saved = folder.saved_checkpoints()
    if not saved:
        raise UserError(
            f"no checkpoint in {folder.checkpoints}: the run was stopped before its first, "
            "or they were not copied along"
        )
    newest = saved[-1]
    names = sorted(path.stem for path in newest.glob(f"*{ARRAYS}")) if groups is None else groups
    missing = [name for name in names if not (newest / f"{name}{ARRAYS}").exists()]
    if missing:
        raise UserError(
            f"checkpoint {newest} lacks {', '.join(missing)}: it is a saved model, which can act "
            "but not go on learning, or parts of it were not copied along"
        )
    try:
        metadata = json.loads((newest / METADATA).read_text())
        arrays = {name: load_file(newest / f"{name}{ARRAYS}") for name in names}
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"checkpoint {newest} is damaged: {error}") from error
    return Checkpoint(arrays, metadata)


def keep_weights_only(folder: RunFolder) -> None:
    """Drop what only going on needs, the replay above all: the run becomes a saved model."""
    for checkpoint in folder.saved_checkpoints():
        for group in (REPLAY, ENVS):
            (checkpoint / f"{group}{ARRAYS}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until the disk has it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def name_leaves(tree: PyTree) -> dict[str, np.ndarray]:
    """A pytree as named arrays on the host, copied."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.array(leaf) for path, leaf in leaves}


def fill_leaves(template: PyTree, arrays: dict[str, np.ndarray]) -> PyTree:
    """The pytree of `template`'s structure from its named arrays."""

    def pick(path: Any, leaf: Any) -> jax.Array:
        name = jax.tree_util.keystr(path)
        if name not in arrays:
            raise UserError(f"checkpoint lacks {name}: it was written by another agent or version")
        array = arrays[name]
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise UserError(
                f"checkpoint's {name} is {array.dtype}{array.shape}; "
                f"expected {leaf.dtype}{leaf.shape}"
            )
        return jnp.array(array)  # a copy: update donates its buffers

    return jax.tree_util.tree_map_with_path(pick, template)
