"""Where a new run goes: a folder of its own, which it holds while it trains.

runs/AGENT-ENV-SEED unless told, and -2, -3 ... where that is taken, so that a script may be run
twice.  A folder whose run ended before it learned anything is used again; one that holds a run is
never written to, unless its user asks for that.
"""

from __future__ import annotations

import itertools
import os
import stat
from pathlib import Path

from langevinrl.errors import UserError, field
from langevinrl.storage.files import reason_of
from langevinrl.storage.folder import CHECKPOINTS, CURVE, TRACKERS, RunFolder
from langevinrl.storage.locks import LOCK, Hold


class _TakenError(UserError):
    """This folder may not be had; a numbered one beside it may."""


def require_available(folder: RunFolder) -> None:
    """Refuses early, before anything is built, what `take` would refuse."""
    try:
        if not (folder.config.exists() and folder.is_untouched()):
            folder.require_free()
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise UserError(f"cannot use the run folder {folder}: {reason_of(error)}") from None


def take(place: str, *, numbered: bool, overwrite: bool = False) -> tuple[RunFolder, Hold]:
    """The folder of a new run, made and held.

    `numbered` allows the next free of place, place-2, place-3 ...; otherwise `place` must be free,
    or hold a run that came to nothing, or be given up with `overwrite`.
    """
    for number in itertools.count(1):
        folder = RunFolder(place if number == 1 else f"{place}-{number}")
        try:
            return folder, _take(folder, overwrite)
        except _TakenError:
            if not numbered:
                raise
    raise AssertionError("numbers do not end")


def _take(folder: RunFolder, overwrite: bool) -> Hold:
    """Hold the folder, free of what a run that came to nothing left there."""
    fresh = _make(folder.path)
    hold = Hold(folder)
    if hold.foreign:
        raise _TakenError(
            f"another process trains in {folder}{hold.who}; choose another {field('out')}"
        )
    if fresh:
        return hold
    try:
        require_ordinary(folder)
    except UserError:
        hold.release()
        raise
    if folder.config.exists() and (overwrite or (hold.taken and folder.is_untouched())):
        folder.clear()
        return hold
    try:
        folder.require_free()
    except UserError as error:
        hold.release()
        raise _TakenError(str(error)) from None
    return hold


def _make(path: Path) -> bool:
    """Make a folder; False if there was one."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise UserError(f"{path} is a file; a run needs a folder") from None
    except OSError as error:
        raise UserError(f"cannot make the run folder {path}: {reason_of(error)}") from None
    else:
        return True
    require_writable(path)
    return False


def require_writable(path: Path) -> None:
    """Refuses a folder that nothing can be written to, before anything is built."""
    if not os.access(path, os.W_OK | os.X_OK):
        raise UserError(f"cannot write to the run folder {path}: permission denied")


def require_ordinary(folder: RunFolder) -> None:
    """Refuses a folder in which what a run writes to is a link, a pipe or the like.

    Through a link its logs would be cut and its checkpoints replaced outside of the folder.
    """
    files = (folder.config, folder.versions, folder.metrics, folder.evaluations, folder.resumes)
    beside = [folder.path / name for name in (TRACKERS, CURVE, LOCK)]
    for path in (*files, folder.spaces, *beside, folder.checkpoints):
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        wanted = stat.S_ISDIR if path.name == CHECKPOINTS else stat.S_ISREG
        if not wanted(mode):
            kind = "folder" if path.name == CHECKPOINTS else "file"
            what = "a link" if stat.S_ISLNK(mode) else f"no ordinary {kind}"
            raise UserError(
                f"{path} is {what}: a run writes only inside its folder. Put the {kind} there"
            )


def hold_again(folder: RunFolder, *, take_over: bool = False) -> Hold:
    """Hold the folder of a run that is to go on.

    `take_over`: although another process has it, which a sweep has given up as it does not answer.
    """
    require_ordinary(folder)
    require_writable(folder.path)
    hold = Hold(folder, take_over=take_over)
    if hold.foreign:
        raise UserError(
            f"another process trains in {folder}{hold.who}; wait for it, or end it first"
        )
    return hold
