"""Checkpoints of a run: arrays in safetensors, the rest in JSON, never pickle.

A checkpoint is written to a draft folder and forced to disk before it gets its name.  Its manifest
shows on loading whether any byte has changed.  `load` skips a damaged one, with a warning, and
uses the one before.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.errors import UserError
from langevinrl.storage.arrays import pieces, read_arrays
from langevinrl.storage.files import (
    DiskError,
    reason_of,
    require_inside,
    sync_folder,
    write_new,
    write_text,
)
from langevinrl.storage.folder import (
    ARRAYS,
    ENVS,
    MANIFEST,
    METADATA,
    REPLAY,
    RunFolder,
    checkpoint_name,
    is_our_checkpoint,
)
from langevinrl.storage.manifest import (
    DamagedError,
    Manifest,
    read_manifest,
    read_table,
    require_intact,
)
from langevinrl.types import PyTree

MAPPED = (REPLAY,)  # groups too large to be in memory twice: mapped from disk


class CheckpointData(NamedTuple):
    """Groups of named arrays, one file each, and metadata that JSON can hold."""

    arrays: dict[str, dict[str, np.ndarray]]
    metadata: dict[str, Any]
    config: dict[str, Any] | None = None  # the fields of its run, if known


def save(folder: RunFolder, iteration: int, checkpoint: CheckpointData, *, keep: int = 1) -> Path:
    """Write `checkpoints/<iteration>` whole or not at all, then remove all but the last `keep`.

    Only folders with names of checkpoints are removed: others are the user's.
    """
    place = require_inside(folder.path, folder.checkpoints)
    final = place / checkpoint_name(iteration)
    draft, spare = place / f".{final.name}.partial", final.with_suffix(".old")
    try:
        place.mkdir(exist_ok=True)  # not its parents: a run folder that was removed is an error
        for stale in place.glob(".*.partial"):  # of a crash; removed first, as the disk may be full
            if is_our_checkpoint(stale):
                shutil.rmtree(stale)
        _write(draft, checkpoint)
        if final.exists():  # it stays loadable under another name until the new one has its name
            if spare.exists():
                shutil.rmtree(spare)
            final.rename(spare)
        draft.rename(final)
        sync_folder(place)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)  # frees space, if the disk is full
        reason = f"{reason_of(error)}. {folder.describe_saved()}"
        raise DiskError(f"cannot save in {place}: {reason}") from error
    for path in _superseded(folder, final, keep):
        shutil.rmtree(path, ignore_errors=True)  # tried again after the next save
    return final


def _write(draft: Path, checkpoint: CheckpointData) -> None:
    """Write all files of a checkpoint, the manifest last."""
    draft.mkdir()
    metadata = json.dumps(checkpoint.metadata).encode()
    digests = {METADATA: write_new(draft / METADATA, [metadata])}
    for group, arrays in checkpoint.arrays.items():
        name = f"{group}{ARRAYS}"
        named = {key: np.asarray(array) for key, array in arrays.items()}
        digests[name] = write_new(draft / name, pieces(named))
    config = None if checkpoint.config is None else json.loads(json.dumps(checkpoint.config))
    write_new(draft / MANIFEST, [Manifest(digests, config).to_json()])
    sync_folder(draft)


def _superseded(folder: RunFolder, final: Path, keep: int) -> list[Path]:
    """Return the checkpoints to remove now that `final` is saved: old ones, spares, later ones.

    Later ones were found damaged, or the run would have continued from there.
    """
    saved = folder.saved_checkpoints()
    older = [path for path in saved[: saved.index(final)] if path.stem != final.stem]
    kept = {final, *older[max(0, len(older) - keep + 1) :]}
    ours = [path for path in folder.checkpoints.iterdir() if is_our_checkpoint(path)]
    return [path for path in ours if path not in kept]


def load(folder: RunFolder, groups: list[str] | None = None) -> CheckpointData:
    """Return the newest intact checkpoint of a run, with all groups of arrays or those given.

    Replay arrays are mapped from disk and read-only.  A damaged checkpoint is skipped with a
    warning.
    """
    saved = folder.saved_checkpoints()
    if not saved:
        raise UserError(
            f"no checkpoint in {folder.checkpoints}: the run was stopped before its first, "
            "or they were not copied along"
        )
    faults: list[str] = []
    for path in reversed(saved):
        try:
            found = _read(path, groups)
        except DamagedError as error:
            faults.append(str(error))
            continue
        if faults:
            warning = f"{'; '.join(faults)}. Using checkpoint {path.name} instead."
            print(f"langevinrl: {warning}", file=sys.stderr)
        return found
    raise DamagedError("; ".join(faults))


def _read(path: Path, groups: list[str] | None) -> CheckpointData:
    manifest = read_manifest(path)
    held = [name.removesuffix(ARRAYS) for name in manifest.files if name.endswith(ARRAYS)]
    names = sorted(held) if groups is None else groups
    missing = [name for name in names if name not in held]
    if missing:
        raise UserError(
            f"checkpoint {path} lacks {', '.join(missing)}: it is a saved model, which can act "
            "but not go on learning, or parts of it were not copied along"
        )
    if METADATA not in manifest.files:
        raise DamagedError(f"checkpoint {path} is damaged: {METADATA} is gone")
    for file in (METADATA, *(f"{name}{ARRAYS}" for name in names)):
        require_intact(path / file, manifest.files[file])
    metadata = read_table(path / METADATA)
    try:
        arrays = {name: read_arrays(path / f"{name}{ARRAYS}", name in MAPPED) for name in names}
    except (OSError, ValueError) as error:
        raise DamagedError(f"checkpoint {path} is damaged: {error}") from error
    return CheckpointData(arrays, metadata, manifest.config)


def keep_weights_only(folder: RunFolder) -> None:
    """Remove what only resuming needs, above all the replay: the run becomes a saved model."""
    saved = folder.saved_checkpoints()
    if not saved:
        return
    *older, newest = saved
    manifest, dropped = read_manifest(newest), [f"{group}{ARRAYS}" for group in (REPLAY, ENVS)]
    kept = {name: digest for name, digest in manifest.files.items() if name not in dropped}
    # The manifest first: a file that it does not list does no harm.
    write_text(newest / MANIFEST, manifest._replace(files=kept).to_json().decode())
    for name in dropped:
        (newest / name).unlink(missing_ok=True)
    for path in older:
        shutil.rmtree(path, ignore_errors=True)


def name_leaves(tree: PyTree) -> dict[str, np.ndarray]:
    """Return a pytree's leaves as named arrays, copied to the host."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.array(leaf) for path, leaf in leaves}


def fill_leaves(template: PyTree, arrays: dict[str, np.ndarray]) -> PyTree:
    """Return a pytree of `template`'s structure, filled with named arrays."""

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
