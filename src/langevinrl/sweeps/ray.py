"""Sweeps on a Ray cluster: one task per job, checkpoints on storage that all nodes share."""

from __future__ import annotations

import logging
import os
import socket
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langevinrl.errors import UserError
from langevinrl.sweeps.job import Outcome, run_job
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.slots import PAUSE, PROCESS, Slot, needs_extra
from langevinrl.sweeps.table import SweepTable

LOST_NODES = 10  # times that a job may lose its node before it is given up
SAVE_SECONDS = 60.0  # that jobs have to save when the sweep is stopped


def run_on_ray(
    folder: SweepFolder,
    jobs: Sequence[Job],
    needs: Sequence[int],
    *,
    retries: int,
    keep_replay: bool,
    quiet: bool,
    address: str | None = None,
    gpus: int = 0,
) -> None:
    """Run the jobs on the cluster at `address`, or on one that is started here and stopped.

    needs: bytes of each job's replay, requested from the scheduler
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with needs_extra("ray"):
        import ray
    _connect(ray, address)
    table = SweepTable(jobs, int(ray.cluster_resources().get("CPU", 1)), quiet)
    try:
        tasks = RayTasks(ray, folder, keep_replay, gpus, retries)
        tasks.run({job: need for job, need in zip(jobs, needs, strict=True) if not job.done}, table)
    finally:
        table.close()
        ray.shutdown()


class RayTasks:
    """Jobs as Ray tasks; Ray restarts those whose node is lost."""

    def __init__(
        self, ray: Any, folder: SweepFolder, keep_replay: bool, gpus: int, retries: int
    ) -> None:
        self.ray, self.retries, self.keep = ray, retries, keep_replay
        self.path = str(folder.path.resolve())
        # max_calls: a fresh process for each job.
        self.task = ray.remote(num_cpus=1, num_gpus=gpus, max_calls=1, max_retries=LOST_NODES)(work)
        self.pending: dict[Any, Job] = {}
        self.tries: Counter[str] = Counter()

    def run(self, needs: dict[Job, int], table: SweepTable) -> None:
        """Run all jobs to their end; Ctrl-C lets them save first."""
        for job, need in needs.items():
            self.submit(job, need)
        try:
            while self.pending:
                ready, _ = self.ray.wait(list(self.pending), timeout=PAUSE)
                for reference in ready:
                    job = self.pending.pop(reference)
                    if self._ended(reference, job) == "failed":
                        self.tries[job.id] += 1
                        if self.tries[job.id] <= self.retries:
                            self.submit(job, needs[job])
                table.update()
        except KeyboardInterrupt:
            self.cancel()
            raise KeyboardInterrupt(
                "Stopped; every run is saved.  The same command goes on."
            ) from None

    def submit(self, job: Job, need: int) -> None:
        task = self.task.options(memory=int(need + PROCESS), name=job.folder.name)
        trust = bool(job.config.imported())  # `go_on` has checked it
        self.pending[task.remote(self.path, job.id, self.keep, trust)] = job

    def _ended(self, reference: Any, job: Job) -> Outcome:
        try:
            outcome: Outcome = self.ray.get(reference)
            return outcome
        except self.ray.exceptions.RayError as error:  # its process or its node is lost
            job.record_error(f"Ray: {error}")
            return "failed"

    def cancel(self) -> None:
        """Interrupt every task and wait until it has saved."""
        references = list(self.pending)
        for reference in references:
            self.ray.cancel(reference, force=False)
        _, left = self.ray.wait(references, num_returns=len(references), timeout=SAVE_SECONDS)
        for reference in left:
            self.ray.cancel(reference, force=True)


def work(path: str, id_: str, keep_replay: bool, trust: bool = False) -> Outcome:
    """Run a job as a Ray task; wait for the lock of a process that died with its node."""
    if not os.environ.get("CUDA_VISIBLE_DEVICES"):
        os.environ.update(Slot((0,)).environment(os.environ))  # before JAX loads
    return run_job(Path(path), id_, keep_replay, wait=True, trusted=trust)


def _connect(ray: Any, address: str | None) -> None:
    if ray.is_initialized():
        return
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        ray.init(address="local", include_dashboard=False, **quiet)
        return
    _require_answer(address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(f"cannot connect to the Ray cluster at {address}: {error}") from error


def _require_answer(address: str) -> None:
    """Raise if nothing listens at the address: Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto":
        return
    if not host or not port.isdigit():
        raise UserError(f"--address {address}: expected auto or HOST:PORT, such as 10.0.0.1:6379")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"no Ray cluster answers at {address}: {error}") from error
