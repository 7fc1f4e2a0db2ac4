"""Run state <-> files: arrays in safetensors, the rest in JSON, never pickle.

A checkpoint is written beside its predecessors, forced to disk, and only then named; its manifest
tells on loading whether each byte is still the one written.  One that is damaged is passed over,
not silently, for the one before.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from langevinrl.errors import UserError
from langevinrl.storage.arrays import pieces, read_arrays
from langevinrl.storage.disk import Disk
from langevinrl.storage.folder import (
    ARRAYS,
    ENVS,
    MANIFEST,
    METADATA,
    REPLAY,
    DiskError,
    RunFolder,
    checkpoint_name,
    draft_of,
    is_our_checkpoint,
    spare_of,
)
from langevinrl.storage.manifest import (
    FORMAT,
    DamagedError,
    Manifest,
    read_json,
    read_manifest,
    require_sound,
)
from langevinrl.types import PyTree

MAPPED = (REPLAY,)  # groups too large to have in memory twice: read from disk as they are copied


class CheckpointData(NamedTuple):
    """Groups of named arrays, one file each, and what JSON can hold."""

    arrays: dict[str, dict[str, np.ndarray]]
    metadata: dict[str, Any]
    config: dict[str, Any] | None = None  # the fields of the run it is of, if known


def save(
    folder: RunFolder,
    iteration: int,
    checkpoint: CheckpointData,
    *,
    keep: int = 1,
    disk: Disk | None = None,
) -> Path:
    """Write `checkpoints/<iteration>` whole or not at all, then drop all but the last `keep`.

    Only folders of our own naming are ever removed: what else lies there is someone's.
    """
    disk, place = disk or Disk(), folder.checkpoints
    final = place / checkpoint_name(iteration)
    try:
        place.mkdir(exist_ok=True)  # but not the run's own folder: if that is gone, say so
        for stale in place.glob(".*.partial"):  # of a crash; first, as the disk may be full
            if is_our_checkpoint(stale):
                disk.remove_folder(stale)
        _write(draft_of(final), checkpoint, disk)
        if final.exists():  # stays loadable under another name until its successor has its own
            spare = spare_of(final)
            if spare.exists():
                disk.remove_folder(spare)
            disk.rename(final, spare)
        disk.rename(draft_of(final), final)
        disk.sync_folder(place)
    except OSError as error:
        shutil.rmtree(draft_of(final), ignore_errors=True)  # room, if it is full
        reason = error.strerror or str(error)
        raise DiskError(f"cannot save in {place}: {reason}. {folder.describe_saved()}") from error
    for path in _superseded(folder, final, keep):
        try:
            disk.remove_folder(path)
        except OSError:  # it is tried again after the next save
            continue
    return final


def _write(draft: Path, checkpoint: CheckpointData, disk: Disk) -> None:
    """All files of a checkpoint, the manifest last."""
    disk.make_folder(draft)
    metadata = json.dumps(checkpoint.metadata | {"format": FORMAT}).encode()
    written = {METADATA: disk.write_file(draft / METADATA, [metadata])}
    for group, arrays in checkpoint.arrays.items():
        name = f"{group}{ARRAYS}"
        named = {key: np.asarray(array) for key, array in arrays.items()}
        written[name] = disk.write_file(draft / name, pieces(named))
    config = None if checkpoint.config is None else json.loads(json.dumps(checkpoint.config))
    manifest = Manifest(FORMAT, written, config)
    disk.write_file(draft / MANIFEST, [manifest.to_json()])
    disk.sync_folder(draft)


def _superseded(folder: RunFolder, final: Path, keep: int) -> list[Path]:
    """What may go now that `final` is saved: older ones, spares of it, and whatever is ahead of it.

    What is ahead was found damaged, else the run would have gone on from there.
    """
    saved = folder.saved_checkpoints()
    older = [path for path in saved[: saved.index(final)] if path.stem != final.stem]
    kept = {final, *older[max(0, len(older) - keep + 1) :]}
    ours = [path for path in folder.checkpoints.iterdir() if is_our_checkpoint(path)]
    return [path for path in ours if path not in kept]


def load(folder: RunFolder, groups: list[str] | None = None) -> CheckpointData:
    """The newest sound checkpoint of a run; only some groups of arrays if asked.

    Replay comes unwritable, mapped from disk.  A damaged checkpoint is reported and the one before
    it taken.
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
            said = "; ".join(faults)
            print(f"langevinrl: {said}. Using checkpoint {path.name} instead.", file=sys.stderr)
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
        require_sound(path / file, manifest.files[file])
    metadata = read_json(path / METADATA)
    metadata.pop("format", None)  # tells a lost manifest from a checkpoint that never had one
    try:
        arrays = {name: read_arrays(path / f"{name}{ARRAYS}", name in MAPPED) for name in names}
    except (OSError, ValueError) as error:
        raise DamagedError(f"checkpoint {path} is damaged: {error}") from error
    found = CheckpointData(arrays, metadata, manifest.config)
    for step in MIGRATIONS[manifest.format :]:
        found = step(found)
    return found


def _from_0(old: CheckpointData) -> CheckpointData:
    """Format 0 had no manifest; its first ones did not count training's episodes."""
    return old._replace(metadata={"episodes": None} | old.metadata)


# The step that makes of each format the next; a new format adds its own here.
MIGRATIONS: list[Callable[[CheckpointData], CheckpointData]] = [_from_0]


def keep_weights_only(folder: RunFolder) -> None:
    """Drop what only going on needs, the replay above all: the run becomes a saved model."""
    saved = folder.saved_checkpoints()
    if not saved:
        return
    *older, newest = saved
    manifest, dropped = read_manifest(newest), [f"{group}{ARRAYS}" for group in (REPLAY, ENVS)]
    kept = {name: written for name, written in manifest.files.items() if name not in dropped}
    if manifest.format > 0:  # first: files that no manifest names do no harm
        draft = newest / f"{MANIFEST}.partial"
        draft.unlink(missing_ok=True)
        Disk().write_file(draft, [manifest._replace(files=kept).to_json()])
        draft.replace(newest / MANIFEST)
    for name in dropped:
        (newest / name).unlink(missing_ok=True)
    for path in older:
        if is_our_checkpoint(path):
            shutil.rmtree(path, ignore_errors=True)


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
