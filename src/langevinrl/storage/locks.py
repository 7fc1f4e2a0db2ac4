"""One process at a time in a run's folder, and who that is.  Needs no JAX.

The folder itself is locked (`flock`), which ends with the process however that ends.  lock.json
beside it says who holds it, for the sentence that the others get.  On a network file system, where
such a lock may be unknown or reach only the processes of one machine, lock.json is what counts: it
is made by one process only, and one that is not touched any more belongs to nobody.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
import weakref
from pathlib import Path
from typing import Any, NamedTuple

from langevinrl.errors import UserError
from langevinrl.storage.files import read_json, write_text
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.processes import age, started

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

LOCK = "lock.json"
BEAT = 20.0  # seconds between signs of life
STALE = 180.0  # seconds without one after which a holder on another machine is gone
NETWORK = (
    "nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "9p", "fuse", "afs",
)  # fmt: skip
_held: weakref.WeakSet[Hold] = weakref.WeakSet()


class Holder(NamedTuple):
    """The process that holds a folder."""

    host: str
    pid: int
    started: str  # when the process was, in words of the system: a number is given out again
    since: str  # when it took the folder

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


class Hold:
    """A mark on a folder that goes with the process, however that ends."""

    def __init__(self, folder: RunFolder, *, take_over: bool = False) -> None:
        """Tries to take it: `taken` if this process has it now, `foreign` if another has.

        `take_over` has it in any case: for whoever knows that the other was given up.
        """
        self.path = folder.path / LOCK
        self.handle: int | None = None
        self.taken, self.beaten = False, time.monotonic()
        locked = self._lock(folder.path)
        self.other = _read(self.path)
        alone = locked is True and not is_network(folder.path)
        if not take_over and (locked is False or not (alone or self._is_left())):
            self.foreign = True
            self.release()
            return
        self.foreign = False
        self._sign(locked is None and not take_over)
        _held.add(self)

    @property
    def who(self) -> str:
        """Which process holds it, in words, if it said so."""
        return f" ({self.other})" if self.other else ""

    def beat(self) -> None:
        """A sign of life, now and then, for other machines."""
        if self.taken and time.monotonic() - self.beaten > BEAT:
            self.beaten = time.monotonic()
            try:
                os.utime(self.path)
            except OSError:  # a folder that is gone is noticed by whoever writes to it
                return

    def release(self) -> None:
        """Give it back."""
        if self.taken:
            self.taken = False
            mine = _read(self.path)
            if mine and (mine.host, mine.pid) == (socket.gethostname(), os.getpid()):
                self.path.unlink(missing_ok=True)
        self.forget()

    def forget(self) -> None:
        """Close the lock's file: in a forked child it would outlive the parent."""
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None

    def _lock(self, path: Path) -> bool | None:
        """Whether the folder is locked by this process now; None where there are no such locks."""
        if fcntl is None:
            return None
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:  # held by another, or a file system that has no locks
            os.close(handle)
            return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
        self.handle = handle
        return True

    def _is_left(self) -> bool:
        """Whether whoever lock.json names is gone."""
        if self.other is None:
            return True
        if self.other.host == socket.gethostname():
            return self.other.started != started(self.other.pid)
        return _age(self.path) > STALE

    def _sign(self, alone: bool) -> None:
        """Write down who we are; `alone`: nothing else keeps another process from doing so too."""
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        me = Holder(socket.gethostname(), os.getpid(), started(os.getpid()), since)
        try:
            if alone:
                self._put_aside()
            write_text(self.path, json.dumps(me._asdict()) + "\n", exclusive=alone)
        except (OSError, UserError):
            self.foreign = alone and self.path.exists()
            self.other = _read(self.path)
        self.taken = not self.foreign

    def _put_aside(self) -> None:
        """Remove what a process that is gone left; not what another made in its place just now."""
        aside = self.path.with_name(f".{LOCK}.{os.getpid()}.old")
        try:
            self.path.rename(aside)
            if _read(aside) != self.other:
                os.link(aside, self.path)
            aside.unlink()
        except FileNotFoundError:  # there was none
            return


def _read(path: Path) -> Holder | None:
    """Who a lock.json names; None if there is none, or it says nothing."""
    if not path.is_file() or path.is_symlink():
        return None
    try:
        holder = Holder(**read_json(path, "who holds it"))
    except (UserError, TypeError):
        return None
    texts = (holder.host, holder.started, holder.since)
    fits = isinstance(holder.pid, int) and all(isinstance(text, str) for text in texts)
    return holder if fits else None


def _age(path: Path) -> float:
    """Seconds without a sign of life; 0 where that cannot be told: nobody is passed over so."""
    try:
        return age(path)
    except OSError:
        return 0.0


def is_network(path: Path, mounts: Path = Path("/proc/mounts")) -> bool:
    """Whether a folder lies on a file system that other machines may have too."""
    try:
        rows: list[Any] = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return False
    whole = path.resolve()
    within = [row for row in rows if len(row) > 2 and whole.is_relative_to(_unescape(row[1]))]
    return bool(within) and max(within, key=lambda row: len(row[1]))[2].startswith(NETWORK)


def _unescape(text: str) -> str:
    """A path as /proc/mounts writes it: a space is \\040."""
    return text.encode().decode("unicode_escape")


def _forget_all() -> None:
    for hold in list(_held):
        hold.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
