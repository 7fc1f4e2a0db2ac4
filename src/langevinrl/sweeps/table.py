"""How a sweep stands, as one live table; away from a terminal, a line when something changed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.table import Table

from langevinrl.sweeps.queue import Job, Standing

QUIET_LINES = 30.0  # seconds between lines away from a terminal, unless a job ended
MOST_ROWS = 12  # running jobs shown


class Look(NamedTuple):
    """One look at all jobs."""

    counts: Counter[Standing]
    running: list[tuple[Job, dict[str, Any]]]  # with how far each is
    seconds_left: float | None  # None until a rate is known


class SweepTable:
    """Shows the standing of jobs while they run; `update` as often as you like."""

    def __init__(self, jobs: Sequence[Job], workers: int, quiet: bool = False) -> None:
        self.jobs, self.workers = jobs, workers
        self.console = Console(quiet=quiet)
        self.seconds_each: dict[str, float] = {}  # for an iteration, by agent
        self.finished: set[str] = set()  # jobs that need no second look
        self.last = time.monotonic(), (0, 0)  # the last line: when, and how many had ended
        self.live = Live(console=self.console, auto_refresh=False, transient=True)
        if self.console.is_terminal:
            self.live.start()

    def look(self) -> Look:
        """Read every job's standing from its files."""
        counts: Counter[Standing] = Counter({"done": len(self.finished)})
        running, waiting = [], []
        for job in self.jobs:
            if job.id in self.finished:
                continue
            standing, news = job.standing(), job.progress()
            counts[standing] += 1
            if rate := rate_of(news):
                self.seconds_each[job.config.agent] = 1 / rate
            if standing == "done":
                self.finished.add(job.id)
            elif standing == "running":
                running.append((job, news))
            elif standing == "open":
                waiting.append(job)
        return Look(counts, running, self._seconds_left(running, waiting))

    def update(self) -> None:
        look = self.look()
        if self.console.is_terminal:
            self.live.update(self._table(look), refresh=True)
            return
        then, ended = self.last
        now = look.counts["done"], look.counts["failed"]
        if now != ended or time.monotonic() - then > QUIET_LINES:
            self.last = time.monotonic(), now
            self.console.print(describe(look), highlight=False)

    def close(self) -> Look:
        """Stop the live table; the last look, printed."""
        if self.console.is_terminal:
            self.live.stop()
        look = self.look()
        if self.console.is_terminal or self.last[1] != (look.counts["done"], look.counts["failed"]):
            self.console.print(describe(look), highlight=False)
        for job in self.jobs:
            if job.id not in self.finished and job.errors:
                self.console.print(f"failed: {job.folder.name}: {job.last_error()}", markup=False)
        return look

    def _seconds_left(
        self, running: Sequence[tuple[Job, dict[str, Any]]], waiting: Sequence[Job]
    ) -> float | None:
        """By each agent's own rate, or by the mean of those known; None before there is one."""
        known = self.seconds_each
        if not known:
            return None
        mean = sum(known.values()) / len(known)
        left = [(job, news.get("iteration", 0)) for job, news in running]
        left += [(job, 0) for job in waiting]
        seconds = [
            known.get(job.config.agent, mean) * ((job.config.iterations or 0) - done)
            for job, done in left
        ]
        return sum(seconds) / max(1, self.workers)

    def _table(self, look: Look) -> Table:
        table = Table(title=describe(look), title_justify="left", box=None, padding=(0, 2, 0, 0))
        for name in ("running", "iterations", "it/s", "return"):
            table.add_column(name, justify="left" if name == "running" else "right")
        for job, news in look.running[:MOST_ROWS]:
            done, rate = news.get("iteration", 0), f"{rate_of(news):.1f}"
            last = f"{news['return']:.1f}" if "return" in news else ""
            table.add_row(job.folder.name, f"{done:,}/{job.config.iterations:,}", rate, last)
        return table


def rate_of(news: dict[str, Any]) -> float:
    """Iterations per second of a job's process; 0 until it can be told."""
    done = news.get("iteration", 0) - news.get("first", 0)
    return float(done / news["seconds"]) if done and news.get("seconds") else 0.0


def describe(look: Look) -> str:
    """done 12, running 2, failed 0, waiting 76; 31 min left"""
    counts = look.counts
    words = f"done {counts['done']}, running {counts['running']}, failed {counts['failed']}, "
    words += f"waiting {counts['open']}"
    if look.seconds_left and counts["running"] + counts["open"]:
        words += f"; {duration(look.seconds_left)} left"
    return words


def duration(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3.5 h, 4.1 days."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
