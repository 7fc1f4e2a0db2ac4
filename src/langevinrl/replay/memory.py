"""Memory that this process may still use, on this machine and in its container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

UNLIMITED = 2**60  # cgroup version 1 writes a number of this size for "no limit"


def free_memory(root: Path = Path("/")) -> int:
    """Return the bytes that are free and that the limits of a container or job still allow."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        table = dict(line.split(":", 1) for line in lines)
        free = int(table["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux: the total, free or not
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(0, min([free, *_room_in_groups(root)]))


def _room_in_groups(root: Path) -> Iterator[int]:
    """Yield the remaining bytes of each limit on this process's control group and its parents."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":  # version 2
            yield from _parents(root / "sys/fs/cgroup", path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            yield from _parents(root / "sys/fs/cgroup/memory", path, *names)


def _parents(mount: Path, path: str, limit: str, usage: str) -> Iterator[int]:
    """Yield from the group up to the top; in a container lower groups may be invisible."""
    place = mount / path.strip("/")
    for group in (place, *place.parents):
        room = _room(group, limit, usage)
        if room is not None:
            yield room
        if group == mount:
            return


def _room(group: Path, limit: str, usage: str) -> int | None:
    """Return limit minus use, counting cached files as free; None without a limit."""
    try:
        most, used = ((group / name).read_text().strip() for name in (limit, usage))
        if most == "max" or int(most) >= UNLIMITED:
            return None
        lines = (group / "memory.stat").read_text().splitlines()
        stat = dict(line.split(" ", 1) for line in lines)
        cached = int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))
        return int(most) - int(used) + cached
    except (OSError, ValueError):
        return None
