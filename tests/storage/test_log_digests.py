"""Logs that were changed after a checkpoint are found by resume and by reports."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from langevinrl.errors import UserError
from langevinrl.runs.train import resume
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.run_log import find_changed_logs

LOGS = ["metrics.jsonl", "evaluations.csv"]


def change_digit(content: bytes) -> bytes:
    at = max(content.rfind(b"1"), content.rfind(b"2"), content.rfind(b"3"))
    return content[:at] + b"9" + content[at + 1 :]


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a digit": change_digit,
    "an extra line": lambda content: content[:-20] + b"\n" + content[-20:],
    "a missing line": lambda content: b"".join(content.splitlines(keepends=True)[:-1]),
    "empty": lambda _: b"",
}


@pytest.fixture
def folder(tiny_run: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(shutil.copytree(tiny_run, tmp_path / "run"))


def test_lines_after_the_newest_checkpoint_are_no_change(folder: RunFolder) -> None:
    assert find_changed_logs(folder) == []
    with folder.metrics.open("a") as file:
        file.write("a later line\n")
    assert find_changed_logs(folder) == []


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("change", CHANGES)
def test_changed_log_is_found(folder: RunFolder, name: str, change: str) -> None:
    path = folder.path / name
    path.write_bytes(CHANGES[change](path.read_bytes()))
    assert find_changed_logs(folder) == [name]
    shutil.rmtree(folder.checkpoints)
    assert find_changed_logs(folder) == []  # nothing to compare with


def test_deleted_log_is_found_by_an_older_checkpoint(folder: RunFolder) -> None:
    folder.evaluations.unlink()
    (folder.checkpoints / "000000008" / "metadata.json").unlink()
    assert find_changed_logs(folder) == ["evaluations.csv"]


@pytest.mark.parametrize("name", LOGS)
def test_resume_refuses_a_changed_log_unless_accepted(folder: RunFolder, name: str) -> None:
    path = folder.path / name
    path.write_bytes(change_digit(path.read_bytes()))
    with pytest.raises(UserError, match=rf"{name} was changed since .*accept_changes"):
        resume(folder.path, 9, quiet=True)
    resume(folder.path, 9, quiet=True, accept_changes=True)
    assert find_changed_logs(folder) == []
