"""Run folders read into records."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias
from zlib import crc32

from langevinrl.analysis.evaluations import Series, read_evaluations
from langevinrl.errors import UserError
from langevinrl.storage.files import escape_controls, read_json, read_text, require_inside
from langevinrl.storage.folder import CHECKPOINTS, CONFIG, EVALUATIONS, SWEEP, RunFolder
from langevinrl.storage.run_log import find_changed_logs

Status: TypeAlias = Literal["done", "cut", "failed", "none", "unreadable"]
MAX_NUMBER = 1e300  # that sums and the page's JavaScript can hold
MAX_NAME = 200  # characters of a name that are shown
# Types of the fields that reports compute with.
FIELD_TYPES: dict[str, Any] = {
    "agent": str, "env": str, "hyperparameters": dict,
    **dict.fromkeys(("iterations", "seed", "seeds", "num_envs", "warmup", "capacity"), int),
}  # fmt: skip


@dataclass(frozen=True)
class RunRecord:
    """The contents of a run folder."""

    folder: Path
    config: dict[str, Any]  # config.json; {} if there is none
    versions: dict[str, Any]  # versions.json; {} if there is none
    series: list[Series]
    # done: evaluated at its last iteration, or no config gives one; cut: evaluated, but not at the
    # last iteration; failed: its sweep recorded a failure; none: no evaluation yet; unreadable: its
    # files are not those of a run, and it is left out of all curves
    status: Status
    error: str = ""  # why it is unreadable, or the last line of a failed job's error
    resumes: int = 0  # how often it was resumed
    agent: str = ""  # from its config, else from its evaluations; "" if there is neither
    env: str = ""
    changed_logs: tuple[str, ...] = ()  # log files that are not what the run wrote

    @property
    def dirty(self) -> bool:
        """Whether the source tree had uncommitted changes."""
        return bool(self.versions.get("dirty"))


def task_of(env: str) -> str:
    """Return an environment's id without its version: HalfCheetah of HalfCheetah-v4."""
    return re.sub(r"(?<=.)-v\d+$", "", env)


def find_runs(paths: Sequence[str | Path]) -> list[RunRecord]:
    """Read every run below the paths once: run folders, sweep folders, or folders of them.

    A run that cannot be read has the status "unreadable"; if none can be read, this raises.

    find_runs(["runs", "sweeps/temperature"])
    """
    records: list[RunRecord] = []
    seen: set[Path] = set()
    for path in map(Path, paths):
        if not path.is_dir():
            raise UserError(f"{path} is not a folder: expected a run, a sweep, or a folder of runs")
        records += _search(path, seen)
    if records and all(record.status == "unreadable" for record in records):
        raise UserError("; ".join(record.error for record in records))
    if not records:
        places = ", ".join(map(str, paths)) or "no folder"
        raise UserError(
            f"no run in {places}: looked there and below for folders with {CONFIG} or "
            f"{EVALUATIONS}, and for sweeps ({SWEEP})"
        )
    return records


def _search(path: Path, seen: set[Path]) -> Iterator[RunRecord]:
    """Read the run folders at and below a path, each once; links are followed outside runs."""
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    if (path / SWEEP).is_file():
        try:
            for job, error in _jobs(path):
                if job.resolve() not in seen:
                    seen.add(job.resolve())
                    yield from _read_run(job, error)
        except UserError as error:
            yield RunRecord(path, {}, {}, [], "unreadable", str(error))
        return
    folder = RunFolder(path)
    is_run = folder.evaluations.is_file() or (
        _is_run_config(folder.config) and folder.kind() == "run"
    )
    if is_run:
        yield from _read_run(path)
    for name in sorted(name for name in os.listdir(path) if name != CHECKPOINTS):
        if (path / name).is_dir() and not (is_run and (path / name).is_symlink()):
            yield from _search(path / name, seen)


def _is_run_config(path: Path) -> bool:
    """Return whether a config.json belongs to a run: other programs use that name too."""
    if not path.is_file():
        return False
    try:
        table = read_json(path, "a run")
    except UserError:
        return False
    return isinstance(table, dict) and {"env", "agent", "hyperparameters"} <= table.keys()


