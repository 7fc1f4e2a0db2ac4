"""Status of a sweep as a live table; without a terminal, a line when a job has ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.table import Table

from langevinrl.logs.progress import time_left
from langevinrl.sweeps.queue import Job, Status

LINE_SECONDS = 30.0  # between lines without a terminal, unless a job has ended
MAX_ROWS = 12  # running jobs shown


class Summary(NamedTuple):
    """Status of all jobs at one moment."""

    counts: Counter[Status]
    running: list[tuple[Job, dict[str, Any]]]  # with the progress of each
    seconds_left: float | None  # None until a speed is known


class SweepTable:
    """Shows the status of jobs while they run; call `update` as often as you like."""

    def __init__(self, jobs: Sequence[Job], workers: int, quiet: bool = False) -> None:
        self.jobs, self.workers = jobs, workers
        self.console = Console(quiet=quiet)
        self.costs: dict[str, tuple[float, float]] = {}  # seconds to start, and per iteration
        self.finished: set[str] = set()  # jobs that need not be read again
        self.last = time.monotonic(), (0, 0)  # of the last line: time, and jobs done and failed
        self.live = Live(console=self.console, auto_refresh=False, transient=True)
        if self.console.is_terminal:
            self.live.start()

    def summarise(self) -> Summary:
        """Read the status of every job from its files."""
        counts: Counter[Status] = Counter({"done": len(self.finished)})
        running, waiting = [], []
        for job in self.jobs:
            if job.id in self.finished:
                continue
            status, progress = job.status(), job.progress()
            counts[status] += 1
            if speed := speed_of(progress):
                self.costs[job.config.agent] = progress.get("startup", 0.0), 1 / speed
            if status == "done":
                self.finished.add(job.id)
            elif status == "running":
                running.append((job, progress))
            elif status == "waiting":
                waiting.append(job)
        return Summary(counts, running, self._seconds_left(running, waiting))

    def update(self) -> None:
        summary = self.summarise()
        if self.console.is_terminal:
            self.live.update(self._table(summary), refresh=True)
            return
        then, ended = self.last
        now = summary.counts["done"], summary.counts["failed"]
        if now != ended or time.monotonic() - then > LINE_SECONDS:
            self.last = time.monotonic(), now
            self.console.print(describe(summary), highlight=False)

    def close(self) -> None:
        """Stop the live table; print the final status and the errors of failed jobs."""
        summary = self.summarise()
        ended = summary.counts["done"], summary.counts["failed"]
        if self.console.is_terminal:
            self.live.stop()
        if self.console.is_terminal or self.last[1] != ended:
            self.console.print(describe(summary), highlight=False)
        for job in self.jobs:
            if job.id not in self.finished and job.errors:
                self.console.print(f"failed: {job.folder.name}: {job.last_error()}", markup=False)

    def _seconds_left(
        self, running: Sequence[tuple[Job, dict[str, Any]]], waiting: Sequence[Job]
    ) -> float | None:
        """Estimate by each agent's cost, or by the mean of those known."""
        if not self.costs:
            return None
        starts, steps = zip(*self.costs.values(), strict=True)
        mean = sum(starts) / len(starts), sum(steps) / len(steps)
        seconds = 0.0
        for job, progress in [*running, *((job, {}) for job in waiting)]:
            start, step = self.costs.get(job.config.agent, mean)
            seconds += step * ((job.config.iterations or 0) - progress.get("iteration", 0))
            seconds += 0.0 if "first" in progress else start
        return seconds / max(1, self.workers)

    def _table(self, summary: Summary) -> Table:
        title = describe(summary)
        table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for name in ("running", "iterations", "it/s", "return"):
            table.add_column(name, justify="left" if name == "running" else "right")
        for job, progress in summary.running[:MAX_ROWS]:
            done, speed = progress.get("iteration", 0), f"{speed_of(progress):.1f}"
            last = f"{progress['return']:.1f}" if "return" in progress else ""
            table.add_row(job.folder.name, f"{done:,}/{job.config.iterations:,}", speed, last)
        return table


def speed_of(progress: dict[str, Any]) -> float:
    """Return the iterations per second of a job's process; 0 if not known yet."""
    done = progress.get("iteration", 0) - progress.get("first", progress.get("iteration", 0))
    return float(done / progress["seconds"]) if done and progress.get("seconds") else 0.0


def describe(summary: Summary) -> str:
    """Return a line such as: done 12, running 2, failed 0, waiting 76; 31 min left."""
    counts = summary.counts
    names: tuple[Status, ...] = ("done", "running", "failed", "waiting")
    line = ", ".join(f"{name} {counts[name]}" for name in names)
    if summary.seconds_left and counts["running"] + counts["waiting"]:
        line += f"; {time_left(summary.seconds_left)}"
    return line
