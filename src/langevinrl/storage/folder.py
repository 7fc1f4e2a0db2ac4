"""A run folder: every file, column, reader and writer of it, in one place.  Needs no JAX.

config.json      every field of the run
versions.json    what it was made with
spaces.json      what the task observes and how it acts, so that loading needs no environment
metrics.jsonl    losses and values, training's episodes, how the agent samples: a line per seed
evaluations.csv  a row per evaluation episode
bad_numbers.json the batch of an update that gave numbers which are not finite, if one did
resumes.jsonl    a line for each time it was taken up again: from where, with which versions
trackers.json    what trackers call the run, if it has any (docs/logging.md)
checkpoints/     000001000/ and so on: arrays in safetensors, the rest in metadata.json, and
                 manifest.json, by which damage is found
curve.png        return over iterations
video.mp4        what `langevinrl video` recorded; videos/ has those of RecordVideo

The folder of a sweep has sweep.json, its run folders in jobs/, and the standing of each in state/.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langevinrl.errors import UserError, field

CONFIG, VERSIONS, METRICS, EVALUATIONS = (
    "config.json", "versions.json", "metrics.jsonl", "evaluations.csv",
)  # fmt: skip
CHECKPOINTS, CURVE, RESUMES = "checkpoints", "curve.png", "resumes.jsonl"
SPACES, BAD_NUMBERS = "spaces.json", "bad_numbers.json"
VIDEO, VIDEOS, TRACKERS = "video.mp4", "videos", "trackers.json"
SWEEP, JOBS, JOB_STATE, PROGRAMS = "sweep.json", "jobs", "state", "programs"
# Of one job's state: how far it is, what went wrong at each try, that it is done.
PROGRESS, ERRORS, DONE = "progress.json", "error.*.txt", "done.json"
CLAIM = "claim."  # and a number, while a process works on it
METADATA, MANIFEST, ARRAYS = "metadata.json", "manifest.json", ".safetensors"  # of a checkpoint
STATE, REPLAY, ENVS = "state", "replay", "envs"  # its groups of arrays, a file each
EVALUATION_COLUMNS = (
    "agent", "env", "seed", "iterations", "env_steps", "episode", "return", "length",
    "wall_seconds",
)  # fmt: skip


class DiskError(UserError):
    """The disk refused what a run has to write: no slip, so that another try may pass."""

    exit_code = 1


Kind: TypeAlias = Literal["run", "model", "sweep", "none"]


class RunFolder:
    """The folder of one run: RunFolder("runs/cheetah").read_evaluations()."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / CONFIG
        self.versions = self.path / VERSIONS
        self.metrics = self.path / METRICS
        self.evaluations = self.path / EVALUATIONS
        self.checkpoints = self.path / CHECKPOINTS
        self.resumes = self.path / RESUMES
        self.curve = self.path / CURVE
        self.spaces = self.path / SPACES
        self.bad_numbers = self.path / BAD_NUMBERS

    def __str__(self) -> str:
        return str(self.path)

    def kind(self) -> Kind:
        """What lies here: a run, a saved model (weights without replay), a sweep, or none."""
        if (self.path / SWEEP).is_file():
            return "sweep"
        if not self.config.is_file():
            return "none"
        saved = self.saved_checkpoints()
        with_replay = any((path / f"{REPLAY}{ARRAYS}").exists() for path in saved)
        return "model" if saved and not with_replay else "run"

    def require_config(self) -> None:
        """Refuses a folder that holds no run and no model."""
        if not self.config.exists():
            raise UserError(f"{self} is not a run folder: it has no {CONFIG}")

    def require_free(self) -> None:
        """Refuses to begin a run where one lies, or where files of its names are someone else's."""
        if self.config.exists():
            raise UserError(
                f"{self} already holds a run: continue it with `langevinrl resume "
                f"{shlex.quote(str(self))}`, choose another {field('out')}, or replace it with "
                f"{field('overwrite')}"
            )
        taken = [
            path.name
            for path in (self.versions, self.metrics, self.evaluations, self.checkpoints)
            if path.exists() or path.is_symlink()
        ]
        if taken:
            raise UserError(
                f"{self} has {', '.join(taken)} but no {CONFIG}: a new run would write over what "
                f"is not its own. Choose another {field('out')}"
            )

    def is_untouched(self) -> bool:
        """Whether a run here ended before it learned or logged anything: nothing would be lost."""
        logged = [_num_lines(path, 2) for path in (self.metrics, self.evaluations)]
        # The table of evaluations begins with its header.
        return not self.saved_checkpoints() and logged[0] == 0 and logged[1] <= 1

    def clear(self) -> None:
        """Remove all that a run has written here, and nothing else."""
        for checkpoint in self.checkpoints.glob("*"):  # hidden ones too
            if is_our_checkpoint(checkpoint):
                shutil.rmtree(checkpoint)
        files = (self.config, self.versions, self.metrics, self.evaluations, self.resumes)
        for file in (*files, self.spaces, self.curve, self.bad_numbers):
            file.unlink(missing_ok=True)

    def create(self, made_with: dict[str, Any]) -> None:
        """Lay out the folder: a place for checkpoints, and the list of versions last."""
        with _told_in_words(self):
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            self.versions.write_text(json.dumps(made_with, indent=2) + "\n")

    def read_evaluations(self) -> list[dict[str, Any]]:
        """A row per evaluation episode, everything as text."""
        if not self.evaluations.exists():
            raise UserError(f"{self} is not a run folder: it has no {EVALUATIONS}")
        with self.evaluations.open(newline="") as file:
            # A folder copied from a run in progress may end in half a line.
            return [row for row in csv.DictReader(file) if None not in row.values()]

    def last_evaluation(self) -> int:
        """The latest iteration there is an evaluation of; 0 if none."""
        if not self.evaluations.exists():
            return 0
        return max((int(row["iterations"]) for row in self.read_evaluations()), default=0)

    def record_resume(self, iteration: int, made_with: dict[str, Any]) -> None:
        """Note that the run was taken up again here, and with what."""
        with _told_in_words(self), self.resumes.open("a") as file:
            file.write(json.dumps({"iteration": iteration, **made_with}) + "\n")

    def saved_iteration(self) -> int:
        """The iteration of the newest whole checkpoint; 0 if there is none."""
        saved = self.saved_checkpoints()
        return int(saved[-1].stem) if saved else 0

    def saved_checkpoints(self) -> list[Path]:
        """Whole checkpoints, the oldest first; of one iteration the spare copy comes first."""
        found = [path for path in self.checkpoints.glob("*") if _is_whole(path)]
        return sorted(found, key=lambda path: (int(path.stem), not path.suffix))

    def describe_saved(self) -> str:
        """A sentence on what can be gone on from, for whoever tells of a failure."""
        saved = self.saved_checkpoints()
        if not saved:
            return "There is no checkpoint yet"
        return f"The checkpoint of iteration {int(saved[-1].stem)} is kept"


