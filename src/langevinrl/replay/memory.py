"""How much memory this process may still take: the machine's, and its container's if it has one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

UNLIMITED = 2**60  # version 1 writes a number of about this size where it sets no limit


def free_memory(root: Path = Path("/")) -> int:
    """Bytes the system can still hand out, and a container's or a job's limit still allows."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        table = dict(line.split(":", 1) for line in lines)
        free = int(table["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux: all there is, free or not
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(0, min([free, *_room_in_groups(root)]))


def _room_in_groups(root: Path) -> Iterator[int]:
    """What is left of each limit on this process's control group and on those around it."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":  # version 2
            yield from _walk(root / "sys/fs/cgroup", path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            yield from _walk(root / "sys/fs/cgroup/memory", path, *names)


def _walk(mount: Path, path: str, limit: str, usage: str) -> Iterator[int]:
    """From the group to the top; within a container only the top of its own may be there."""
    place = mount / path.strip("/")
    for group in (place, *place.parents):
        room = _room(group, limit, usage)
        if room is not None:
            yield room
        if group == mount:
            return


def _room(group: Path, limit: str, usage: str) -> int | None:
    """Limit less use, where files that are only cached count as free; None without a limit."""
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
