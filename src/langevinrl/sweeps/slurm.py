"""A sweep on SLURM by submitit: an array of jobs that save, leave and queue again when told to."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langevinrl.errors import UserError
from langevinrl.sweeps.job import Outcome, run_job
from langevinrl.sweeps.queue import Job, SweepFolder, write
from langevinrl.sweeps.slots import PROCESS, Slot
from langevinrl.sweeps.table import SweepTable

LOGS = "slurm"  # below the sweep's folder: what submitit writes
NUMBER = "slurm.txt"  # of a job's state: under which number it was queued
PAUSE = 2.0  # seconds between looks
MOST_TIMEOUTS = 1_000  # how often a job may reach its time limit and go on
AT_ONCE = 1_000  # jobs of the array that may run side by side


class SlurmTask:
    """One job as submitit runs it.  Pickled by submitit, so it holds names and settings only."""

    def __init__(
        self, sweep: str, id_: str, keep_replay: bool, retries: int, trust: bool = False
    ) -> None:
        self.sweep, self.id, self.keep_replay, self.retries = sweep, id_, keep_replay, retries
        self.trust = trust

    def __call__(self) -> Outcome:
        if not os.environ.get("CUDA_VISIBLE_DEVICES"):
            os.environ.update(Slot((0,)).environment(os.environ))  # before JAX loads
        outcome: Outcome = "failed"
        for _ in range(self.retries + 1):
            outcome = self._attempt()
            if outcome != "failed":
                break
        return outcome

    def checkpoint(self) -> Any:
        """What submitit queues when the job has to leave: the same again, which then resumes."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)

    def _attempt(self) -> Outcome:
        """SLURM's warning, which submitit answers by queueing anew, first lets the run save."""
        warned = signal.getsignal(signal.SIGUSR2)
        signal.signal(signal.SIGUSR2, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        try:
            place = Path(self.sweep)
            outcome = run_job(place, self.id, self.keep_replay, wait=True, trust=self.trust)
        finally:
            signal.signal(signal.SIGUSR2, warned)
        if outcome == "stopped" and callable(warned):
            warned(signal.SIGUSR2, None)  # submitit's own: queues `checkpoint()` and exits
        return outcome


def run_on_slurm(
    folder: SweepFolder,
    jobs: Sequence[Job],
    needs: Sequence[int],
    *,
    retries: int,
    keep_replay: bool,
    quiet: bool,
    partition: str | None = None,
    hours: float = 24.0,
    gpus: int = 0,
    cluster: str = "slurm",
) -> None:
    """Queue the jobs that are neither done nor queued already, and watch them to their end.

    Ctrl-C ends the watching only; the jobs go on.
    cluster: "local" runs the same tasks as processes of this machine, for trying it
    """
    queued = _queue()
    todo = [job for job in jobs if not job.done and _number_of(job) not in queued]
    submitted: list[Any] = []
    if todo:
        most = max(need for job, need in zip(jobs, needs, strict=True) if job in todo)
        executor = make_executor(folder, cluster, most, hours, partition, gpus)
        sweep = str(folder.path.resolve())
        tasks = [
            # An importing job is trusted here, or the sweep had been refused.
            SlurmTask(sweep, job.id, keep_replay, retries, trust=bool(job.config.imported()))
            for job in todo
        ]
        submitted = _submit(executor, tasks)
        for job, queued_as in zip(todo, submitted, strict=True):
            job.state.mkdir(parents=True, exist_ok=True)
            write(job.state / NUMBER, queued_as.job_id)
    if cluster == "local":
        _watch(jobs, SweepTable(jobs, len(jobs), quiet), lambda: _still_work(submitted))
    else:
        _watch(jobs, SweepTable(jobs, len(jobs), quiet), lambda: _are_queued(jobs))


def make_executor(
    folder: SweepFolder, cluster: str, need: int, hours: float, partition: str | None, gpus: int
) -> Any:
    """submitit's executor with one CPU a job, memory for its replay, and a time limit."""
    submitit = import_submitit()
    try:
        executor = submitit.AutoExecutor(
            folder=folder.path / LOGS, cluster=cluster, slurm_max_num_timeout=MOST_TIMEOUTS
        )
    except RuntimeError as error:
        raise UserError(f"no SLURM here: {error}") from error
    executor.update_parameters(
        name=folder.name,
        timeout_min=round(60 * hours),
        cpus_per_task=1,
        mem_gb=round(1 + (need + PROCESS) / 2**30, 1),
        gpus_per_node=gpus,
        slurm_array_parallelism=AT_ONCE,
        **({"slurm_partition": partition} if partition else {}),
    )
    return executor


def _submit(executor: Any, tasks: list[SlurmTask]) -> list[Any]:
    """submitit's jobs, queued."""
    failed = import_submitit().core.utils.FailedJobError
    try:
        queued: list[Any] = executor.submit_array(tasks)
    except failed as error:  # a partition or a size that this cluster has not got
        raise UserError(f"SLURM refuses the jobs: {error}") from error
    return queued


def _watch(jobs: Sequence[Job], table: SweepTable, are_there: Callable[[], bool]) -> None:
    """Show the jobs until none is left in the queue, however they ended."""
    try:
        while are_there():
            table.update()
            time.sleep(PAUSE)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "The jobs go on.  The same command watches them again; scancel ends them."
        ) from None
    finally:
        table.close()


def _are_queued(jobs: Sequence[Job]) -> bool:
    return bool(_queue() & {_number_of(job) for job in jobs})


def _still_work(submitted: Sequence[Any]) -> bool:
    return not all([job.done() for job in submitted])  # each asked, so that none stays a zombie


def _number_of(job: Job) -> str:
    path = job.state / NUMBER
    return path.read_text().strip() if path.exists() else ""


def _queue() -> set[str]:
    """Numbers of this user's jobs that wait or run."""
    command = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return set(done.stdout.split())


def import_submitit() -> Any:
    try:
        import submitit
    except ImportError as error:
        raise UserError(f"cannot use SLURM ({error}): pip install 'langevinrl[slurm]'") from error
    return submitit
