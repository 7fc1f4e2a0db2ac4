"""Where a run's numbers go: JSON lines, a tidy CSV, and one calm line on the console."""

from __future__ import annotations

import csv
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

METRICS, EVALUATIONS = "metrics.jsonl", "evaluations.csv"
EVALUATION_FIELDS = "agent env seed iterations env_steps episode return length wall_seconds".split()


class RunLog:
    """The two log files of a run folder, appended to, and cut back to a checkpoint on resume."""

    def __init__(self, folder: Path, positions: dict[str, int] | None = None) -> None:
        self.paths = {name: folder / name for name in (METRICS, EVALUATIONS)}
        for name, path in self.paths.items():
            path.touch()
            kept = min((positions or {}).get(name, 0), path.stat().st_size)
            with path.open("r+b") as file:
                file.truncate(kept)  # never beyond its end: that would pad with zero bytes
        self.files = {name: path.open("a", newline="") for name, path in self.paths.items()}
        self.table = csv.DictWriter(self.files[EVALUATIONS], EVALUATION_FIELDS)
        if self.paths[EVALUATIONS].stat().st_size == 0:
            self.table.writeheader()

    def metrics(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            self.files[METRICS].write(json.dumps(row) + "\n")
        self.files[METRICS].flush()

    def evaluations(self, rows: Iterable[dict[str, Any]]) -> None:
        self.table.writerows(rows)
        self.files[EVALUATIONS].flush()

    def positions(self) -> dict[str, int]:
        """Bytes written so far, for the checkpoint."""
        for file in self.files.values():
            file.flush()
        return {name: path.stat().st_size for name, path in self.paths.items()}

    def close(self) -> None:
        for file in self.files.values():
            file.close()


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


def versions() -> dict[str, Any]:
    """What a run was made with, enough to make it again."""
    import jax

    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in ("langevinrl", "jax", "jaxlib", "optax", "numpy", "gymnasium", "mujoco"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    devices = [f"{d.platform}: {d.device_kind}" for d in jax.devices()]
    return {**found, "devices": devices, **_git(), "command": sys.argv[1:]}


def _git() -> dict[str, Any]:
    def ask(*words: str) -> str:
        place = Path(__file__).parent
        done = subprocess.run(
            ["git", *words], cwd=place, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        return {
            "commit": ask("rev-parse", "HEAD"),
            "dirty": bool(ask("status", "--porcelain", "-uno")),
        }
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
