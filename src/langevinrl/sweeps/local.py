"""A sweep on this machine: one process per core or GPU, a fresh one for each job."""

from __future__ import annotations

import shlex
import signal
import subprocess
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from langevinrl.errors import Interrupted, free_signals
from langevinrl.sweeps.job import EXITS
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.slots import Slot, start_process
from langevinrl.sweeps.table import SweepTable

LOG = "log.txt"  # what a job's process prints
PAUSE = 0.5  # seconds between looks
LOOK_AGAIN = 2.0  # seconds before a job that another process holds is looked at again


class Started(NamedTuple):
    """A job and its process."""

    job: Job
    process: subprocess.Popen[bytes]


class LocalWorkers:
    """Runs jobs in slots until all are done, failed too often, or a stop is asked for."""

    def __init__(
        self, folder: SweepFolder, jobs: Sequence[Job], slots: list[Slot], retries: int, keep: bool
    ) -> None:
        self.folder, self.slots, self.retries, self.keep = folder, slots, retries, keep
        self.waiting = deque(jobs)
        self.elsewhere: list[tuple[float, Job]] = []  # held by others; when to look again
        self.running: dict[int, Started] = {}  # by slot
        self.tries: Counter[str] = Counter()
        self.signals = 0
        self.first: int = signal.SIGINT  # the signal that ended it

    def run(self, table: SweepTable) -> None:
        """The sweep, to its end or to a signal; leaves no process behind."""
        names = free_signals()
        old = {name: signal.signal(name, self._on_signal) for name in names}
        try:
            while self.running or (not self.signals and (self.waiting or self.elsewhere)):
                self._collect()
                if not self.signals:
                    self._start()
                table.update()
                time.sleep(PAUSE)
        finally:
            self._end_all()
            for name, handler in old.items():
                signal.signal(name, handler)
        if self.signals:
            raise Interrupted(
                "Stopped; every run is saved.  "
                f"Go on with: langevinrl sweep {shlex.quote(str(self.folder.path))}",
                self.first,
            )

    def _on_signal(self, number: int, _: Any) -> None:
        """The first asks every job to save and stop; the second does not wait."""
        self.signals += 1
        self.first = number if self.signals == 1 else self.first
        for started in self.running.values():
            started.process.send_signal(signal.SIGTERM if self.signals == 1 else signal.SIGKILL)

    def _start(self) -> None:
        now = time.monotonic()
        due = [job for when, job in self.elsewhere if when <= now]
        self.elsewhere = [pair for pair in self.elsewhere if pair[0] > now]
        self.waiting.extend(due)
        for slot in range(len(self.slots)):
            while slot not in self.running and self.waiting:
                job = self.waiting.popleft()
                standing = job.standing()
                if standing == "running":
                    self.elsewhere.append((now + LOOK_AGAIN, job))
                elif standing != "done":
                    self.running[slot] = self._spawn(job, self.slots[slot])

    def _spawn(self, job: Job, slot: Slot) -> Started:
        job.state.mkdir(parents=True, exist_ok=True)
        words = ["langevinrl.sweeps.job", str(self.folder.path), job.id]
        words += ["--keep-replay"] if self.keep else []
        words += ["--trust"] if job.config.imported() else []  # or the sweep had been refused
        return Started(job, start_process(words, slot, job.state / LOG))

    def _collect(self) -> None:
        for slot, started in list(self.running.items()):
            code = started.process.poll()
            if code is None:
                continue
            del self.running[slot]
            self._judge(started.job, code)

    def _judge(self, job: Job, code: int) -> None:
        """Whether a job whose process ended is tried again."""
        if code == EXITS["busy"]:
            self.elsewhere.append((time.monotonic() + LOOK_AGAIN, job))
            return
        if self.signals or code in (EXITS["done"], EXITS["refused"]):
            return
        self.tries[job.id] += 1
        if code not in EXITS.values():  # it could not say itself what happened
            job.record_error(_explain(code, job))
        if self.tries[job.id] <= self.retries:
            self.waiting.append(job)

    def _end_all(self) -> None:
        for started in self.running.values():
            started.process.kill()
            started.process.wait()


def _explain(code: int, job: Job) -> str:
    try:
        last = (job.state / LOG).read_text(errors="replace").rstrip()[-2000:]
    except OSError:
        last = ""
    if code == -signal.SIGKILL:
        what = "its process was killed (signal 9): out of memory, perhaps"
    elif code < 0:
        what = f"its process ended by signal {-code} ({signal.Signals(-code).name})"
    else:
        what = f"its process exited with {code}"
    return f"{last}\n{what}" if last else what
