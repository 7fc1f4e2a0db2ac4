"""Log files of a run: metrics.jsonl and evaluations.csv.  Needs no JAX."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from langevinrl.storage.files import write_all
from langevinrl.storage.folder import (
    EVALUATION_COLUMNS,
    EVALUATIONS,
    METRICS,
    RunFolder,
    raise_as_disk_error,
)


class RunLog:
    """The two log files of a run folder, open for appending."""

    def __init__(self, folder: RunFolder, positions: dict[str, int] | None = None) -> None:
        """Cut the files to `positions`, their lengths at a checkpoint; without, to nothing."""
        self.folder = folder
        self.paths = {METRICS: folder.metrics, EVALUATIONS: folder.evaluations}
        with raise_as_disk_error(folder):
            for name, path in self.paths.items():
                _cut(path, (positions or {}).get(name, 0))
            # Unbuffered: a line is in the file, or an error was raised.
            self.files = {n: path.open("ab", buffering=0) for n, path in self.paths.items()}
        if self.paths[EVALUATIONS].stat().st_size == 0:
            self._append(EVALUATIONS, _csv_lines([EVALUATION_COLUMNS]))

    def write_metrics(self, rows: Iterable[dict[str, Any]]) -> None:
        self._append(METRICS, "".join(json.dumps(row) + "\n" for row in rows))

    def write_evaluations(self, rows: Iterable[dict[str, Any]]) -> None:
        lines = [[row[name] for name in EVALUATION_COLUMNS] for row in rows]
        self._append(EVALUATIONS, _csv_lines(lines))

    def _append(self, name: str, lines: str) -> None:
        with raise_as_disk_error(self.folder):
            write_all(self.files[name].fileno(), lines.encode())

    def positions(self) -> dict[str, int]:
        """Force the files to disk and return their lengths, for the checkpoint."""
        with raise_as_disk_error(self.folder):
            for file in self.files.values():
                os.fsync(file.fileno())
            return {name: path.stat().st_size for name, path in self.paths.items()}

    def close(self) -> None:
        for file in self.files.values():
            file.close()


def _csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cut(path: Path, length: int) -> None:
    """Shorten a log to its length at a checkpoint, or to the whole lines that are left of that.

    Missing lines cannot be restored; a warning says so, and the run goes on.
    """
    path.touch()
    content = path.read_bytes()[:length]
    whole = content.rfind(b"\n") + 1
    if whole < length:
        print(
            f"langevinrl: {path} has lost lines that its checkpoint knew of: {whole} of {length} "
            "bytes are left in whole lines, and the run goes on after these.",
            file=sys.stderr,
        )
    os.truncate(path, whole)
