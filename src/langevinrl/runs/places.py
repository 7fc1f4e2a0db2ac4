"""Where a new run goes: a folder of its own, which it holds while it trains.

runs/AGENT-ENV-SEED unless told, and -2, -3 ... where that is taken, so that a script may be run
twice.  A folder whose run ended before it learned anything is used again; one that holds a run is
never written to, unless its user asks for that.
"""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path

from langevinrl.errors import UserError, field
from langevinrl.runs.folder import RunFolder

try:
    import fcntl
except ImportError:  # no such locks here: a folder in use is then told by its files alone
    fcntl = None  # type: ignore[assignment]


class Hold:
    """A mark on a folder that goes with the process, however that ends."""

    def __init__(self, folder: RunFolder) -> None:
        """Tries to take it: `taken` if this process has it now, `foreign` if another has."""
        self.handle: int | None = None
        self.foreign = False
        if fcntl is None:
            return
        handle = os.open(folder.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.handle = handle
        except OSError as error:  # held by another, or a file system that has no locks
            self.foreign = isinstance(error, BlockingIOError)
            os.close(handle)

    @property
    def taken(self) -> bool:
        return self.handle is not None

    def release(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


class _TakenError(UserError):
    """This folder may not be had; a numbered one beside it may."""


def require_available(folder: RunFolder) -> None:
    """Refuses early, before anything is built, what `take` would refuse."""
    if not (folder.config.exists() and folder.is_untouched()):
        folder.require_free()


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
        raise _TakenError(f"another process trains in {folder}; choose another {field('out')}")
    if fresh:
        return hold
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
        reason = error.strerror or errno.errorcode.get(error.errno or 0, "unknown")
        raise UserError(f"cannot make the run folder {path}: {reason}") from None
    else:
        return True
    if not os.access(path, os.W_OK | os.X_OK):
        raise UserError(f"cannot write to the run folder {path}: permission denied")
    return False
