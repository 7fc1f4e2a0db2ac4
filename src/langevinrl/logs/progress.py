"""One progress line on the console."""

from __future__ import annotations

import sys
import time
from typing import IO, cast

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from langevinrl.logs.console import SafeStream

HEARTBEAT = 60.0  # seconds between lines if the output is not a terminal
BAR = (10, 40)  # minimum and maximum width of the bar


class ProgressLine:
    """One live line: iterations, rate, time left and last return.

    If the output is not a terminal, one line per evaluation and one per minute between them.
    """

    def __init__(self, label: str, total: int, start: int, quiet: bool = False) -> None:
        self.console = Console(quiet=quiet, file=cast("IO[str]", SafeStream(sys.stdout)))
        self.label, self.total, self.iteration = label, total, start
        self.start: tuple[int, float] | None = None  # iteration and time the rate counts from
        self.last = ""  # the state of warm-up, or the last return
        self.printed = time.monotonic()
        self.display = Live(console=self.console, get_renderable=self.render)
        self.live = self.console.is_terminal and not quiet
        if self.live:
            self.display.start()

    def rate(self) -> float:
        """Return iterations per second; 0 until it is known."""
        if self.start is None:
            return 0.0
        first, began = self.start
        return (self.iteration - first) / max(time.monotonic() - began, 1e-9)

    def say(self, words: str) -> None:
        """Print a line above the live one, without markup: a path may contain [brackets]."""
        self.console.print(words, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def note(self, words: str) -> None:
        """Show words in place of the last return, such as the state of warm-up."""
        self.last = words
        self._print_if_due()

    def warmup(self, done: int, total: int) -> None:
        self.note(f"warm-up {done}/{total}" if done < total else "compiling")

    def advance(self, iteration: int) -> None:
        self.iteration = iteration
        if self.start is None:  # the rate excludes warm-up and compilation
            self.start, self.last = (iteration, time.monotonic()), ""
        self._print_if_due()

    def evaluation(self, iteration: int, mean: float, std: float) -> None:
        self.iteration, self.last = iteration, f"return {mean:.1f} ± {std:.1f}"
        if not self.live:
            self._print()

    def close(self) -> None:
        self.display.stop()

    def words(self, width: int | None = None) -> str:
        """Return the parts of the line that fit; rate, return and label are dropped first."""
        rate = self.rate()
        parts = {
            "label": self.label,
            "count": f"{self.iteration}/{self.total}",
            "rate": f"{rate:.1f} it/s" if rate else "",
            "left": time_left((self.total - self.iteration) / rate) if rate else "",
            "last": self.last,
        }
        for dropped in ("", "rate", "last", "label"):
            parts.pop(dropped, None)
            line = "  ".join(part for part in parts.values() if part)
            if width is None or len(line) <= width:
                break
        return line

    def render(self) -> RenderableType:
        """Return the live line, with a bar if there is room for one."""
        width = self.console.width - 1
        words, room = Text(self.words(width), no_wrap=True), width - len(self.words())
        if room < BAR[0]:
            return words
        row = Table.grid(padding=(0, 1))
        row.add_row(ProgressBar(self.total, self.iteration, min(room, BAR[1])), words)
        return row

    def _print_if_due(self) -> None:
        if not self.live and time.monotonic() - self.printed >= HEARTBEAT:
            self._print()

    def _print(self) -> None:
        self.printed = time.monotonic()
        self.say(self.words())


def time_left(seconds: float) -> str:
    """Return a duration such as 42 s left, 1.3 min left, 2 h 05 min left or 3.1 days left."""
    if seconds < 60:
        return f"{seconds:.0f} s left"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min left"
    if seconds < 48 * 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes:02d} min left"
    return f"{seconds / 86400:.1f} days left"
