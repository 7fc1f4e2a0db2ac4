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
from langevinrl.types import PyTree

FACTS = "facts.json"
SPARE = ".old"


class Saved(NamedTuple):
    """A checkpoint: groups of named arrays, one file each, and what JSON can hold."""

    arrays: dict[str, dict[str, np.ndarray]]
    facts: dict[str, Any]


def save(folder: Path, iteration: int, saved: Saved) -> Path:
    """Write `folder/<iteration>` whole or not at all, then drop the older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(".*.partial"):  # of a crash; first, as the disk may be full
        shutil.rmtree(stale)
    final = folder / f"{iteration:09d}"
    draft = folder / f".{final.name}.partial"
    draft.mkdir()
    for group, arrays in saved.arrays.items():
        path = draft / f"{group}.safetensors"
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, path)
        _sync(path)
    (draft / FACTS).write_text(json.dumps(saved.facts))
    _sync(draft / FACTS)
    _sync(draft)
    if final.exists():  # stays loadable under another name until its successor has taken its own
        spare = final.with_suffix(SPARE)
        shutil.rmtree(spare, ignore_errors=True)
        final.rename(spare)
    draft.rename(final)
    _sync(folder)
    for path in folder.iterdir():
        if path != final:
            shutil.rmtree(path, ignore_errors=True)
    return final


def exists(folder: Path) -> bool:
    """Whether `folder` holds a whole checkpoint."""
    return bool(_finished(folder))


def _finished(folder: Path) -> list[Path]:
    return [path for path in folder.glob("[0-9]*") if path.is_dir()]


def load(folder: Path, groups: list[str] | None = None) -> Saved:
    """The newest whole checkpoint in `folder`; only some groups of arrays if asked."""
    finished = _finished(folder)
    if not finished:
        raise UserError(
            f"no checkpoint in {folder}: the run was stopped before its first, "
            "or they were not copied along"
        )
    newest = max(finished, key=lambda path: (path.stem, path.suffix != SPARE))
    names = sorted(path.stem for path in newest.glob("*.safetensors")) if groups is None else groups
    missing = [name for name in names if not (newest / f"{name}.safetensors").exists()]
    if missing:
        raise UserError(
            f"checkpoint {newest} lacks {', '.join(missing)}: it is damaged, or a saved model, "
            "which can act but not go on learning"
        )
    try:
        facts = json.loads((newest / FACTS).read_text())
        return Saved({name: load_file(newest / f"{name}.safetensors") for name in names}, facts)
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"checkpoint {newest} is damaged: {error}") from error


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
