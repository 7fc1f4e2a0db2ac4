"""Sweeps on SLURM with submitit: an array of jobs that save and queue again when preempted."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langevinrl.errors import UserError
from langevinrl.storage.files import read_text
from langevinrl.sweeps.job import Outcome, run_job
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.slots import PROCESS, Slot, needs_extra
from langevinrl.sweeps.table import SweepTable

LOGS = "slurm"  # folder for submitit's files, below the sweep's folder
NUMBER = "slurm.txt"  # file in a job's state with its SLURM number
PAUSE = 2.0  # seconds between checks
MAX_TIMEOUTS = 1_000  # times that a job may reach its time limit and go on
MAX_RUNNING = 1_000  # jobs of the array that may run at a time


class SlurmTask:
    """One job for submitit, which pickles it: it holds names and settings only."""

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
        """Return what submitit queues when the job is preempted: the same task, which resumes."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)

    def _attempt(self) -> Outcome:
        """Run the job; on SLURM's warning let the run save before submitit queues it again."""
        warned = signal.getsignal(signal.SIGUSR2)
        signal.signal(signal.SIGUSR2, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        try:
            place = Path(self.sweep)
            outcome = run_job(place, self.id, self.keep_replay, wait=True, trusted=self.trust)
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
    """Queue the jobs that are neither done nor queued, and watch them to their end.

    Ctrl-C ends the watching only; the jobs go on.
    cluster: "local" runs the tasks as processes of this machine, for tests
    """
    queued = _queue()
    todo = [job for job in jobs if not job.done and _number_of(job) not in queued]
    submitted: list[Any] = []
    if todo:
        most = max(need for job, need in zip(jobs, needs, strict=True) if job in todo)
        executor = make_executor(folder, cluster, most, hours, partition, gpus)
        sweep = str(folder.path.resolve())
        tasks = [
            # `go_on` has checked that the names it imports are trusted.
            SlurmTask(sweep, job.id, keep_replay, retries, trust=bool(job.config.imported()))
            for job in todo
        ]
        submitted = _submit(executor, tasks)
        for job, queued_as in zip(todo, submitted, strict=True):
            job.write(NUMBER, queued_as.job_id)
    table = SweepTable(jobs, len(jobs), quiet)
    if cluster == "local":
        # Asks each job, so that none stays a zombie.
        _watch(table, lambda: not all([job.done() for job in submitted]))
    else:
        _watch(table, lambda: bool(_queue() & {_number_of(job) for job in jobs}))


def make_executor(
    folder: SweepFolder, cluster: str, need: int, hours: float, partition: str | None, gpus: int
) -> Any:
    """Return submitit's executor: one CPU per job, memory for its replay, a time limit."""
    with needs_extra("slurm"):
        import submitit
    try:
        executor = submitit.AutoExecutor(
            folder=folder.path / LOGS, cluster=cluster, slurm_max_num_timeout=MAX_TIMEOUTS
        )
    except RuntimeError as error:
        raise UserError(f"no SLURM here: {error}") from error
    executor.update_parameters(
        name=folder.name,
        timeout_min=round(60 * hours),
        cpus_per_task=1,
        mem_gb=round(1 + (need + PROCESS) / 2**30, 1),
        gpus_per_node=gpus,
        slurm_array_parallelism=MAX_RUNNING,
        **({"slurm_partition": partition} if partition else {}),
    )
    return executor


def _submit(executor: Any, tasks: list[SlurmTask]) -> list[Any]:
    """Queue the tasks; return submitit's jobs."""
    with needs_extra("slurm"):
        import submitit
    try:
        return list(executor.submit_array(tasks))
    except submitit.core.utils.FailedJobError as error:  # no such partition, or jobs too large
        raise UserError(f"SLURM refuses the jobs: {error}") from error


def _watch(table: SweepTable, is_working: Callable[[], bool]) -> None:
    """Show the jobs until none is left in the queue."""
    try:
        while is_working():
            table.update()
            time.sleep(PAUSE)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "The jobs go on.  The same command watches them again; scancel ends them."
        ) from None
    finally:
        table.close()


def _number_of(job: Job) -> str:
    path = job.state / NUMBER
    return read_text(path, "a job's number").strip() if path.exists() else ""


def _queue() -> set[str]:
    """Return the numbers of this user's jobs that wait or run."""
    command = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return set(done.stdout.split())
