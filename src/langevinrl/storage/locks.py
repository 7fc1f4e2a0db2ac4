"""Locks on the folders of runs and sweeps, kept fresh by a heartbeat.  Needs no JAX.

A lock is a file lock.N in the folder.  A process creates it only if no file of that name exists,
which is atomic on network file systems too.  Then it looks at the folder again, and withdraws if
another lock is alive: of two processes, the one that created its file later sees the other's.

A lock is alive while its file is fresh and, on the holder's own machine, while its process exists.
So a killed process frees the folder at once on its own machine, and after `EXPIRY` seconds on
another.  A holder that was suspended for longer may find its lock taken over.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from langevinrl.errors import UserError
from langevinrl.storage.files import create_text, read_json, write_new

LOCK = "lock."  # followed by a number
BEAT = 5.0  # seconds between signs of life
EXPIRY = 120.0  # seconds without one until a lock is dead; network file systems cache times for 60


class LostLockError(UserError):
    """Another process took the folder over, as this one gave no sign of life for too long."""


class Holder(NamedTuple):
    """The process that holds a lock."""

    host: str
    pid: int
    started: str  # start time of the process: its number may be used again
    since: str  # when it locked the folder

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


class FolderLock:
    """A folder locked by this process, until `release`; a thread keeps the lock fresh."""

    def __init__(self, path: Path, holder: Holder) -> None:
        self.path, self.holder, self.lost = path, holder, False
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._keep_fresh, daemon=True)
        self._thread.start()

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()

    def require(self) -> None:
        """Raise if the lock was lost."""
        if self.lost:
            raise LostLockError(f"{self.path.parent} was removed or taken over by another process")

    def release(self) -> None:
        self._released.set()
        self._thread.join()
        if _read(self.path) == self.holder:
            self.path.unlink(missing_ok=True)

    def _keep_fresh(self) -> None:
        while not self._released.wait(BEAT):
            self.beat()

    def beat(self) -> None:
        """Mark the lock as fresh, or notice that it was lost."""
        try:
            os.utime(self.path, follow_symlinks=False)
            self.lost = self.lost or _read(self.path) not in (None, self.holder)
        except FileNotFoundError:
            self.lost = True
        except OSError:  # a network file system that is away for a moment
            return


def acquire(folder: Path) -> FolderLock | None:
    """Lock a folder; return None if a living process holds it."""
    known = _locks(folder)
    if any(_is_alive(path) for path in known):
        return None
    path = folder / f"{LOCK}{_number(known[-1]) + 1 if known else 1}"
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    holder = Holder(socket.gethostname(), os.getpid(), started(os.getpid()), since)
    if not create_text(path, json.dumps(holder._asdict()) + "\n"):
        return None
    if any(_is_alive(other) for other in _locks(folder) if other != path):
        path.unlink(missing_ok=True)
        return None
    for dead in known:
        with suppress(OSError):
            dead.unlink()
    return FolderLock(path, holder)


def wait_for_lock(folder: Path) -> FolderLock:
    """Lock a folder, waiting until it is free."""
    while (lock := acquire(folder)) is None:
        time.sleep(0.1)
    return lock


def is_locked(folder: Path) -> bool:
    """Return whether a living process holds a folder."""
    return any(_is_alive(path) for path in _locks(folder))


def describe_holder(folder: Path) -> str:
    """Return who holds a folder, in parentheses; nothing if that is not known."""
    holders = [_read(path) for path in _locks(folder) if _is_alive(path)]
    return f" ({holders[-1]})" if holders and holders[-1] else ""


def _locks(folder: Path) -> list[Path]:
    """Return the locks in a folder, in order of their numbers."""
    found = [path for path in folder.glob(f"{LOCK}*") if path.suffix[1:].isdecimal()]
    return sorted(found, key=_number)


def _number(path: Path) -> int:
    return int(path.suffix[1:])


def _is_alive(path: Path) -> bool:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        holder = _read(path)
        is_here = holder is not None and holder.host == socket.gethostname()
        if holder and is_here and started(holder.pid) != holder.started:
            return False
        return _age(path) < EXPIRY
    except FileNotFoundError:
        return False
    except OSError:  # its age is unknown
        return True


def _read(path: Path) -> Holder | None:
    """Return the holder that a lock names; None if it names none."""
    try:
        holder = Holder(**read_json(path, "a lock"))
    except (UserError, TypeError):
        return None
    texts = (holder.host, holder.started, holder.since)
    fits = isinstance(holder.pid, int) and all(isinstance(text, str) for text in texts)
    return holder if fits else None


def started(pid: int) -> str:
    """Return the system's start time of a process; "" if there is none, or it is a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if status[0] == "Z" else status[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return ""
    except (OSError, OverflowError):
        return "unknown"
    return "unknown"


def _age(path: Path) -> float:
    """Return the seconds since a file was touched, by the clock of its file system."""
    # No other thread or process uses this name.
    user = f"{socket.gethostname()}.{os.getpid()}.{threading.get_ident()}"
    probe = path.with_name(f".{path.name}.{user}.now")
    try:
        probe.unlink(missing_ok=True)
        write_new(probe, [])
        return probe.lstat().st_mtime - path.lstat().st_mtime
    finally:
        probe.unlink(missing_ok=True)
