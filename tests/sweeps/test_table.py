"""The table of a sweep: what it counts, and the time it says is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sweeping import tiny_configs

from langevinrl.sweeps import claims
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.table import SweepTable, describe, duration


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    """Four jobs of twelve iterations, of which none has begun."""
    return list(SweepFolder.write(tmp_path / "sweep", tiny_configs()).jobs.values())


def tell(job: Job, name: str, **news: object) -> None:
    job.state.mkdir(parents=True, exist_ok=True)
    (job.state / name).write_text(json.dumps(news))


def test_jobs_are_counted_by_their_files(jobs: list[Job]) -> None:
    done, running, failed, _ = jobs
    tell(done, "done.json", iteration=12, first=0, seconds=24.0)
    claims.take(running.state)
    tell(running, "progress.json", iteration=9, first=3, seconds=12.0)
    failed.record_error("Traceback\nValueError: no")
    look = SweepTable(jobs, workers=2, quiet=True).look()
    assert dict(look.counts) == {"done": 1, "running": 1, "failed": 1, "open": 1}
    # Two seconds an iteration: three are left of the one that runs, twelve of the one that waits.
    assert look.seconds_left == pytest.approx(2.0 * (3 + 12) / 2)
    assert describe(look) == "done 1, running 1, failed 1, waiting 1; 15 s left"


def test_no_time_is_told_before_a_rate_is_known(jobs: list[Job]) -> None:
    assert SweepTable(jobs, 2, quiet=True).look().seconds_left is None


def test_away_from_a_terminal_a_line_tells_of_each_end(
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


def test_times_are_told_as_people_say_them() -> None:
    assert [duration(s) for s in (40, 700, 9_000, 9e5)] == ["40 s", "12 min", "2.5 h", "10.4 days"]
