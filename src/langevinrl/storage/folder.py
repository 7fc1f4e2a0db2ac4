"""Layout of run folders and sweep folders.  Needs no JAX.

config.json      every field of the run
versions.json    versions of Python and of packages, devices, commit and command
metrics.jsonl    losses and values, training episodes, sampler statistics: a line per seed
evaluations.csv  a row per evaluation episode
bad_numbers.json the batch of an update that gave NaN or infinity, if one did
resumes.jsonl    a line per resume: its iteration and versions
trackers.json    the names of the run in trackers, if it has any (docs/logging.md)
checkpoints/     000001000/ and so on: arrays in safetensors, the rest in metadata.json, and
                 manifest.json, which shows damage
curve.png        return over iterations
video.mp4        written by `langevinrl video`; videos/ has those of RecordVideo
lock.N           while a process trains here

A sweep folder has sweep.json, its run folders in jobs/, and the state of each job in state/.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langevinrl.errors import UserError, field
from langevinrl.storage.files import (
    DiskError,
    open_append,
    open_regular,
    read_text,
    reason_of,
    require_inside,
    write_all,
    write_text,
)

CONFIG, VERSIONS, METRICS, EVALUATIONS = (
    "config.json", "versions.json", "metrics.jsonl", "evaluations.csv",
)  # fmt: skip
CHECKPOINTS, CURVE, RESUMES = "checkpoints", "curve.png", "resumes.jsonl"
BAD_NUMBERS = "bad_numbers.json"
VIDEO, VIDEOS, TRACKERS = "video.mp4", "videos", "trackers.json"
SWEEP, JOBS, JOB_STATE, PROGRAMS = "sweep.json", "jobs", "state", "programs"
# State of a job: its progress, the error of each try, and that it is done.
PROGRESS, ERRORS, DONE = "progress.json", "error.*.txt", "done.json"
MAX_LOG = 2**30  # bytes of a log that are read
METADATA, MANIFEST, ARRAYS = "metadata.json", "manifest.json", ".safetensors"  # of a checkpoint
STATE, REPLAY, ENVS = "state", "replay", "envs"  # its groups of arrays, a file each
EVALUATION_COLUMNS = (
    "agent", "env", "seed", "iterations", "env_steps", "episode", "return", "length",
    "wall_seconds",
)  # fmt: skip


Kind: TypeAlias = Literal["run", "model", "sweep", "none"]


class RunFolder:
    """The folder of one run: RunFolder("runs/cheetah").read_evaluations()."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.shown = str(path)  # in messages
        self.config = self.path / CONFIG
        self.versions = self.path / VERSIONS
        self.metrics = self.path / METRICS
        self.evaluations = self.path / EVALUATIONS
        self.checkpoints = self.path / CHECKPOINTS
        self.resumes = self.path / RESUMES
        self.curve = self.path / CURVE
        self.bad_numbers = self.path / BAD_NUMBERS

    def __str__(self) -> str:
        return self.shown

    def kind(self) -> Kind:
        """Return what the folder holds; a model has weights without a replay buffer."""
        if (self.path / SWEEP).is_file():
            return "sweep"
        if not self.config.is_file():
            return "none"
        saved = self.saved_checkpoints()
        with_replay = any((path / f"{REPLAY}{ARRAYS}").exists() for path in saved)
        return "model" if saved and not with_replay else "run"

    def require_config(self) -> None:
        """Raise if the folder holds neither a run nor a model."""
        if not self.config.exists():
            raise UserError(f"{self} is not a run folder: it has no {CONFIG}")

    def require_free(self) -> None:
        """Raise if the folder holds a run, or files with the names of a run's."""
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
        """Return whether the run here ended before it learned or logged anything."""
        logged = [_num_lines(path, 2) for path in (self.metrics, self.evaluations)]
        return not self.saved_checkpoints() and logged[0] == 0 and logged[1] <= 1  # its header

    def clear(self) -> None:
        """Remove the files that a run has written here, and no others."""
        require_inside(self.path, self.checkpoints)
        for checkpoint in self.checkpoints.glob("*"):  # hidden ones too
            if is_our_checkpoint(checkpoint):
                shutil.rmtree(checkpoint)
        files = (self.config, self.versions, self.metrics, self.evaluations, self.resumes)
        for file in (*files, self.curve, self.bad_numbers):
            file.unlink(missing_ok=True)

    def create(self, made_with: dict[str, Any]) -> None:
        """Create the folder for checkpoints, and write versions.json last."""
        with raise_as_disk_error(self):
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        write_text(self.versions, json.dumps(made_with, indent=2) + "\n")

    def read_evaluations(self) -> list[dict[str, Any]]:
        """Return a row per evaluation episode, every value as text."""
        if not self.evaluations.exists():
            raise UserError(f"{self} is not a run folder: it has no {EVALUATIONS}")
        text = read_text(self.evaluations, "evaluations", MAX_LOG)
        # In a folder copied from a run in progress the last line may be cut.
        rows = csv.DictReader(text.splitlines(keepends=True))
        return [row for row in rows if None not in row.values()]

    def last_evaluation(self) -> int:
        """Return the iteration of the last evaluation; 0 if there is none."""
        if not self.evaluations.exists():
            return 0
        return max((int(row["iterations"]) for row in self.read_evaluations()), default=0)

    def record_resume(self, iteration: int, made_with: dict[str, Any]) -> None:
        """Add a line to resumes.jsonl."""
        line = json.dumps({"iteration": iteration, **made_with}) + "\n"
        with raise_as_disk_error(self), open_append(self.resumes) as file:
            write_all(file.fileno(), line.encode())

    def saved_iteration(self) -> int:
        """Return the iteration of the newest whole checkpoint; 0 if there is none."""
        saved = self.saved_checkpoints()
        return int(saved[-1].stem) if saved else 0

    def saved_checkpoints(self) -> list[Path]:
        """Return whole checkpoints, oldest first; the spare of an iteration comes before it."""
        require_inside(self.path, self.checkpoints)
        found = [path for path in self.checkpoints.glob("[!.]*") if is_our_checkpoint(path)]
        return sorted(found, key=lambda path: (int(path.stem), not path.suffix))

    def describe_saved(self) -> str:
        """Return a sentence on the newest checkpoint, for error messages."""
        saved = self.saved_checkpoints()
        if not saved:
            return "There is no checkpoint yet"
        return f"The checkpoint of iteration {int(saved[-1].stem)} is kept"


def _num_lines(path: Path, most: int) -> int:
    """Return the number of lines of a file, counted up to `most`; 0 if there is no file."""
    if not path.exists():
        return 0
    with open_regular(path) as file:
        return sum(1 for _ in itertools.islice(file, most))


def checkpoint_name(iteration: int) -> str:
    """Return the name of a checkpoint's folder; names sort by iteration."""
    return f"{iteration:09d}"


def is_our_checkpoint(path: Path) -> bool:
    """Return whether a folder has the name of a checkpoint, of its spare or of its draft."""
    ours = re.fullmatch(r"\d{9,}(\.old)?|\.\d{9,}\.partial", path.name)
    return bool(ours) and path.is_dir() and not path.is_symlink()


@contextmanager
def raise_as_disk_error(folder: RunFolder) -> Iterator[None]:
    """Turn an OSError in writing to a run folder into a DiskError."""
    try:
        yield
    except OSError as error:
        reason = f"{reason_of(error)}. {folder.describe_saved()}"
        raise DiskError(f"cannot write to {folder}: {reason}") from error
