"""Folders for runs: created, numbered where the name is taken, and locked.  Needs no JAX.

The default runs/AGENT-ENV-SEED becomes -2, -3 ... if a run is there, so that a script can be run
twice.  A folder whose run ended before it learned anything is used again; one that holds a run is
never written to without `overwrite`.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from langevinrl.errors import UserError, field
from langevinrl.storage.files import reason_of, require_no_links
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.locks import FolderLock, acquire, describe_holder


class _TakenError(UserError):
    """The folder is in use; one with a number may be free."""


def require_available(folder: RunFolder) -> None:
    """Raise early, before anything is built, where `reserve` would raise."""
    try:
        if not (folder.config.exists() and folder.is_untouched()):
            folder.require_free()
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise UserError(f"cannot use the run folder {folder}: {reason_of(error)}") from None


def reserve(
    path: str, *, numbered: bool, overwrite: bool = False, lock: FolderLock | None = None
) -> tuple[RunFolder, FolderLock]:
    """Create and lock the folder of a new run.

    numbered: use the first of path, path-2, path-3 ... that is free; otherwise `path` must be free
    overwrite: remove the run that is there
    lock: one that the caller has on the folder, and releases
    """
    for number in itertools.count(1):
        folder = RunFolder(path if number == 1 else f"{path}-{number}")
        try:
            return folder, _reserve(folder, overwrite, lock)
        except _TakenError:
            if not numbered:
                raise
    raise AssertionError("numbers do not end")


def _reserve(folder: RunFolder, overwrite: bool, lock: FolderLock | None) -> FolderLock:
    _create(folder.path)
    require_no_links(folder.path)
    held = lock or acquire(folder.path)
    if held is None:
        raise _TakenError(
            f"another process trains in {folder}{describe_holder(folder.path)}; "
            f"choose another {field('out')}"
        )
    try:
        if folder.config.exists() and (overwrite or folder.is_untouched()):
            folder.clear()
            return held
        try:
            folder.require_free()
        except UserError as error:
            raise _TakenError(str(error)) from None
    except BaseException:
        if lock is None:
            held.release()
        raise
    return held


def _create(path: Path) -> None:
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise UserError(f"{path} is a file; a run needs a folder") from None
        _require_writable(path)
    except OSError as error:
        raise UserError(f"cannot make the run folder {path}: {reason_of(error)}") from None


def lock_run(folder: RunFolder, lock: FolderLock | None = None) -> FolderLock:
    """Lock the folder of a run before resuming it, or reuse the `lock` that the caller holds."""
    require_no_links(folder.path)
    _require_writable(folder.path)
    held = lock or acquire(folder.path)
    if held is None:
        raise UserError(
            f"another process trains in {folder}{describe_holder(folder.path)}; wait for it, or "
            "end it first"
        )
    return held


def _require_writable(path: Path) -> None:
    if not os.access(path, os.W_OK | os.X_OK):
        raise UserError(f"cannot write to the run folder {path}: permission denied")