def _num_lines(path: Path, most: int) -> int:
    """Lines of a file, counted to `most`; 0 if there is no file."""
    if not path.exists():
        return 0
    with path.open() as file:
        return sum(1 for _ in itertools.islice(file, most))


def checkpoint_name(iteration: int) -> str:
    """What a checkpoint's folder is called; in order of names they are in order of time."""
    return f"{iteration:09d}"


def draft_of(checkpoint: Path) -> Path:
    """Where a checkpoint is written before it takes its name."""
    return checkpoint.with_name(f".{checkpoint.name}.partial")


def spare_of(checkpoint: Path) -> Path:
    """Where its predecessor of the same name waits until it has taken it."""
    return checkpoint.with_suffix(".old")


def is_our_checkpoint(path: Path) -> bool:
    """Whether a folder carries a name that only we give: whole, spare or partial."""
    ours = re.fullmatch(r"\d{9,}(\.old)?|\.\d{9,}\.partial", path.name)
    return bool(ours) and path.is_dir() and not path.is_symlink()


def _is_whole(path: Path) -> bool:
    ours = re.fullmatch(r"\d{9,}(\.old)?", path.name)
    return bool(ours) and path.is_dir() and not path.is_symlink()


class RunLog:
    """The two log files of a run folder, appended to, and cut back to a checkpoint on resume."""

    def __init__(self, folder: RunFolder, positions: dict[str, int] | None = None) -> None:
        """`positions` are the lengths that a checkpoint knew the files at."""
        self.paths = {METRICS: folder.metrics, EVALUATIONS: folder.evaluations}
        with _told_in_words(folder):
            for name, path in self.paths.items():
                _cut(path, (positions or {}).get(name, 0))
            # Nothing waits in memory: a line is in the file, or an error was raised.
            self.files = {n: path.open("ab", buffering=0) for n, path in self.paths.items()}
        self.folder = folder
        if self.paths[EVALUATIONS].stat().st_size == 0:
            self._append(EVALUATIONS, csv_lines([EVALUATION_COLUMNS]))

    def write_metrics(self, rows: Iterable[dict[str, Any]]) -> None:
        self._append(METRICS, "".join(json.dumps(row) + "\n" for row in rows))

    def write_evaluations(self, rows: Iterable[dict[str, Any]]) -> None:
        lines = [[row[name] for name in EVALUATION_COLUMNS] for row in rows]
        self._append(EVALUATIONS, csv_lines(lines))

    def _append(self, name: str, lines: str) -> None:
        left = memoryview(lines.encode())
        with _told_in_words(self.folder):
            while left:
                left = left[self.files[name].write(left) :]

    def positions(self) -> dict[str, int]:
        """Bytes written so far, which the disk then has, for the checkpoint."""
        with _told_in_words(self.folder):
            for file in self.files.values():
                os.fsync(file.fileno())
            return {name: path.stat().st_size for name, path in self.paths.items()}

    def close(self) -> None:
        for file in self.files.values():
            file.close()


def csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


@contextmanager
def _told_in_words(folder: RunFolder) -> Iterator[None]:
    """A full or vanished disk as the user's to mend."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise DiskError(f"cannot write to {folder}: {reason}. {folder.describe_saved()}") from error


def _cut(path: Path, length: int) -> None:
    """Shorten a log to what a checkpoint knew of it, or to the whole lines that are left of that.

    What is missing cannot be had again; that is said, and the run goes on.
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
