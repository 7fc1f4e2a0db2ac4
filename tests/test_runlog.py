"""Log files are cut back to the checkpoint on resume, and versions are written down."""

from __future__ import annotations

import csv
import json
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import pytest

from langevinrl import runlog
from langevinrl.runlog import EVALUATION_FIELDS, EVALUATIONS, METRICS, ProgressLine, RunLog


def evaluation(iterations: int) -> dict[str, Any]:
    row = dict.fromkeys(EVALUATION_FIELDS, 0) | {"agent": "lql", "env": "Hopper-v4"}
    return row | {"iterations": iterations, "return": 1.5}


def iterations(folder: Path) -> tuple[list[int], list[int]]:
    """What either file holds."""
    lines = (folder / METRICS).read_text().splitlines()
    with (folder / EVALUATIONS).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [json.loads(line)["iterations"] for line in lines], [int(r["iterations"]) for r in rows]


def write(log: RunLog, *when: int) -> None:
    for iteration in when:
        log.metrics([{"iterations": iteration, "critic/bellman": 0.25}])
        log.evaluations([evaluation(iteration)])


def test_columns_are_the_tidy_ones() -> None:
    expected = "agent env seed iterations env_steps episode return length wall_seconds"
    assert " ".join(EVALUATION_FIELDS) == expected


def test_lines_are_on_disk_as_soon_as_they_are_written(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    write(log, 1, 2)
    assert iterations(tmp_path) == ([1, 2], [1, 2])
    log.close()


def test_on_resume_what_came_after_the_checkpoint_is_cut(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    write(log, 1, 2)
    positions = log.positions()
    assert positions == {name: (tmp_path / name).stat().st_size for name in (METRICS, EVALUATIONS)}
    unbroken = {name: (tmp_path / name).read_bytes() for name in positions}
    write(log, 3, 4)
    log.close()
    log = RunLog(tmp_path, positions)
    assert unbroken == {name: (tmp_path / name).read_bytes() for name in positions}
    write(log, 3)
    log.close()
    assert iterations(tmp_path) == ([1, 2, 3], [1, 2, 3])  # one header, no line twice


def test_a_fresh_run_starts_empty(tmp_path: Path) -> None:
    (tmp_path / METRICS).write_text("left over\n")
    log = RunLog(tmp_path)
    log.close()
    assert iterations(tmp_path) == ([], [])


def test_a_log_lost_before_resume_is_begun_anew_not_padded(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    write(log, 1)
    positions = log.positions()
    log.close()
    (tmp_path / EVALUATIONS).unlink()
    log = RunLog(tmp_path, positions)
    write(log, 2)
    log.close()
    assert iterations(tmp_path) == ([1, 2], [2])


def test_versions_say_what_a_run_was_made_with() -> None:
    found = runlog.versions()
    named = {"python", "jax", "numpy", "gymnasium", "mujoco", "commit", "dirty", "devices"}
    assert named <= found.keys()
    assert found["jax"] == jax.__version__
    assert found["devices"] and all(":" in device for device in found["devices"])
    json.dumps(found)


def test_versions_without_git_or_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert runlog._git() == {"commit": None, "dirty": None}

    def absent(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", absent)
    assert runlog.versions()["mujoco"] == "not installed"


def test_away_from_a_terminal_there_is_a_line_per_evaluation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    line = ProgressLine("lql Hopper-v4", total=1000, start=0)
    now[0] = 60.0  # warm-up and compilation
    line.evaluation(50, 1.0, 0.5)
    line.advance(100)
    now[0] += 10.0
    line.advance(200)
    line.evaluation(200, 12.34, 0.5)
    line.close()
    first, second = capsys.readouterr().out.splitlines()
    assert first == "lql Hopper-v4  50/1000  return 1.0 ± 0.5"
    assert second == "lql Hopper-v4  200/1000  10.0 it/s  1.3 min left  return 12.3 ± 0.5"


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine("lql Hopper-v4", total=10, start=0, quiet=True)
    line.advance(1)
    line.evaluation(1, 0.0, 0.0)
    line.close()
    assert capsys.readouterr().out == ""
