"""Sweeps on this machine: a process per core or GPU, a fresh one for each job."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections import Counter, deque
from collections.abc import Sequence

from langevinrl.storage.files import open_regular
from langevinrl.sweeps.job import EXITS
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.slots import LOG, PAUSE, Workers, find_slots, fit_slots
from langevinrl.sweeps.table import SweepTable

RETRY_SECONDS = 2.0  # before a job that another process holds is checked again


def run_here(
    folder: SweepFolder,
    jobs: Sequence[Job],
    needs: Sequence[int],
    *,
    retries: int,
    keep_replay: bool,
    quiet: bool,
    workers: int | None = None,
) -> None:
    """Run the jobs until all are done, failed too often, or a signal asks for a stop.

    needs: bytes of each job's replay
    workers: jobs at a time
    """
    todo = {job: need for job, need in zip(jobs, needs, strict=True) if not job.done}
    if not todo:
        return
    slots = find_slots(len(todo), workers)
    slots = fit_slots(slots, list(todo.values()), asked=workers is not None)
    table = SweepTable(jobs, len(slots), quiet)
    try:
        with Workers(slots) as processes:
            _LocalSweep(folder, list(todo), processes, retries, keep_replay).run(table)
    finally:
        table.close()
    path = shlex.quote(str(folder.path))
    processes.raise_if_stopped(f"Go on with: langevinrl sweep {path}")


class _LocalSweep:
    """Jobs that wait, run here, or are held by other processes."""

    def __init__(
        self,
        folder: SweepFolder,
        jobs: Sequence[Job],
        workers: Workers,
        retries: int,
        keep_replay: bool,
    ) -> None:
        self.folder, self.workers = folder, workers
        self.retries, self.keep_replay = retries, keep_replay
        self.waiting = deque(jobs)
        self.held: list[tuple[float, Job]] = []  # by other processes; when to check again
        self.tries: Counter[str] = Counter()

    def run(self, table: SweepTable) -> None:
        while True:
            for job, code in self.workers.collect():
                self._handle_end(job, code)
            self._start()
            left = self.waiting or self.held
            if not self.workers.running and (self.workers.signals or not left):
                return
            table.update()
            time.sleep(PAUSE)

    def _start(self) -> None:
        now = time.monotonic()
        self.waiting.extend(job for when, job in self.held if when <= now)
        self.held = [pair for pair in self.held if pair[0] > now]
        while self.waiting and self.workers.has_room:
            job = self.waiting.popleft()
            status = job.status()
            if status == "running":
                self.held.append((now + RETRY_SECONDS, job))
            elif status != "done":
                words = ["langevinrl.sweeps.job", str(self.folder.path), job.id]
                words += ["--keep-replay"] if self.keep_replay else []
                words += ["--trust"] if job.config.imported() else []  # `go_on` has checked it
                job.state.mkdir(parents=True, exist_ok=True)
                self.workers.start(job, words, job.state / LOG)

    def _handle_end(self, job: Job, code: int) -> None:
        """Decide whether a job whose process ended is tried again."""
        if code == EXITS["busy"]:
            self.held.append((time.monotonic() + RETRY_SECONDS, job))
            return
        if self.workers.signals or job.done or code == EXITS["refused"]:
            return
        self.tries[job.id] += 1
        if code != EXITS["failed"]:  # the process recorded no error itself
            job.record_error(_explain(code, job))
        if self.tries[job.id] <= self.retries:
            self.waiting.append(job)


def _explain(code: int, job: Job) -> str:
    try:
        with open_regular(job.state / LOG) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2_000))
            output = file.readall().decode(errors="replace").rstrip()
    except OSError:
        output = ""
    if code == -signal.SIGKILL:
        end = "its process was killed (signal 9): out of memory, perhaps"
    elif code < 0:
        end = f"its process ended by signal {-code} ({signal.Signals(-code).name})"
    else:
        end = f"its process exited with {code} before the run was done"
    return f"{output}\n{end}" if output else end
