"""One process at a time in a run's folder: who has it, and when it is free again."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from langevinrl.errors import UserError
from langevinrl.storage import locks as holds
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.locks import LOCK, STALE, Hold, is_network
from langevinrl.storage.places import hold_again, take
from langevinrl.storage.processes import started


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that knows no locks, as some network file systems."""

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


def names(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir())


def sign(folder: RunFolder, **fields: Any) -> None:
    """What another process left."""
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "started": "1", "since": "noon"}
    (folder.path / LOCK).write_text(json.dumps(holder | fields))


@pytest.mark.parametrize("locks", [True, False])
def test_the_second_is_told_who_the_first_is(
    folder: RunFolder, locks: bool, request: pytest.FixtureRequest
) -> None:
    if not locks:
        request.getfixturevalue("no_locks")
    first = Hold(folder)
    assert first.taken and not first.foreign and names(folder) == [LOCK]
    second = Hold(folder)
    assert second.foreign and not second.taken
    me = f"process {os.getpid()} on {socket.gethostname()} since 2"
    assert me in second.who
    with pytest.raises(UserError, match="another process trains in") as caught:
        hold_again(folder)
    assert me in str(caught.value)
    with pytest.raises(UserError, match=me):
        take(str(folder), numbered=False, overwrite=True)
    first.release()
    assert names(folder) == []
    hold_again(folder).release()
    assert names(folder) == []


def test_a_sweep_may_take_over_and_the_first_then_leaves_it_alone(folder: RunFolder) -> None:
    first = Hold(folder)
    second = hold_again(folder, take_over=True)
    assert second.taken
    sign(folder, pid=1)  # as a third process does
    second.release()
    first.release()
    assert json.loads((folder.path / LOCK).read_text())["pid"] == 1


@pytest.mark.parametrize("fields", [{}, {"host": "elsewhere"}, {"pid": 2**22 + 1}], ids=str)
def test_what_a_killed_process_left_is_nothing_where_there_are_locks(
    folder: RunFolder, fields: dict[str, Any]
) -> None:
    sign(folder, **fields)
    hold = Hold(folder)
    assert hold.taken and json.loads((folder.path / LOCK).read_text())["pid"] == os.getpid()
    hold.release()


@pytest.mark.usefixtures("no_locks")
@pytest.mark.parametrize(
    ("fields", "age", "foreign"),
    [
        ({}, 0, False),  # the number is another process's by now
        ({"pid": 2**22 + 1}, 0, False),
        ({"started": started(os.getpid())}, 10 * STALE, True),
        ({"host": "elsewhere"}, 0, True),
        ({"host": "elsewhere"}, 2 * STALE, False),
        ({"host": "elsewhere"}, -1e6, True),  # by a clock that runs ahead
    ],
    ids=["other start", "gone", "running", "elsewhere", "elsewhere, old", "elsewhere, ahead"],
)
def test_without_locks_the_file_tells(
    folder: RunFolder, fields: dict[str, Any], age: float, foreign: bool
) -> None:
    sign(folder, **fields)
    when = time.time() - age
    os.utime(folder.path / LOCK, (when, when))
    hold = Hold(folder)
    assert hold.foreign == foreign and hold.taken != foreign
    hold.release()
    assert names(folder) == ([LOCK] if foreign else [])


@pytest.mark.usefixtures("no_locks")
def test_of_two_that_find_an_old_file_one_gets_it(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(folder)
    put_aside = Hold._put_aside

    def late(self: Hold) -> None:
        sign(folder, host="elsewhere")  # the other was quicker
        put_aside(self)

    monkeypatch.setattr(Hold, "_put_aside", late)
    hold = Hold(folder)
    assert hold.foreign and not hold.taken and "elsewhere" in hold.who
    assert names(folder) == [LOCK]


def test_on_a_network_a_lock_alone_is_not_enough(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "is_network", lambda _: True)
    sign(folder, host="elsewhere")
    assert Hold(folder).foreign
    old = time.time() - 2 * STALE
    os.utime(folder.path / LOCK, (old, old))
    hold = Hold(folder)
    assert hold.taken
    os.utime(folder.path / LOCK, (old, old))
    monkeypatch.setattr(holds, "BEAT", 0.0)
    hold.beat()
    assert (folder.path / LOCK).stat().st_mtime > old + STALE
    hold.release()


def test_file_systems_of_several_machines_are_known(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "a / ext4 rw\nb /home\\040of nfs4 rw\nc /home\\040of/x ext4 rw\nd /l lustre\n"
    )
    places = {"/home of/me": True, "/home of/x/y": False, "/l": True, "/tmp": False}
    assert {place: is_network(Path(place), mounts) for place in places} == places
    assert not is_network(tmp_path, tmp_path / "nothing")


def test_a_link_in_its_place_is_not_followed(folder: RunFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("keep")
    (folder.path / LOCK).symlink_to(outside)
    hold = Hold(folder)
    assert hold.taken and outside.read_text() == "keep"
    assert not (folder.path / LOCK).is_symlink()
    hold.release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"host": 1}', "[" * 10**5])
def test_a_strange_file_in_its_place_says_nothing(folder: RunFolder, text: str) -> None:
    (folder.path / LOCK).write_text(text)
    handle = os.open(folder.path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    hold = Hold(folder)
    assert hold.foreign and hold.who == ""
    os.close(handle)


def test_a_forked_child_does_not_keep_it(folder: RunFolder) -> None:
    hold = Hold(folder)
    assert hold.handle is not None
    holds._forget_all()  # what a child does first
    assert hold.handle is None
