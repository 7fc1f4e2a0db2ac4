"""Files that no run wrote: each gives one sentence, and nothing outside is touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from langevinrl import Model, cli
from langevinrl.analysis.records import find_runs
from langevinrl.errors import UserError
from langevinrl.storage.files import MAX_BYTES, read_text, write_text
from langevinrl.storage.folder import RunFolder
from langevinrl.sweeps.queue import SweepFolder


def make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 2)  # takes no room on the disk


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "zeros without end": lambda path: path.symlink_to("/dev/zero"),
    "a folder": lambda path: path.mkdir(),
    "a link to nowhere": lambda path: path.symlink_to("/nowhere/at/all"),
    "a link to itself": lambda path: path.symlink_to(path),
    "deep": lambda path: path.write_text("[" * 200_000),
    "huge": make_huge,
    "bytes": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "half": lambda path: path.write_text('{"env": "Hop'),
    "digits": lambda path: path.write_text('{"env": "Hopper-v4", "seed": ' + "9" * 5000 + "}"),
    "not a table": lambda path: path.write_text("3"),
    "empty": lambda path: path.write_text(""),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("verb", ["evaluate", "resume", "export", "train"])
def test_every_verb_refuses_an_odd_configuration(
    kind: str, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ODD[kind](tmp_path / "config.json")
    what = tmp_path / "config.json" if verb == "train" else tmp_path
    with pytest.raises(SystemExit) as caught:
        cli.main([verb, str(what)])
    said = capsys.readouterr().err
    assert caught.value.code == 2 and len(said.strip().splitlines()) == 1, said
    assert "config.json" in said or verb == "train"  # whose file may be a link
    assert os.listdir(tmp_path) == ["config.json"]


@pytest.mark.parametrize("kind", ODD)
def test_odd_sweep_file_gives_one_sentence(kind: str, tmp_path: Path) -> None:
    ODD[kind](tmp_path / "sweep.json")
    with pytest.raises(UserError, match=r"sweep\.json"):
        SweepFolder(tmp_path)


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", ["config.json", "evaluations.csv", "versions.json"])
def test_report_reads_or_refuses_an_odd_file(
    kind: str, name: str, tiny_run: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    (folder / name).unlink()
    ODD[kind](folder / name)
    try:
        find_runs([folder])
    except UserError as error:
        assert len(str(error).splitlines()) == 1


def test_other_files_among_the_checkpoints_are_ignored(tiny_run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    (folder / "checkpoints" / "000000099").write_text("a file")
    (folder / "checkpoints" / "notes.txt").write_text("notes")
    others = shutil.copytree(folder / "checkpoints" / "000000008", tmp_path / "others")
    (folder / "checkpoints" / "000000098").symlink_to(others)
    (folder / "checkpoints" / "000000097").symlink_to("/nowhere")
    os.mkfifo(folder / "checkpoints" / "000000096")
    assert RunFolder(folder).saved_iteration() == 8
    assert Model.load(folder).iteration == 8
    RunFolder(folder).clear()  # as overwriting does
    left = {"000000099", "notes.txt", "000000098", "000000097", "000000096"}
    assert set(os.listdir(folder / "checkpoints")) == left and os.listdir(others)


def test_write_text_replaces_a_link_and_uses_default_permissions(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("keep")
    path = tmp_path / "file"
    path.symlink_to(outside)
    old = os.umask(0o002)
    try:
        write_text(path, "new")
    finally:
        os.umask(old)
    assert outside.read_text() == "keep" and read_text(path, "it") == "new"
    assert not path.is_symlink() and path.stat().st_mode & 0o777 == 0o664
    assert sorted(os.listdir(tmp_path)) == ["file", "outside"]
    with pytest.raises(UserError, match=r"cannot write .*: No such file"):
        write_text(tmp_path / "none" / "file", "new")
