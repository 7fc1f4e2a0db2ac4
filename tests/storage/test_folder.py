"""Run folders: their kind, files that a new run must not touch, and logs cut on resume."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from langevinrl.errors import UserError
from langevinrl.storage.files import digest_file
from langevinrl.storage.folder import (
    CHECKPOINTS,
    CONFIG,
    EVALUATION_COLUMNS,
    EVALUATIONS,
    METRICS,
    SWEEP,
    RunFolder,
    checkpoint_name,
)
from langevinrl.storage.run_log import RunLog


def evaluation(iterations: int) -> dict[str, Any]:
    row = dict.fromkeys(EVALUATION_COLUMNS, 0) | {"agent": "lql", "env": "Hopper-v4"}
    return row | {"iterations": iterations, "return": 1.5}


def iterations(folder: Path) -> tuple[list[int], list[int]]:
    """What either file holds."""
    lines = (folder / METRICS).read_text().splitlines()
    with (folder / EVALUATIONS).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [json.loads(line)["iterations"] for line in lines], [int(r["iterations"]) for r in rows]


def write(log: RunLog, *when: int) -> None:
    for iteration in when:
        log.write_metrics([{"iterations": iteration, "critic/bellman": 0.25}])
        log.write_evaluations([evaluation(iteration)])


def test_evaluation_columns() -> None:
    expected = "agent env seed iterations env_steps episode return length wall_seconds"
    assert " ".join(EVALUATION_COLUMNS) == expected


def test_lines_are_written_at_once(tmp_path: Path) -> None:
    log = RunLog(RunFolder(tmp_path))
    write(log, 1, 2)
    assert iterations(tmp_path) == ([1, 2], [1, 2])
    log.close()


def test_logs_are_cut_to_the_checkpoint_on_resume(tmp_path: Path) -> None:
    log = RunLog(RunFolder(tmp_path))
    write(log, 1, 2)
    digests = log.digests()
    assert digests == {name: digest_file(tmp_path / name) for name in (METRICS, EVALUATIONS)}
    unbroken = {name: (tmp_path / name).read_bytes() for name in digests}
    write(log, 3, 4)
    log.close()
    log = RunLog(RunFolder(tmp_path), digests)
    assert unbroken == {name: (tmp_path / name).read_bytes() for name in digests}
    write(log, 3)
    log.close()
    assert iterations(tmp_path) == ([1, 2, 3], [1, 2, 3])  # one header, no line twice


def test_new_run_starts_with_empty_logs(tmp_path: Path) -> None:
    (tmp_path / METRICS).write_text("of before it was killed\n")
    log = RunLog(RunFolder(tmp_path))
    log.close()
    assert iterations(tmp_path) == ([], [])


def test_missing_log_is_started_again_on_resume(tmp_path: Path) -> None:
    log = RunLog(RunFolder(tmp_path))
    write(log, 1)
    digests = log.digests()
    log.close()
    (tmp_path / EVALUATIONS).unlink()
    log = RunLog(RunFolder(tmp_path), digests)
    write(log, 2)
    log.close()
    assert iterations(tmp_path) == ([1, 2], [2])


@pytest.mark.parametrize("lost", [1, 3, 12, 10_000])
def test_log_cut_within_a_line_continues_after_its_last_whole_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lost: int
) -> None:
    log = RunLog(RunFolder(tmp_path))
    write(log, 1, 2)
    digests = log.digests()
    log.close()
    for name, (length, _) in digests.items():
        os.truncate(tmp_path / name, max(0, length - lost))
    log = RunLog(RunFolder(tmp_path), digests)
    write(log, 3)
    log.close()
    left = [3] if lost == 10_000 else [1, 3]
    assert iterations(tmp_path) == (left, left)  # every line is whole, the header is there
    said = capsys.readouterr().err
    assert said.count("has lost lines that its checkpoint knew of") == 2 and METRICS in said


def test_full_disk_while_logging_gives_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RunLog(RunFolder(tmp_path))
    write(log, 1)
    log.files[METRICS].close()
    with Path("/dev/full").open("ab", buffering=0) as full:
        log.files[METRICS] = full
        with pytest.raises(UserError, match=r"No space left on device\. There is no"):
            log.write_metrics([{"iterations": 2}])
    log.close()
    assert iterations(tmp_path) == ([1], [1])


def test_kind_of_a_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.kind() == "none" and RunFolder(tmp_path / "nowhere").kind() == "none"
    folder.config.write_text("{}")
    assert folder.kind() == "run"  # before its first checkpoint
    newest = folder.checkpoints / checkpoint_name(7)
    newest.mkdir(parents=True)
    assert folder.kind() == "model"
    (newest / "replay.safetensors").touch()
    assert folder.kind() == "run"
    (tmp_path / SWEEP).touch()
    assert folder.kind() == "sweep"


def test_saved_checkpoints_are_sorted_and_other_names_ignored(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    names = ["000000012", "000000012.old", ".000000013.partial", "best", "1000000000", "12"]
    for name in names:
        (folder.checkpoints / name).mkdir(parents=True)
    (folder.checkpoints / "000000099").touch()  # a file
    found = [path.name for path in folder.saved_checkpoints()]
    assert found == ["000000012.old", "000000012", "1000000000"]


@pytest.mark.parametrize("name", [METRICS, EVALUATIONS, CHECKPOINTS, "versions.json"])
@pytest.mark.parametrize("link", [False, True])
def test_folder_with_files_of_another_program_is_refused(
    name: str, link: bool, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path / "here")
    folder.path.mkdir()
    folder.require_free()
    if link:
        (folder.path / name).symlink_to(tmp_path / "elsewhere")
    else:
        (folder.path / name).mkdir()
    with pytest.raises(UserError, match=f"has {name} but no {CONFIG}"):
        folder.require_free()


def test_last_line_of_evaluations_may_be_incomplete(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.last_evaluation() == 0
    with pytest.raises(UserError, match="not a run folder"):
        folder.read_evaluations()
    folder.evaluations.write_text("iterations,return\n5,1.5\n10,2.5\n15")
    assert [row["return"] for row in folder.read_evaluations()] == ["1.5", "2.5"]
    assert folder.last_evaluation() == 10
