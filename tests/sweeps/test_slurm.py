"""A sweep on a real SLURM of one node, and by submitit's local executor."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import with_variable
from slurm_cluster import SlurmCluster, missing_programs, slurm_cluster
from sweeping import TINY, assert_same, run_in_this_process, tiny_configs, until

from langevinrl.errors import UserError
from langevinrl.storage.folder import RunFolder
from langevinrl.sweeps.grid import make_config
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.slurm import NUMBER
from langevinrl.sweeps.start import sweep

pytest.importorskip("submitit")
needs_slurm = pytest.mark.skipif(bool(missing_programs()), reason=f"no {missing_programs()}")
LONG = {"iterations": 1_500, "eval_every": 750, "checkpoint_every": 100_000}


@pytest.fixture(autouse=True)
def quiet_submitit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without accounting, submitit says at each look that it cannot tell a job's state."""
    monkeypatch.setattr(logging.getLogger("submitit"), "level", logging.ERROR)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """A cluster that this process's commands reach."""
    with slurm_cluster() as started, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(started.config))
        yield started


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same runs, never cut, on this machine."""
    out = tmp_path_factory.mktemp("sweep") / "local"
    return run_in_this_process(tiny_configs(2, **LONG), out)


def has_begun(job: Job) -> bool:
    metrics = RunFolder(job.folder).metrics
    return metrics.exists() and metrics.stat().st_size > 0


def resumed_from(job: Job) -> int:
    """Where a run was taken up again; 0 if that was its beginning."""
    lines = RunFolder(job.folder).resumes.read_text().splitlines()
    assert len(lines) == 1
    return int(lines[0].split('"iteration": ')[1].split(",")[0])


@needs_slurm
def test_preempted_job_saves_is_queued_again_and_continues_exactly(
    cluster: SlurmCluster, local: Path, tmp_path: Path
) -> None:
    """One gets SLURM's warning, the other is put back by its administrator."""
    out, configs = tmp_path / "slurm", tiny_configs(2, **LONG)
    warned, requeued = jobs = list(SweepFolder.write(out, configs).jobs.values())

    def disturb() -> None:
        until(lambda: all(has_begun(job) for job in jobs))
        numbers = [(job.state / NUMBER).read_text().strip() for job in jobs]
        cluster.run("scancel", "--signal=USR2", "--batch", numbers[0])
        cluster.run("scontrol", "requeue", numbers[1])

    thread = threading.Thread(target=disturb)
    thread.start()
    sweep(configs, out, backend="slurm", quiet=True, seeds_per_process="one", hours=12.0)
    thread.join()
    assert all(job.done for job in jobs)
    # Both saved before they left, though no checkpoint was due.
    assert resumed_from(warned) > 0 and resumed_from(requeued) > 0
    assert_same(out, local)


@needs_slurm
def test_ctrl_c_keeps_slurm_jobs_and_they_are_not_queued_twice(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job may lack
    out, configs = tmp_path / "slurm", tiny_configs(2, **LONG)
    jobs = list(SweepFolder.write(out, configs).jobs.values())

    def interrupt() -> None:
        until(lambda: all(has_begun(job) for job in jobs))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt, match="The jobs go on"):
        sweep(configs, out, backend="slurm", quiet=True, seeds_per_process="one")
    thread.join()
    sweep(configs, out, backend="slurm", quiet=True, seeds_per_process="one")
    assert all(job.done and not RunFolder(job.folder).resumes.exists() for job in jobs)
    assert len(list((out / "slurm").glob("*_submitted.pkl"))) == len(jobs)


def test_preempted_job_continues_exactly_with_the_local_executor(tmp_path: Path) -> None:
    out, configs = tmp_path / "submitit", tiny_configs(1, **LONG | {"iterations": 1_000})
    (job,) = SweepFolder.write(out, configs).jobs.values()

    def warn() -> None:
        until(lambda: has_begun(job))
        number = (job.state / NUMBER).read_text().strip()
        [process] = with_variable("SUBMITIT_LOCAL_JOB_ID", number)
        os.kill(process, signal.SIGUSR2)

    thread = threading.Thread(target=warn)
    thread.start()
    sweep(configs, out, backend="slurm", cluster="local", quiet=True, seeds_per_process="one")
    thread.join()
    assert resumed_from(job) > 0
    assert_same(out, run_in_this_process(configs, tmp_path / "calm"))


def test_missing_slurm_gives_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="no SLURM here"):
        sweep([make_config(TINY)], tmp_path / "sweep", backend="slurm", quiet=True)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(UserError, match=r"pip install 'langevinrl\[slurm\]'"):
        sweep([make_config(TINY)], tmp_path / "sweep", backend="slurm", quiet=True)
