"""What can be told of other processes and clocks.  Needs no JAX."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path


def started(pid: int) -> str:
    """When a process began, as the system counts; "" if there is none.

    A process's number is given out again, this pair is not.  One that ended and was not yet asked
    for its exit code is none.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if status[0] == "Z" else status[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)  # asks only
    except ProcessLookupError:
        return ""
    except (OSError, OverflowError):
        return "unknown"
    return "unknown"


def age(path: Path) -> float:
    """Seconds since a file was touched, by the clock of the file system, which stamped it."""
    # A name that no other thread or process makes and removes meanwhile.
    who = f"{socket.gethostname()}.{os.getpid()}.{threading.get_ident()}"
    probe = path.with_name(f".{path.name}.{who}.now")
    try:
        probe.touch()
        return probe.stat().st_mtime - path.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)
