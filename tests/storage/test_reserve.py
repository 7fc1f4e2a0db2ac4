"""Folders of new runs: numbered, reused, refused or overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from langevinrl.errors import UserError
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.locks import acquire
from langevinrl.storage.reserve import require_available, reserve


def begin(path: Path, learned: bool) -> RunFolder:
    """Write the files that a run leaves: in warm-up, or later."""
    folder = RunFolder(path)
    folder.path.mkdir(parents=True)
    folder.config.write_text("{}")
    folder.metrics.write_text("{}\n" if learned else "")
    folder.evaluations.write_text("agent,env\n")
    return folder


def test_first_free_number_is_used(tmp_path: Path) -> None:
    place = str(tmp_path / "runs" / "mine")
    for number in ("", "-2", "-3"):
        folder, lock = reserve(place, numbered=True)
        assert str(folder) == place + number
        folder.config.write_text("{}")
        folder.metrics.write_text("{}\n")
        lock.release()


def test_folder_of_a_run_that_learned_nothing_is_reused(tmp_path: Path) -> None:
    begin(tmp_path / "mine", learned=False)
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    folder, lock = reserve(str(tmp_path / "mine"), numbered=True)
    assert folder.path == tmp_path / "mine"
    lock.release()
    assert [path.name for path in folder.path.iterdir()] == ["notes.txt"]


def test_folder_of_a_run_in_its_warm_up_is_not_reused(tmp_path: Path) -> None:
    """Only its lock shows that it is running."""
    begin(tmp_path / "mine", learned=False)
    running = acquire(tmp_path / "mine")
    assert running is not None
    folder, lock = reserve(str(tmp_path / "mine"), numbered=True)
    assert folder.path == tmp_path / "mine-2"
    lock.release()
    for overwrite in (False, True):
        with pytest.raises(UserError, match="another process trains in"):
            reserve(str(tmp_path / "mine"), numbered=False, overwrite=overwrite)
    running.release()


def test_named_folder_with_a_run_is_refused_or_overwritten(tmp_path: Path) -> None:
    folder = begin(tmp_path / "mine", learned=True)
    foreign = folder.checkpoints / "best"
    foreign.mkdir(parents=True)
    (folder.checkpoints / "000000008").mkdir()
    with pytest.raises(UserError, match=r"already holds a run.*overwrite"):
        require_available(folder)
    with pytest.raises(UserError, match=r"already holds a run.*overwrite"):
        reserve(str(folder), numbered=False)
    assert folder.metrics.read_text() == "{}\n"
    _, lock = reserve(str(folder), numbered=False, overwrite=True)
    lock.release()
    assert sorted(path.name for path in folder.path.rglob("*")) == ["best", "checkpoints"]


def test_folder_that_cannot_be_written_gives_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file"):
        reserve(str(tmp_path / "file"), numbered=False)
    with pytest.raises(UserError, match=r"cannot make the run folder .*: Not a directory"):
        reserve(str(tmp_path / "file" / "run"), numbered=False)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    with pytest.raises(UserError, match="permission denied"):
        reserve(str(tmp_path), numbered=False)
