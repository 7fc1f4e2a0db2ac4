"""Log files of a run, metrics.jsonl and evaluations.csv, and their digests.  Needs no JAX.

Each checkpoint records size and SHA-256 of the logs up to it, so that a changed log is found.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, TypeAlias

from langevinrl.errors import UserError, field
from langevinrl.storage.files import open_append, open_regular, write_all
from langevinrl.storage.folder import (
    EVALUATION_COLUMNS,
    EVALUATIONS,
    METADATA,
    METRICS,
    RunFolder,
    raise_as_disk_error,
)
from langevinrl.storage.manifest import read_manifest, read_table, require_intact

LOGS = (METRICS, EVALUATIONS)
LogDigests: TypeAlias = Mapping[str, Sequence[Any]]  # size and SHA-256 by the name of a log


class RunLog:
    """The two log files of a run folder, open for appending."""

    def __init__(self, folder: RunFolder, digests: LogDigests | None = None) -> None:
        """Cut the files to their lengths in `digests`, of a checkpoint; without, to nothing."""
        self.folder = folder
        self.files: dict[str, FileIO] = {}
        self.hashes, self.sizes = {}, {}
        with raise_as_disk_error(folder):
            for name in LOGS:
                # Unbuffered: a line is in the file, or an error was raised.
                self.files[name] = file = open_append(folder.path / name)
                kept = _cut(file, folder.path / name, (digests or {}).get(name, (0, ""))[0])
                self.hashes[name], self.sizes[name] = hashlib.sha256(kept), len(kept)
        if self.sizes[EVALUATIONS] == 0:
            self._append(EVALUATIONS, _csv_lines([EVALUATION_COLUMNS]))

    def write_metrics(self, rows: Iterable[dict[str, Any]]) -> None:
        self._append(METRICS, "".join(json.dumps(row) + "\n" for row in rows))

    def write_evaluations(self, rows: Iterable[dict[str, Any]]) -> None:
        lines = [[row[name] for name in EVALUATION_COLUMNS] for row in rows]
        self._append(EVALUATIONS, _csv_lines(lines))

    def _append(self, name: str, lines: str) -> None:
        content = lines.encode()
        with raise_as_disk_error(self.folder):
            write_all(self.files[name].fileno(), content)
        self.hashes[name].update(content)
        self.sizes[name] += len(content)

    def digests(self) -> LogDigests:
        """Force the files to disk and return the digests of all that was written, by name."""
        with raise_as_disk_error(self.folder):
            for file in self.files.values():
                os.fsync(file.fileno())
        return {n: (self.sizes[n], self.hashes[n].hexdigest()) for n in LOGS}

    def close(self) -> None:
        for file in self.files.values():
            file.close()


def find_changed_logs(folder: RunFolder) -> list[str]:
    """Return the names of logs that are not what the run wrote, up to its newest checkpoint.

    A log that has lost lines counts too.  Without an intact checkpoint nothing is known.
    """
    for path in reversed(folder.saved_checkpoints()):
        try:
            digest = read_manifest(path).files[METADATA]
            require_intact(path / METADATA, digest)
            return _changed_logs(folder, read_table(path / METADATA)["logs"])
        except (UserError, LookupError, TypeError):  # damaged, or a model without logs
            continue
    return []


def require_same_logs(folder: RunFolder, digests: LogDigests) -> None:
    """Raise if a log was changed since a checkpoint; one that has lost lines is allowed."""
    for name in _changed_logs(folder, digests):
        path = folder.path / name
        if path.exists() and path.stat().st_size >= digests[name][0]:
            raise UserError(
                f"{path} was changed since its checkpoint was saved. Restore it, or resume with "
                f"{field('accept_changes')} to keep it as it is"
            )


def _changed_logs(folder: RunFolder, digests: LogDigests) -> list[str]:
    return [n for n in LOGS if n in digests and not _has_digest(folder.path / n, *digests[n])]


def _has_digest(path: Path, size: int, sha256: str) -> bool:
    """Return whether the first `size` bytes of a file have this SHA-256."""
    digest = hashlib.sha256()
    try:
        with open_regular(path) as file:
            while size > 0 and (piece := file.read(min(size, 2**20))):
                digest.update(piece)
                size -= len(piece)
    except OSError:
        return False
    return size == 0 and digest.hexdigest() == sha256


def _csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cut(file: FileIO, path: Path, length: int) -> bytes:
    """Shorten a log to its length at a checkpoint, or to the whole lines that are left of that.

    Missing lines cannot be restored; a warning says so, and the run goes on.  Returns the rest.
    """
    content = file.readall()[:length]
    whole = content.rfind(b"\n") + 1
    if whole < length:
        print(
            f"langevinrl: {path} has lost lines that its checkpoint knew of: {whole} of {length} "
            "bytes are left in whole lines, and the run goes on after these.",
            file=sys.stderr,
        )
    file.truncate(whole)
    return content[:whole]
