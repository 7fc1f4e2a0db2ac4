"""Locks on folders: one holder at a time, taken over only from a dead process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from langevinrl.errors import UserError
from langevinrl.storage import locks
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.locks import EXPIRY, LostLockError, acquire, is_locked, started
from langevinrl.storage.reserve import lock_run, reserve

# Waits for a common moment, reports whether it got the lock, and holds it until its input ends.
RACER = """
import sys, time
from pathlib import Path
from langevinrl.storage.locks import acquire
time.sleep(max(0, float(sys.argv[2]) - time.time()))
print("won" if acquire(Path(sys.argv[1])) else "lost", flush=True)
sys.stdin.read()
"""


def racer(folder: Path, start: float = 0.0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RACER, str(folder), str(start)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def result(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def leave_lock(folder: Path, age: float = 0.0, name: str = "lock.1", **fields: Any) -> Path:
    """Write the lock of another process."""
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "started": "1", "since": "noon"}
    (folder / name).write_text(json.dumps(holder | fields))
    os.utime(folder / name, (time.time() - age,) * 2)
    return folder / name


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_one_of_many_racers_wins(tmp_path: Path) -> None:
    start = time.time() + 1.5
    racers = [racer(tmp_path, start) for _ in range(6)]
    results = [result(process) for process in racers]
    held = is_locked(tmp_path)
    for process in racers:
        process.communicate()
    assert sorted(results) == ["lost"] * 5 + ["won"]
    assert held and not is_locked(tmp_path)


def test_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    first = racer(tmp_path)
    assert result(first) == "won" and acquire(tmp_path) is None
    first.send_signal(signal.SIGKILL)
    first.communicate()
    second = acquire(tmp_path)
    assert second is not None and names(tmp_path) == ["lock.2"]
    assert acquire(tmp_path) is None
    second.release()
    assert names(tmp_path) == [] and not is_locked(tmp_path)


def test_second_process_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with lock_run(folder) as lock:
        me = f"process {os.getpid()} on {socket.gethostname()} since 2"
        with pytest.raises(UserError, match=f"another process trains in .*{me}"):
            lock_run(folder)
        with pytest.raises(UserError, match=f"another process trains in .*{me}"):
            reserve(str(folder), numbered=False, overwrite=True)
        assert lock_run(folder, lock) is lock  # its holder may pass it on
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("fields", "age", "alive"),
    [
        ({}, 0, False),  # the number belongs to another process by now
        ({"pid": 2**22 + 1}, 0, False),
        ({"started": started(os.getpid())}, 0, True),
        ({"started": started(os.getpid())}, 2 * EXPIRY, False),
        ({"host": "elsewhere"}, 0, True),
        ({"host": "elsewhere"}, 2 * EXPIRY, False),
        ({"host": "elsewhere"}, -1e6, True),  # a clock that is ahead
    ],
    ids=["reused pid", "gone", "alive", "suspended", "elsewhere", "elsewhere, old", "ahead"],
)
def test_lock_is_alive_while_fresh_and_its_process_exists(
    tmp_path: Path, fields: dict[str, Any], age: float, alive: bool
) -> None:
    leave_lock(tmp_path, age, **fields)
    assert is_locked(tmp_path) == alive
    lock = acquire(tmp_path)
    assert (lock is None) == alive
    if lock is not None:
        assert names(tmp_path) == ["lock.2"]
        lock.release()


def test_late_process_withdraws_if_another_lock_appeared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw a free folder; since then others locked and released it, and one holds lock.1."""
    first = acquire(tmp_path)
    assert first is not None
    looks, real = iter([[tmp_path / "lock.4"]]), locks._locks
    monkeypatch.setattr(locks, "_locks", lambda folder: next(looks, None) or real(folder))
    assert acquire(tmp_path) is None
    assert names(tmp_path) == ["lock.1"]
    first.beat()
    first.require()
    first.release()


@pytest.mark.parametrize("successor", [True, False])
def test_holder_that_was_suspended_notices_that_its_lock_is_lost(
    tmp_path: Path, successor: bool
) -> None:
    lock = acquire(tmp_path)
    assert lock is not None
    lock.beat()
    lock.require()
    os.utime(lock.path, (time.time() - 2 * EXPIRY,) * 2)
    other = acquire(tmp_path)
    assert other is not None
    other.release()
    if successor:  # a third process has used the name again
        leave_lock(tmp_path, name=lock.path.name, pid=1)
    lock.beat()
    with pytest.raises(LostLockError, match="taken over by another process"):
        lock.require()
    lock.release()
    assert names(tmp_path) == (["lock.1"] if successor else [])


def test_heartbeat_keeps_a_lock_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT", 0.01)
    lock = acquire(tmp_path)
    assert lock is not None
    os.utime(lock.path, (0, 0))
    deadline = time.monotonic() + 5
    while lock.path.stat().st_mtime == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert lock.path.stat().st_mtime > 0
    lock.release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"host": 1}', "[" * 10**5])
def test_unreadable_lock_counts_until_it_is_old(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lock.7"
    path.write_text(text)
    assert is_locked(tmp_path) and locks.describe_holder(tmp_path) == ""
    os.utime(path, (time.time() - 2 * EXPIRY,) * 2)
    lock = acquire(tmp_path)
    assert lock is not None and names(tmp_path) == ["lock.8"]
    lock.release()


def test_link_or_folder_in_place_of_a_lock_is_ignored(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.write_text("keep")
    folder.mkdir()
    (folder / "lock.1").symlink_to(outside)
    (folder / "lock.2").mkdir()
    lock = acquire(folder)
    assert lock is not None and outside.read_text() == "keep"
    lock.release()
