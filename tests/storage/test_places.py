"""Where a new run goes, and what it may and may not take for that."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from langevinrl.errors import UserError
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.places import Hold, require_available, take


def begin(path: Path, learned: bool) -> RunFolder:
    """What a run leaves: in warm-up, or later."""
    folder = RunFolder(path)
    folder.path.mkdir(parents=True)
    folder.config.write_text("{}")
    folder.metrics.write_text("{}\n" if learned else "")
    folder.evaluations.write_text("agent,env\n")
    return folder


def test_the_first_place_that_is_free(tmp_path: Path) -> None:
    place = str(tmp_path / "runs" / "mine")
    for number in ("", "-2", "-3"):
        folder, hold = take(place, numbered=True)
        assert str(folder) == place + number and hold.taken
        folder.config.write_text("{}")
        folder.metrics.write_text("{}\n")
        hold.release()


def test_a_run_that_came_to_nothing_leaves_its_place(tmp_path: Path) -> None:
    begin(tmp_path / "mine", learned=False)
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    folder, hold = take(str(tmp_path / "mine"), numbered=True)
    assert folder.path == tmp_path / "mine"
    hold.release()
    assert [path.name for path in folder.path.iterdir()] == ["notes.txt"]


def test_one_that_is_still_going_does_not(tmp_path: Path) -> None:
    """Another process is in its warm-up: files alone would not tell."""
    begin(tmp_path / "mine", learned=False)
    program = (
        "import sys; from langevinrl.storage.folder import RunFolder;"
        "from langevinrl.storage.places import Hold;"
        "hold = Hold(RunFolder(sys.argv[1])); print(hold.taken, flush=True); sys.stdin.read()"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "mine")], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    assert other.stdin and other.stdout
    assert other.stdout.readline() == "True\n"
    folder, hold = take(str(tmp_path / "mine"), numbered=True)
    assert folder.path == tmp_path / "mine-2"
    hold.release()
    for overwrite in (False, True):
        with pytest.raises(UserError, match="another process trains in"):
            take(str(tmp_path / "mine"), numbered=False, overwrite=overwrite)
    other.stdin.close()
    other.stdout.close()
    other.wait(30)
    for _ in range(50):  # the mark goes with the process
        hold = Hold(RunFolder(tmp_path / "mine"))
        if hold.taken:
            break
        time.sleep(0.1)
    assert hold.taken
    hold.release()


def test_a_place_that_was_named_is_refused_or_given_up(tmp_path: Path) -> None:
    folder = begin(tmp_path / "mine", learned=True)
    foreign = folder.checkpoints / "best"
    foreign.mkdir(parents=True)
    (folder.checkpoints / "000000008").mkdir()
    with pytest.raises(UserError, match=r"already holds a run.*overwrite"):
        require_available(folder)
    with pytest.raises(UserError, match=r"already holds a run.*overwrite"):
        take(str(folder), numbered=False)
    assert folder.metrics.read_text() == "{}\n"
    _, hold = take(str(folder), numbered=False, overwrite=True)
    hold.release()
    assert sorted(path.name for path in folder.path.rglob("*")) == ["best", "checkpoints"]


def test_a_place_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file"):
        take(str(tmp_path / "file"), numbered=False)
    with pytest.raises(UserError, match=r"cannot make the run folder .*: Not a directory"):
        take(str(tmp_path / "file" / "run"), numbered=False)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    with pytest.raises(UserError, match="permission denied"):
        take(str(tmp_path), numbered=False)
