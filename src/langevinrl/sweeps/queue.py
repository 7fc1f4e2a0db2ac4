"""The folder of a sweep: which jobs there are, and how each stands.  Needs no JAX.

sweep.json   name, study, and every job: its id, its folder, its whole configuration
jobs/        a run folder each, named after agent, task, seed and the job's id
state/ID/    claim.N while someone works on it, progress.json, error.N.txt, log.txt, done.json
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langevinrl.errors import UserError, unknown
from langevinrl.runs.checks import plain
from langevinrl.runs.config import RunConfig
from langevinrl.storage.files import read_json
from langevinrl.storage.folder import DONE, ERRORS, JOB_STATE, JOBS, PROGRESS, SWEEP, RunFolder
from langevinrl.sweeps import claims
from langevinrl.sweeps.grid import job_id

Standing: TypeAlias = Literal["open", "running", "failed", "done"]


@dataclass(frozen=True, eq=False)  # one object per job of a folder, so that it can be a key
class Job:
    """A run of a sweep: its id, its whole configuration, where it lies and where its state does."""

    id: str
    config: RunConfig
    folder: Path
    state: Path

    @property
    def errors(self) -> list[Path]:
        """What went wrong, a file per try."""
        return sorted(self.state.glob(ERRORS), key=lambda path: int(path.name.split(".")[1]))

    @property
    def done(self) -> bool:
        return (self.state / DONE).exists()

    def standing(self) -> Standing:
        """How it stands, by the files alone."""
        if self.done:
            return "done"
        if claims.is_held(self.state):
            return "running"
        return "failed" if self.errors else "open"

    def progress(self) -> dict[str, Any]:
        """The last iteration and return its process told of; nothing before it did."""
        name = DONE if self.done else PROGRESS
        try:
            found: dict[str, Any] = json.loads((self.state / name).read_text())
        except (OSError, ValueError):
            return {}
        return found

    def record_error(self, text: str) -> None:
        self.state.mkdir(parents=True, exist_ok=True)
        write(self.state / ERRORS.replace("*", str(len(self.errors) + 1)), text.rstrip() + "\n")

    def last_error(self) -> str:
        """The last line of the last try's error."""
        return self.errors[-1].read_text().rstrip().splitlines()[-1] if self.errors else ""


class SweepFolder:
    """The jobs of a sweep and their standing, shared by all who work on it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            if not (self.path / SWEEP).exists():
                raise UserError(f"{self.path} is not a sweep's folder: it has no {SWEEP}")
            table = read_json(self.path / SWEEP, "a sweep")
            self.name, self.study, rows = table["name"], table["study"], table["jobs"]
            self.jobs = {row["id"]: self._job(row["id"], _config(row["config"])) for row in rows}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"cannot read {self.path / SWEEP}: {error!r}") from error

    @classmethod
    def write(
        cls, path: Path, configs: Sequence[RunConfig], name: str = "", study: str | None = None
    ) -> SweepFolder:
        """Make the folder, or add to it the jobs it has not got."""
        strangers = path.exists() and not (path / SWEEP).exists()
        if strangers and (path.is_file() or any(_is_strange(entry) for entry in path.iterdir())):
            raise UserError(f"{path} is neither empty nor a sweep's folder: take another --out")
        with claims.held(path / JOB_STATE / "sweep"):  # another command may be adding to it
            known = list(cls(path).jobs.values()) if (path / SWEEP).exists() else []
            table = {job.id: job.config for job in known} | {job_id(c): c for c in configs}
            if len(table) > len(known):
                rows = [
                    {"id": i, "folder": f"{JOBS}/{_name(i, c)}", "config": _table(c)}
                    for i, c in table.items()
                ]
                whole = {"name": name or path.name, "study": study, "jobs": rows}
                write(path / SWEEP, json.dumps(whole) + "\n")
        return cls(path)

    def job(self, id_: str) -> Job:
        if id_ not in self.jobs:
            raise UserError(unknown(f"job of {self.path}", id_, self.jobs))
        return self.jobs[id_]

    def _job(self, id_: str, config: RunConfig) -> Job:
        if not re.fullmatch(r"[\w-]+", id_) or "/" in config.agent:
            raise ValueError(f"job {id_!r} of {config.agent!r} would lie outside of the sweep")
        folder = self.path / JOBS / _name(id_, config)
        config = dataclasses.replace(config, out=str(folder))
        return Job(id_, config, folder, self.path / JOB_STATE / id_)


def _is_strange(entry: Path) -> bool:
    """Whether a file is none of those that a sweep being made by another command has."""
    return entry.name != JOB_STATE and not entry.name.startswith((SWEEP, f".{SWEEP}."))


def _name(id_: str, config: RunConfig) -> str:
    env = re.sub(r"[^\w.-]+", "-", config.env).strip("-")
    return f"{config.agent}-{env}-{config.seed}-{id_}"


def _table(config: RunConfig) -> dict[str, Any]:
    return {k: v for k, v in dataclasses.asdict(config).items() if k != "out"}


def _config(table: dict[str, Any]) -> RunConfig:
    return RunConfig(**plain({**table, "hyperparameters": plain(table["hyperparameters"])}))


def write(path: Path, text: str) -> None:
    """Whole or not at all, whoever reads it meanwhile."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    draft.write_text(text)
    draft.replace(path)


def is_begun(job: Job) -> bool:
    """Whether its run folder is there to be gone on with."""
    return RunFolder(job.folder).config.exists()
