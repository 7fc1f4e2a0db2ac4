"""One calm line on the console while a run goes on."""

from __future__ import annotations

import time

from rich.console import Console, RenderableType
from rich.progress import Progress, ProgressColumn, Task
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

HEARTBEAT = 60.0  # seconds between lines away from a terminal
BAR = (10, 40)  # columns it takes: no bar is drawn below the first


class ProgressLine:
    """One live line: how far, how fast, time left, last return.

    Away from a terminal, a line per evaluation and one a minute between them.
    """

    def __init__(self, label: str, total: int, start: int, quiet: bool = False) -> None:
        self.console = Console(quiet=quiet)
        self.live = self.console.is_terminal
        self.label, self.total, self.iteration = label, total, start
        self.start: tuple[int, float] | None = None  # iteration and time the rate counts from
        self.last = ""  # how the warm-up or the last evaluation went
        self.told = time.monotonic()
        self.progress = Progress(
            _Bar(self), _Words(self), console=self.console, disable=not self.live
        )
        self.task = self.progress.add_task(label, total=total, completed=start)
        self.progress.start()

    def rate(self) -> float:
        """Iterations per second; 0 until it can be told."""
        if self.start is None:
            return 0.0
        first, began = self.start
        return (self.iteration - first) / max(time.monotonic() - began, 1e-9)

    def say(self, words: str) -> None:
        """A line of its own above the live one, as it is: a path may hold [brackets] or :signs:."""
        self.console.print(words, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def warmup(self, done: int, total: int) -> None:
        self.last = f"warm-up {done}/{total}" if done < total else "compiling"
        self._beat()

    def advance(self, iteration: int) -> None:
        self.iteration = iteration
        if self.start is None:  # so the clock leaves out warm-up and compilation
            self.start, self.last = (iteration, time.monotonic()), ""
        self.progress.update(self.task, completed=iteration)
        self._beat()

    def evaluation(self, iteration: int, mean: float, spread: float) -> None:
        self.iteration, self.last = iteration, f"return {mean:.1f} ± {spread:.1f}"
        if not self.live:
            self._tell()

    def close(self) -> None:
        self.progress.stop()

    def words(self, width: int | None = None) -> str:
        """The line's parts, as many as fit: of a narrow one go the rate, the return, the label."""
        rate = self.rate()
        ahead = time_left((self.total - self.iteration) / rate) if rate else ""
        parts = {
            "label": self.label,
            "count": f"{self.iteration}/{self.total}",
            "rate": f"{rate:.1f} it/s" if rate else "",
            "left": ahead,
            "last": self.last,
        }
        for dropped in ("", "rate", "last", "label"):
            parts.pop(dropped, None)
            line = "  ".join(part for part in parts.values() if part)
            if width is None or len(line) <= width:
                break
        return line

    def _beat(self) -> None:
        if not self.live and time.monotonic() - self.told >= HEARTBEAT:
            self._tell()

    def _tell(self) -> None:
        self.told = time.monotonic()
        self.say(self.words())


class _Words(ProgressColumn):
    """The line's words; never cut short of the total and the time left."""

    def __init__(self, line: ProgressLine) -> None:
        super().__init__(Column(no_wrap=True))
        self.line = line

    def render(self, task: Task) -> Text:
        return Text(self.line.words(self.line.console.width - 1))


class _Bar(ProgressColumn):
    """A bar in the room that the words leave; none if that is little."""

    def __init__(self, line: ProgressLine) -> None:
        super().__init__(Column(no_wrap=True))
        self.line = line

    def render(self, task: Task) -> RenderableType:
        room = self.line.console.width - len(self.line.words()) - 1
        if room < BAR[0]:
            return Text("")
        return ProgressBar(total=task.total, completed=task.completed, width=min(room, BAR[1]))


def time_left(seconds: float) -> str:
    """42 s left, 1.3 min left, 2 h 05 min left, 3.1 days left."""
    if seconds < 60:
        return f"{seconds:.0f} s left"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min left"
    if seconds < 48 * 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes:02d} min left"
    return f"{seconds / 86400:.1f} days left"