def _jobs(sweep: Path) -> Iterator[tuple[Path, str | None]]:
    """Yield the run folder of every job of a sweep, and the last line of a failed job's error."""
    table = _read_json(sweep / SWEEP)
    try:
        jobs = [(str(job["id"]), Path(job["folder"])) for job in table["jobs"]]
    except (KeyError, TypeError) as error:
        raise UserError(f"{sweep / SWEEP} is not a sweep: it has no list of jobs") from error
    for name, folder in jobs:
        if folder.is_absolute() or ".." in folder.parts or not re.fullmatch(r"[\w-]+", name):
            raise UserError(f"{sweep / SWEEP} is not a sweep: it names a folder outside itself")
        require_inside(sweep, sweep / folder)
        state = require_inside(sweep, sweep / "state" / name)
        errors = sorted(state.glob("error.*.txt"), key=lambda p: (len(p.name), p.name))
        over = (state / "done.json").exists() or any((sweep / folder).glob("lock.*"))
        yield sweep / folder, _last_line(errors[-1]) if errors and not over else None


def _last_line(path: Path) -> str:
    try:
        lines = read_text(path, "an error").strip().splitlines()
    except UserError:
        return ""
    return printable(lines[-1].strip()) if lines else ""


def _read_run(path: Path, error: str | None = None) -> list[RunRecord]:
    """Read one folder: one record, or one per agent and task if it has no config.

    `error` is that of a failed job.
    """
    folder = RunFolder(path)
    try:
        config = _read_json(folder.config)
        _check_fields(config, folder.config)
        versions = _read_json(folder.versions)
        resumes = 0
        if folder.resumes.is_file():
            resumes = len(read_text(folder.resumes, "when it was resumed").splitlines())
        changed = tuple(find_changed_logs(folder))
        pairs = read_evaluations(folder.evaluations)
    except UserError as unreadable:
        return [RunRecord(path, {}, {}, [], "unreadable", str(unreadable))]
    if config or not pairs:
        names = (str(config.get("agent", "")), str(config.get("env", "")))
        pairs = {names: [one for some in pairs.values() for one in some]}
    records = []
    for names, series in pairs.items():
        status = _status(config, series) if error is None else "failed"
        agent, env = map(printable, names)
        records.append(
            RunRecord(
                path, config, versions, series, status, error or "", resumes, agent, env, changed
            )
        )
    return records


def _status(config: dict[str, Any], series: list[Series]) -> Status:
    if not series:
        return "none"
    reached = min(int(one.iterations[-1]) for one in series)
    return "done" if reached >= (config.get("iterations") or 0) else "cut"


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    table = read_json(path, "a run")
    if not isinstance(table, dict):
        raise UserError(f"cannot read a run from {path}: expected an object of named values")
    _check_values(table, path)
    return table


def _check_fields(config: dict[str, Any], path: Path) -> None:
    """Raise if a field that reports compute with has another type than a run writes."""
    for name, value in config.items():
        kind = FIELD_TYPES.get(name)
        if kind is None or (name == "iterations" and value is None):
            continue
        if type(value) is not kind or (kind is int and value < 0):
            raise UserError(f"cannot read a run from {path}: {name} is {printable(repr(value))}")


def _check_values(value: Any, path: Path) -> None:
    """Raise at numbers that are not finite or too large, and at text that cannot be encoded."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for item in value:
            _check_values(item, path)
    elif isinstance(value, int | float) and not abs(value) < MAX_NUMBER:
        raise UserError(f"cannot read a run from {path}: a number is not finite or too large")
    elif isinstance(value, str) and re.search("[\ud800-\udfff]", value):
        raise UserError(f"cannot read a run from {path}: it has text that cannot be encoded")


def printable(text: str) -> str:
    """Escape control characters; shorten long text, with a checksum that keeps it distinct."""
    shown = escape_controls(text).replace("\n", "\\n")
    if len(shown) <= MAX_NAME:
        return shown
    return f"{shown[: MAX_NAME - 9]}…{crc32(text.encode(errors='replace')):08x}"
