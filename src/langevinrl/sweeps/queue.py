"""Folder of a sweep: its jobs and the status of each.

sweep.json   name, study, and every job: its id, its folder, its whole configuration
jobs/        a run folder each, named after agent, task, seed and the job's id; locked while a
             process works on the job
state/ID/    progress.json, error.N.txt, log.txt, done.json
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langevinrl.errors import UserError, unknown
from langevinrl.runs.checks import plain
from langevinrl.runs.config import RunConfig
from langevinrl.storage.files import (
    escape_controls,
    read_json,
    read_text,
    require_inside,
    require_no_links,
    write_text,
)
from langevinrl.storage.folder import DONE, ERRORS, JOB_STATE, JOBS, PROGRESS, SWEEP
from langevinrl.storage.locks import LOCK, is_locked, wait_for_lock
from langevinrl.storage.metadata import is_number
from langevinrl.sweeps.grid import job_id

Status: TypeAlias = Literal["waiting", "running", "failed", "done"]


@dataclass(frozen=True, eq=False)  # one object per job of a folder, so that it can be a key
class Job:
    """A run of a sweep: its id, its configuration, its run folder and the folder of its state."""

    id: str
    config: RunConfig
    folder: Path
    state: Path

    @classmethod
    def below(cls, root: Path, id_: str, name: str, config: RunConfig) -> Job:
        """Return the job of a sweep or search whose run folder has this name."""
        folder = require_inside(root, root / JOBS / name)
        state = require_inside(root, root / JOB_STATE / id_)
        return cls(id_, dataclasses.replace(config, out=str(folder)), folder, state)

    @property
    def errors(self) -> list[Path]:
        """Error files, one per failed try."""
        numbers = {path: path.name.split(".")[1] for path in self.state.glob(ERRORS)}
        known = [path for path, number in numbers.items() if number.isdecimal()]
        return sorted(known, key=lambda path: int(numbers[path]))

    @property
    def done(self) -> bool:
        return (self.state / DONE).is_file() and not (self.state / DONE).is_symlink()

    def status(self) -> Status:
        """Return the status, by the files alone."""
        if self.done:
            return "done"
        if is_locked(self.folder):
            return "running"
        return "failed" if self.errors else "waiting"

    def progress(self) -> dict[str, Any]:
        """Return the last iteration and return that its process wrote; nothing if it has not."""
        try:
            found = read_json(self.state / (DONE if self.done else PROGRESS), "progress")
        except UserError:
            return {}
        table = found if isinstance(found, dict) else {}
        return {name: value for name, value in table.items() if is_number(value)}

    def write(self, name: str, text: str) -> None:
        """Write a file of the job's state."""
        self.state.mkdir(parents=True, exist_ok=True)
        write_text(self.state / name, text.rstrip() + "\n")

    def record_error(self, text: str) -> None:
        self.write(ERRORS.replace("*", str(len(self.errors) + 1)), text)

    def last_error(self) -> str:
        """Return the last line of the last try's error."""
        if not self.errors:
            return ""
        lines = read_text(self.errors[-1], "an error").rstrip().splitlines()
        return escape_controls(lines[-1]) if lines else ""


class SweepFolder:
    """The jobs of a sweep, shared by all processes that work on it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            if not os.path.lexists(self.path / SWEEP):
                raise UserError(f"{self.path} is not a sweep's folder: it has no {SWEEP}")
            require_no_links(self.path)
            table = read_json(self.path / SWEEP, "a sweep")
            self.name, self.study, rows = table["name"], table["study"], table["jobs"]
            self.jobs = {row["id"]: self._job(row["id"], _config(row["config"])) for row in rows}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"cannot read {self.path / SWEEP}: {error!r}") from error

    @classmethod
    def write(
        cls, path: Path, configs: Sequence[RunConfig], name: str = "", study: str | None = None
    ) -> SweepFolder:
        """Create the folder, or add new jobs to it."""
        is_other = path.exists() and not (path / SWEEP).exists()
        if is_other and (path.is_file() or any(_is_foreign(entry) for entry in path.iterdir())):
            raise UserError(f"{path} is neither empty nor a sweep's folder: take another --out")
        path.mkdir(parents=True, exist_ok=True)
        with wait_for_lock(path):  # another command may be adding to it
            known = list(cls(path).jobs.values()) if (path / SWEEP).exists() else []
            table = {job.id: job.config for job in known} | {job_id(c): c for c in configs}
            if len(table) > len(known):
                rows = [
                    {"id": i, "folder": f"{JOBS}/{_name(i, c)}", "config": _table(c)}
                    for i, c in table.items()
                ]
                whole = {"name": name or path.name, "study": study, "jobs": rows}
                write_text(path / SWEEP, json.dumps(whole) + "\n")
        return cls(path)

    def job(self, id_: str) -> Job:
        if id_ not in self.jobs:
            raise UserError(unknown(f"job of {self.path}", id_, self.jobs))
        return self.jobs[id_]

    def _job(self, id_: str, config: RunConfig) -> Job:
        if not re.fullmatch(r"[\w-]+", id_) or not re.fullmatch(r"[\w.:-]+", config.agent):
            raise ValueError(f"job {id_!r} of {config.agent!r} would be outside of the sweep")
        return Job.below(self.path, id_, _name(id_, config), config)


def _is_foreign(entry: Path) -> bool:
    """Return whether a file is none that another command creates before sweep.json."""
    return not entry.name.startswith((LOCK, f".{LOCK}", SWEEP, f".{SWEEP}."))


def _name(id_: str, config: RunConfig) -> str:
    env = re.sub(r"[^\w.-]+", "-", config.env).strip("-")
    return f"{config.agent}-{env}-{config.seed}-{id_}"


def _table(config: RunConfig) -> dict[str, Any]:
    return {k: v for k, v in dataclasses.asdict(config).items() if k != "out"}


def _config(table: dict[str, Any]) -> RunConfig:
    return RunConfig(**plain({**table, "hyperparameters": plain(table["hyperparameters"])}))
