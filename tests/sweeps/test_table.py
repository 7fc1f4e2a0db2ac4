"""The table of a sweep: what it counts, and the time it says is left."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sweeping import tiny_configs

from langevinrl.storage.locks import acquire
from langevinrl.sweeps.job import _Watch
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.table import SweepTable, describe, speed_of


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    """Four jobs of twelve iterations, of which none has begun."""
    return list(SweepFolder.write(tmp_path / "sweep", tiny_configs(4)).jobs.values())


def tell(job: Job, name: str, **news: object) -> None:
    job.state.mkdir(parents=True, exist_ok=True)
    (job.state / name).write_text(json.dumps(news))


def test_summary_counts_jobs_by_their_files(jobs: list[Job]) -> None:
    done, running, failed, _ = jobs
    tell(done, "done.json", iteration=12, first=0, seconds=24.0, startup=7.0)
    running.folder.mkdir(parents=True)
    lock = acquire(running.folder)
    assert lock is not None
    tell(running, "progress.json", iteration=9, first=3, seconds=12.0, startup=8.0)
    failed.record_error("Traceback\nValueError: no")
    summary = SweepTable(jobs, workers=2, quiet=True).summarise()
    lock.release()
    assert dict(summary.counts) == {"done": 1, "running": 1, "failed": 1, "waiting": 1}
    # Two seconds an iteration: 3 are left of the running job; 12 and a start of the waiting one.
    assert summary.seconds_left == pytest.approx((2.0 * (3 + 12) + 8.0) / 2)
    assert describe(summary) == "done 1, running 1, failed 1, waiting 1; 19 s left"


@pytest.mark.parametrize("value", ["x", None, [1], float("nan"), 10**400, True], ids=str)
def test_odd_files_of_a_received_sweep_are_ignored(jobs: list[Job], value: object) -> None:
    tell(jobs[0], "progress.json", iteration=value, first=value, seconds=value, startup=value)
    tell(jobs[0], "error.x.txt")
    table = SweepTable(jobs, 2, quiet=True)
    assert table.summarise().seconds_left is None and jobs[0].status() == "waiting"
    table.close()


def test_no_time_is_given_before_a_speed_is_known(jobs: list[Job]) -> None:
    assert SweepTable(jobs, 2, quiet=True).summarise().seconds_left is None


def test_warm_up_and_compilation_do_not_count_as_iterations(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten seconds of compilation in the first iteration must not become hours."""
    clock = iter([0.0, 2.0, 12.0, 12.5, 13.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    watch, run = _Watch(jobs[0]), cast(Any, SimpleNamespace(iteration=0))
    watch.on_start(run)
    for iteration in (0, 1, 2, 3):
        watch.on_step(
            run, cast(Any, SimpleNamespace(iteration=iteration, warming_up=not iteration))
        )
        if iteration < 2:
            assert speed_of(watch.progress) == 0.0
    assert speed_of(watch.progress) == 2.0 and watch.progress["startup"] == 12.0


def test_without_a_terminal_a_line_is_printed_per_ended_job(
    jobs: list[Job], capsys: pytest.CaptureFixture[str]
) -> None:
    table = SweepTable(jobs, workers=2)
    table.update()
    for job in jobs[:2]:
        tell(job, "done.json", iteration=12, first=0, seconds=1.0)
        table.update()
        table.update()
    jobs[2].record_error("ValueError: no [/x]")
    table.close()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[:3]] == ["done 1", "done 2", "done 2"]
    assert lines[3] == f"failed: {jobs[2].folder.name}: ValueError: no [/x]"
