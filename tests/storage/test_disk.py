"""Saves on a failing disk: there is always a whole checkpoint to load."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langevinrl.errors import UserError
from langevinrl.runs import train
from langevinrl.storage import checkpoint
from langevinrl.storage.checkpoint import CheckpointData, load, save
from langevinrl.storage.files import digest_file, write_new
from langevinrl.storage.folder import RunFolder


class FailingDisk:
    """Replaces the system calls that write: `lasting` of them succeed, and none after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lasting: int) -> None:
        self.left = lasting
        for name in ("mkdir", "open", "write", "fsync", "rename"):
            monkeypatch.setattr(os, name, self.wrap(getattr(os, name)))

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            if call.__name__ == "open" and not args[1] & os.O_CREAT:
                return call(*args, **options)  # reading needs no space
            self.left -= 1
            if self.left < 0 and call.__name__ == "write":
                call(args[0], bytes(args[1])[: len(args[1]) // 2])  # a disk fills midway
            if self.left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*args, **options)

        return counted


def saved(value: float) -> CheckpointData:
    state = {"a": np.full((2, 3), value, np.float32), "count": np.array(7, np.int32)}
    return CheckpointData({"state": state, "replay": {"obs": np.arange(8.0)}}, {"iteration": value})


def value_of(folder: RunFolder) -> float:
    """Return the value of the newest intact checkpoint, the same in each of its files."""
    found = load(folder)
    assert found.arrays["state"]["a"][0, 0] == found.metadata["iteration"]
    return float(found.metadata["iteration"])


def two_checkpoints(path: Path) -> RunFolder:
    folder = RunFolder(path)
    path.mkdir()
    save(folder, 10, saved(1.0), keep=2)
    save(folder, 20, saved(2.0), keep=2)
    return folder


@pytest.mark.parametrize("again_at", [20, 30])  # over itself, as after a signal, and beside it
def test_whichever_write_fails_nothing_is_lost(
    tmp_path: Path, again_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for lasting in range(1_000):
        folder = two_checkpoints(tmp_path / str(lasting))
        with monkeypatch.context() as patch:
            disk = FailingDisk(patch, lasting)
            try:
                save(folder, again_at, saved(3.0), keep=2)
                expected = 3.0
            except UserError as error:
                assert "No space left on device. The checkpoint of iteration" in str(error)
                expected = value_of(folder)
                assert expected in (2.0, 3.0)
        assert value_of(folder) == expected
        assert not list(folder.checkpoints.glob(".*")), "half a checkpoint takes up space"
        save(folder, 40, saved(4.0), keep=2)
        assert value_of(folder) == 4.0
        assert len(list(folder.checkpoints.iterdir())) == 2
        if disk.left >= 0:
            break
    assert 15 < lasting < 1_000


def test_checkpoint_that_cannot_be_removed_is_removed_after_the_next_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = two_checkpoints(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        save(folder, 30, saved(3.0))
    assert value_of(folder) == 3.0 and len(folder.saved_checkpoints()) == 3
    save(folder, 40, saved(4.0))
    assert [path.name for path in folder.saved_checkpoints()] == ["000000040"]


def test_limit_on_file_sizes_gives_one_sentence(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    save(folder, 1, saved(1.0))
    big = CheckpointData({"replay": {"obs": np.zeros(50_000)}}, {})
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, old[1]))
    try:
        with pytest.raises(UserError, match=r"File too large\. The checkpoint of iteration 1 is"):
            save(folder, 2, big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert value_of(folder) == 1.0
    assert [path.name for path in folder.checkpoints.iterdir()] == ["000000001"]


def test_removed_run_folder_is_not_created_again(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file or directory"):
        save(RunFolder(tmp_path / "gone"), 2, saved(1.0))
    assert not (tmp_path / "gone").exists()


def test_new_file_has_default_permissions_and_its_digest_is_returned(tmp_path: Path) -> None:
    (tmp_path / "ordinary").touch()
    digest = write_new(tmp_path / "file", [b"ab", b"", np.arange(3, dtype=np.uint8)])
    assert digest == digest_file(tmp_path / "file") and digest.size == 5
    modes = [(tmp_path / name).stat().st_mode for name in ("ordinary", "file")]
    assert modes[0] == modes[1]


def test_run_whose_disk_filled_up_resumes_exactly(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at the save of its last iteration, which is then done again."""
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    shutil.rmtree(folder / "checkpoints" / "000000008")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_new", full_disk)
        with pytest.raises(UserError, match=r"cannot save.*No space.*iteration 4 is kept"):
            train.resume(folder, quiet=True, trust=True)
    train.resume(folder, quiet=True, trust=True)
    for group in ("state", "replay", "envs"):
        file = f"checkpoints/000000008/{group}.safetensors"
        assert (folder / file).read_bytes() == (tiny_run / file).read_bytes()


def full_disk(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
