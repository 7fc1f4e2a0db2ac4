"""Jobs on a real SLURM: an array, a failure, and one that is put back into the queue."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import with_variable
from slurm_cluster import SlurmCluster, missing_programs, slurm_cluster
from standins import RequeuedCount, count_to, counted, python_path, refuse, wait_for

submitit: Any = pytest.importorskip("submitit")
pytestmark = pytest.mark.skipif(bool(missing_programs()), reason=f"no {missing_programs()}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """A cluster that this process's commands reach, whose jobs find the stand-ins."""
    with slurm_cluster() as started, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(started.config))
        patch.setenv("PYTHONPATH", python_path())
        # Without accounting, submitit says at each look that it cannot tell a job's state.
        patch.setattr(logging.getLogger("submitit"), "level", logging.ERROR)
        yield started


def executor(folder: Path, cluster: str = "slurm") -> Any:
    """One CPU a job, at most two at a time, half a day."""
    made = submitit.AutoExecutor(folder=folder / "logs" / "%j", cluster=cluster)
    made.update_parameters(timeout_min=720, cpus_per_task=1, slurm_array_parallelism=2)
    return made


def wait_until_done(jobs: list[Any], seconds: float = 40.0) -> None:
    """Return when all have a result or a failure, of which both leave a file."""
    end = time.monotonic() + seconds
    while not all(job.paths.result_pickle.exists() for job in jobs):
        if time.monotonic() > end:
            raise TimeoutError("\n".join(str(job.stderr()) for job in jobs))
        time.sleep(0.1)


def test_an_array_runs_through(cluster: SlurmCluster, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("first", "second", "third")]
    jobs = executor(tmp_path).map_array(count_to, [str(path) for path in paths], [3] * 3)
    wait_until_done(jobs)
    assert [job.result() for job in jobs] == [str(path) for path in paths]
    assert all(counted(path)[0] == [0, 1, 2] for path in paths)
    assert len({job.job_id.partition("_")[0] for job in jobs}) == 1


def test_a_failure_comes_back_with_its_trace(cluster: SlurmCluster, tmp_path: Path) -> None:
    job = executor(tmp_path).submit(refuse, "no such agent")
    wait_until_done([job])
    assert isinstance(job.exception(), submitit.core.utils.FailedJobError)
    assert "ValueError: no such agent" in str(job.exception())


def test_a_requeued_job_goes_on_from_where_it_was(cluster: SlurmCluster, tmp_path: Path) -> None:
    """One is told to leave and puts itself back; the other is put back, and killed if it stays."""
    told, killed = paths = [tmp_path / name for name in ("told", "killed")]
    made = executor(tmp_path)
    jobs = [made.submit(RequeuedCount(), str(path), 25, "SLURM_RESTART_COUNT") for path in paths]
    wait_for(paths)
    jobs[0]._interrupt()
    cluster.run("scontrol", "requeue", jobs[1].job_id)
    wait_until_done(jobs)
    assert [job.result() for job in jobs] == [str(told), str(killed)]
    for path in paths:
        numbers, restarts = counted(path)
        assert numbers == list(range(25))
        assert restarts[0] == "" and restarts[-1] == "1"


def test_the_same_job_without_a_cluster_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", python_path())
        job = executor(tmp_path, "local").submit(RequeuedCount(), str(path), 8, "")
        wait_for([path])
        # Not job._interrupt(): that ends the process that watches the job, not the job.
        [process] = with_variable("SUBMITIT_LOCAL_JOB_ID", job.job_id)
        os.kill(process, signal.SIGUSR2)
        assert job.result() == str(path)
    assert counted(path)[0] == list(range(8))
    assert "Requeued job" in job.stdout()
