"""Who works on a job: a file that is held, kept fresh, and taken over when its holder is gone.

Claims of one job are numbered.  A file is made only if there is none of its name, which one process
can do, on network file systems too; whoever finds the highest claim dead or given back makes the
next number, and holds the job if that is then the highest.  The highest is never removed, so
numbers only grow and two never hold one job, however they race.  A holder that slept past its time
finds its file gone.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from langevinrl.storage.folder import CLAIM
from langevinrl.storage.processes import age, started

EXPIRY = 120.0  # seconds without a sign of life after which a claim on another machine is dead


class LostClaimError(Exception):
    """Another process took the job over, as this one gave no sign of life for too long."""


class Claim:
    """A job held by this process; `beat` every few seconds keeps it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def beat(self) -> None:
        try:
            os.utime(self.path)
        except FileNotFoundError:
            raise LostClaimError(
                f"{self.path.parent.name} was taken over by another process"
            ) from None

    def release(self) -> None:
        """Mark it as given back; the file stays, so that its number is not used again."""
        with suppress(FileNotFoundError), self.path.open("r+") as file:
            file.truncate()
            json.dump({"released": True}, file)


def take(place: Path, expiry: float = EXPIRY) -> Claim | None:
    """Claim the job whose state lies in `place`; None if it is held by a living process."""
    place.mkdir(parents=True, exist_ok=True)
    known = _claims(place)
    if known and _is_alive(known[-1], expiry):
        return None
    number = _number(known[-1]) + 1 if known else 1
    path = place / f"{CLAIM}{number}"
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        return None
    with os.fdopen(handle, "w") as file:
        json.dump({"host": _host(), "pid": os.getpid(), "start": started(os.getpid())}, file)
    if _claims(place)[-1] != path:  # others held and gave back the job since we looked
        path.unlink(missing_ok=True)
        return None
    for dead in known:  # so that a holder that wakes up finds its claim gone
        dead.unlink(missing_ok=True)
    return Claim(path)


def is_held(place: Path, expiry: float = EXPIRY) -> bool:
    """Whether a living process holds the job."""
    known = _claims(place)
    return bool(known) and _is_alive(known[-1], expiry)


def _claims(place: Path) -> list[Path]:
    found = [path for path in place.glob(f"{CLAIM}*") if re.fullmatch(r"\d+", path.suffix[1:])]
    return sorted(found, key=_number)


def _number(path: Path) -> int:
    return int(path.suffix[1:])


def _is_alive(path: Path, expiry: float) -> bool:
    """A process of this machine is looked for; one elsewhere lives while its file is fresh."""
    try:
        idle = age(path)
        holder: dict[str, Any] = json.loads(path.read_text() or "{}")
    except FileNotFoundError:
        return False
    except ValueError:
        holder = {}  # half written: its maker is at it, or died there
    if holder.get("released"):
        return False
    if holder.get("host") == _host() and holder.get("start"):
        return started(int(holder["pid"])) == holder["start"] and idle < expiry
    return idle < expiry


def _host() -> str:
    return socket.gethostname()


@contextmanager
def held(place: Path, expiry: float = EXPIRY) -> Iterator[Claim]:
    """Hold a claim for the time of the block, waiting for it first."""
    while (claim := take(place, expiry)) is None:
        time.sleep(0.1)
    try:
        yield claim
    finally:
        claim.release()
