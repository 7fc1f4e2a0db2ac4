"""One calm line on the console while a run goes on."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class ProgressLine:
    """One live line: rate, time left, last return.  Away from a terminal, one per evaluation."""

    def __init__(self, label: str, total: int, start: int, quiet: bool = False) -> None:
        self.console = Console(quiet=quiet)
        self.live = self.console.is_terminal
        self.label, self.total = label, total
        self.start: tuple[int, float] | None = None  # iteration and time the rate counts from
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[last]}"),
            console=self.console,
            disable=not self.live,
        )
        self.task = self.progress.add_task(label, total=total, completed=start, rate="", last="")
        self.progress.start()

    def rate(self, iteration: int) -> float:
        """Iterations per second; 0 until it can be told."""
        if self.start is None:
            return 0.0
        first, began = self.start
        return (iteration - first) / max(time.monotonic() - began, 1e-9)

    def say(self, words: str) -> None:
        """A line of its own above the live one."""
        self.console.print(words, highlight=False, soft_wrap=True)

    def warmup(self, done: int, total: int) -> None:
        if done % 100 == 0 or done == total:
            self.progress.update(self.task, last=f"warm-up {done}/{total}")

    def advance(self, iteration: int) -> None:
        if self.start is None:  # so the clock leaves out warm-up and compilation
            self.start = iteration, time.monotonic()
        rate = self.rate(iteration)
        shown = f"{rate:.1f} it/s" if rate else ""
        self.progress.update(self.task, completed=iteration, rate=shown)

    def evaluation(self, iteration: int, mean: float, spread: float) -> None:
        self.progress.update(self.task, last=f"return {mean:.1f} ± {spread:.1f}")
        if not self.live:
            rate = self.rate(iteration)
            left = (self.total - iteration) / rate / 60 if rate else 0.0
            pace = f"  {rate:.1f} it/s  {left:.1f} min left" if rate else ""
            self.say(
                f"{self.label}  {iteration}/{self.total}{pace}  return {mean:.1f} ± {spread:.1f}"
            )

    def close(self) -> None:
        self.progress.stop()
