"""Every single operation of a save fails in turn: there is always a whole checkpoint to load."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from langevinrl.errors import UserError
from langevinrl.runs import train
from langevinrl.storage.checkpoint import CheckpointData, load, save
from langevinrl.storage.disk import Disk, measure
from langevinrl.storage.folder import RunFolder

OPERATIONS = ("make_folder", "open_new", "write", "sync", "rename", "remove_folder")


class FailingDisk(Disk):
    """Does `lasting` operations, and none after them."""

    def __init__(self, lasting: int) -> None:
        self.left = lasting

    def count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def make_folder(self, path: Path) -> None:
        self.count()
        super().make_folder(path)

    def open_new(self, path: Path) -> IO[bytes]:
        self.count()
        return super().open_new(path)

    def write(self, file: IO[bytes], data: Any) -> None:
        if self.left == 0:
            file.write(memoryview(data)[: len(data) // 2])  # a disk fills in the middle
        self.count()
        super().write(file, data)

    def sync(self, handle: int) -> None:
        self.count()
        super().sync(handle)

    def rename(self, path: Path, target: Path) -> None:
        self.count()
        super().rename(path, target)

    def remove_folder(self, path: Path) -> None:
        self.count()
        super().remove_folder(path)


def saved(value: float) -> CheckpointData:
    state = {"a": np.full((2, 3), value, np.float32), "count": np.array(7, np.int32)}
    return CheckpointData({"state": state, "replay": {"obs": np.arange(8.0)}}, {"iteration": value})


def value_of(folder: RunFolder) -> float:
    """What the newest sound checkpoint holds, the same in each of its files."""
    found = load(folder)
    assert found.arrays["state"]["a"][0, 0] == found.metadata["iteration"]
    return float(found.metadata["iteration"])


def operations(again_at: int, place: Path) -> int:
    """How many operations such a save has."""
    folder, disk = RunFolder(place), FailingDisk(10_000)
    place.mkdir()
    save(folder, 10, saved(1.0), keep=2)
    save(folder, 20, saved(2.0), keep=2)
    save(folder, again_at, saved(3.0), keep=2, disk=disk)
    return 10_000 - disk.left


@pytest.mark.parametrize("again_at", [20, 30])  # over itself, as after a signal, and beside it
def test_whichever_operation_fails_nothing_is_lost(tmp_path: Path, again_at: int) -> None:
    total = operations(again_at, tmp_path / "count")
    assert total > 15
    for lasting in range(total):
        folder = RunFolder(tmp_path / str(lasting))
        folder.path.mkdir()
        save(folder, 10, saved(1.0), keep=2)
        save(folder, 20, saved(2.0), keep=2)
        try:
            save(folder, again_at, saved(3.0), keep=2, disk=FailingDisk(lasting))
            stands = 3.0  # only removing what is superseded failed
        except UserError as error:
            assert "No space left on device. The checkpoint of iteration" in str(error)
            stands = value_of(folder)
            assert stands in (2.0, 3.0)
        assert value_of(folder) == stands
        assert not list(folder.checkpoints.glob(".*")), "half a checkpoint takes up room"
        save(folder, 40, saved(4.0), keep=2)
        assert value_of(folder) == 4.0
        assert len(list(folder.checkpoints.iterdir())) == 2


def test_every_operation_of_the_disk_is_among_those_that_fail() -> None:
    own = {name for name in vars(Disk) if not name.startswith("_")}
    assert own == {*OPERATIONS, "write_file", "sync_folder"}  # the two are made of the others


def test_a_real_limit_on_the_size_of_files_is_told_in_words(tmp_path: Path) -> None:
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


def test_a_folder_that_vanished_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file or directory"):
        save(RunFolder(tmp_path / "gone"), 2, saved(1.0))
    assert not (tmp_path / "gone").exists()


def test_what_is_written_has_the_users_permissions_and_the_digest_told(tmp_path: Path) -> None:
    (tmp_path / "ordinary").touch()
    written = Disk().write_file(tmp_path / "file", [b"ab", b"", np.arange(3, dtype=np.uint8)])
    assert written == measure(tmp_path / "file") and written.size == 5
    modes = [(tmp_path / name).stat().st_mode for name in ("ordinary", "file")]
    assert modes[0] == modes[1]


def test_a_run_whose_disk_filled_up_resumes_as_if_it_had_not(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed by a full disk in the save of its last iteration: all of that is done again."""
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    shutil.rmtree(folder / "checkpoints" / "000000008")
    with monkeypatch.context() as patch:
        patch.setattr(Disk, "sync", lambda *_: FailingDisk(0).count())
        with pytest.raises(UserError, match=r"cannot save.*No space.*iteration 4 is kept"):
            train.resume(folder, quiet=True, trust=True)
    train.resume(folder, quiet=True, trust=True)
    for group in ("state", "replay", "envs"):
        file = f"checkpoints/000000008/{group}.safetensors"
        assert (folder / file).read_bytes() == (tiny_run / file).read_bytes()
