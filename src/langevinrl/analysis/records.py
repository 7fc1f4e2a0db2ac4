"""Run folders as records, and records as groups: the runs of a group are seeds of one curve."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langevinrl.analysis.colours import choose_colours
from langevinrl.analysis.evaluations import Series, read_evaluations
from langevinrl.errors import UserError
from langevinrl.registry import METHODS, label_of
from langevinrl.runs.config import FIELDS_BESIDE_LEARNING
from langevinrl.storage.files import read_json, read_text
from langevinrl.storage.folder import CHECKPOINTS, CONFIG, EVALUATIONS, SWEEP, RunFolder

Status: TypeAlias = Literal["done", "cut", "failed", "none"]


@dataclass(frozen=True)
class RunRecord:
    """What a run folder says, read once."""

    folder: Path
    config: dict[str, Any]  # config.json; {} if there is none
    versions: dict[str, Any]  # versions.json; {} if there is none
    series: list[Series]
    # done: evaluated at its last iteration (or no config says which that is); cut: evaluated, but
    # not there; failed: its sweep says so; none: nothing evaluated yet
    status: Status
    error: str = ""  # last line of a failed job's error
    resumes: int = 0  # how often it was continued
    agent: str = ""  # by its config, else by its evaluations; "" if neither is there yet
    env: str = ""

    @property
    def task(self) -> str:
        """The environment without its version: HalfCheetah of HalfCheetah-v4."""
        return split_version(self.env)[0]

    @property
    def version(self) -> str:
        """v4 of HalfCheetah-v4; empty if its name has none."""
        return split_version(self.env)[1]

    @property
    def dirty(self) -> bool:
        """Whether it was made from a tree with uncommitted changes."""
        return bool(self.versions.get("dirty"))


@dataclass(frozen=True)
class JobState:
    """What a sweep knows of one of its jobs beyond the run folder."""

    failed: bool = False
    error: str = ""


def split_version(env: str) -> tuple[str, str]:
    """An environment's id in two: ("HalfCheetah", "v4"); ("toys:wide", "") without a version."""
    found = re.fullmatch(r"(.+)-(v\d+)", env)
    return (found[1], found[2]) if found else (env, "")


def find_runs(paths: Sequence[Path]) -> list[RunRecord]:
    """Every run under the paths, each once: run folders, sweep folders, or folders of such.

    find_runs([Path("runs"), Path("sweeps/temperature")])
    """
    records: list[RunRecord] = []
    seen: set[Path] = set()
    for path in map(Path, paths):
        if not path.is_dir():
            raise UserError(f"{path} is not a folder: expected a run, a sweep, or a folder of runs")
        if RunFolder(path).evaluations.is_file() and not (path / SWEEP).is_file():
            found = iter([(path, JobState())])
        else:
            found = _search(path, set())
        for folder, job in found:
            if folder.resolve() not in seen:
                seen.add(folder.resolve())
                records += read_run(folder, job)
    if not records:
        places = ", ".join(map(str, paths)) or "no folder"
        raise UserError(
            f"no run in {places}: looked there and below for folders with {CONFIG} or "
            f"{EVALUATIONS}, and for sweeps ({SWEEP})"
        )
    return records


def _search(path: Path, seen: set[Path]) -> Iterator[tuple[Path, JobState]]:
    """Run folders at and below a path, in order of names; links are followed, circles are not."""
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    if (path / SWEEP).is_file():
        yield from _jobs(path)
        return
    folder = RunFolder(path)
    if folder.evaluations.is_file() or (_is_run_config(folder.config) and folder.kind() == "run"):
        yield path, JobState()
    names = sorted(name for name in os.listdir(path) if name != CHECKPOINTS)
    below = [name for name in names if (path / name).is_dir()]  # which a link to itself is not
    for name in below:
        yield from _search(path / name, seen)


def _is_run_config(path: Path) -> bool:
    """Whether a config.json is one of ours: other programs write files of that name too."""
    if not path.is_file():
        return False
    try:
        table = read_json(path, "a run")
    except UserError:
        return False
    return isinstance(table, dict) and {"env", "agent", "hyperparameters"} <= table.keys()


def _jobs(sweep: Path) -> Iterator[tuple[Path, JobState]]:
    """The run folder of every job of a sweep, begun or not, and whether the job failed."""
    table = _read_json(sweep / SWEEP)
    try:
        jobs = [(str(job["id"]), sweep / job["folder"]) for job in table["jobs"]]
    except (KeyError, TypeError) as error:
        raise UserError(f"{sweep / SWEEP} is not a sweep: it has no list of jobs") from error
    for name, folder in jobs:
        state = sweep / "state" / name
        errors = sorted(state.glob("error.*.txt"), key=lambda p: (len(p.name), p.name))
        over = (state / "done.json").exists() or any(state.glob("claim.*"))
        if errors and not over:
            lines = errors[-1].read_text(errors="replace").strip().splitlines()
            yield folder, JobState(True, lines[-1].strip() if lines else "")
        else:
            yield folder, JobState()


def read_run(path: Path, job: JobState | None = None) -> list[RunRecord]:
    """The records of one folder: one, or one per agent and task if it has no config."""
    folder, job = RunFolder(path), job or JobState()
    config = _read_json(folder.config)
    versions = _read_json(folder.versions)
    resumes = 0
    if folder.resumes.is_file():
        resumes = len(read_text(folder.resumes, "when it was resumed").splitlines())
    pairs = read_evaluations(folder.evaluations)
    if config or not pairs:
        names = (str(config.get("agent", "")), str(config.get("env", "")))
        series = [one for some in pairs.values() for one in some]
        pairs = {names: series}
    return [
        RunRecord(
            path, config, versions, series, _status(config, series, job), job.error, resumes, *names
        )
        for names, series in pairs.items()
    ]


def _status(config: dict[str, Any], series: list[Series], job: JobState) -> Status:
    if job.failed:
        return "failed"
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
    return table


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds: one curve."""

    agent: str
    env: str
    label: str  # the method's, and the settings that set it apart
    colour: str  # the same for the same label on every task
    settings: dict[str, Any]  # only fields that vary among this agent's runs on some task
    series: list[Series]
    runs: list[RunRecord]

    @property
    def task(self) -> str:
        """The environment without its version."""
        return split_version(self.env)[0]


# Fields that do not affect learning, or are shown in another way.
UNCOUNTED = FIELDS_BESIDE_LEARNING | {
    "agent", "env", "hyperparameters", "seed", "seeds", "seed_step",
}  # fmt: skip


def group_runs(records: Sequence[RunRecord]) -> list[Group]:
    """Records that have evaluations, as curves: in the registry's order, then by settings.

    Settings are compared among the runs of one agent on one task.  Where a method has other
    settings on another task, but only one on each, it is one method with settings per task.
    """
    records = [record for record in records if record.series]
    fields = {id(record): counted_fields(record) for record in records}
    varied = {agent: varied_fields(records, agent) for agent in {r.agent for r in records}}
    runs: dict[tuple[str, str], list[RunRecord]] = {}
    settings: dict[str, tuple[str, dict[str, Any]]] = {}
    for record in records:
        have = fields[id(record)]
        mine = {name: have[name] for name in varied[record.agent] if name in have}
        label = ", ".join([label_of(record.agent), *map(describe, mine.items())])
        settings[label] = (record.agent, mine)
        runs.setdefault((label, record.env), []).append(record)
    labels = sorted(settings, key=lambda label: _rank(*settings[label]))
    colours = choose_colours([(label, settings[label][0]) for label in labels])
    return [
        Group(
            settings[label][0], env, label, colours[label], settings[label][1],
            [one for record in runs[label, env] for one in record.series], runs[label, env],
        )
        for label in labels
        for env in sorted(env for name, env in runs if name == label)
    ]  # fmt: skip


def counted_fields(record: RunRecord) -> dict[str, Any]:
    """The fields that decide what a run learns, its agent's own among them."""
    config = record.config
    if not config:
        return {"config": "none"}  # its settings are not known: no seed of a run whose are
    fields = {**config, **config.get("hyperparameters", {})}
    used = fields.get("warmup", 0) + (fields.get("iterations") or 0) * fields.get("num_envs", 1)
    if fields.get("capacity", 0) >= used:
        fields["capacity"] = "all"  # room for every transition, however much is left
    return {name: value for name, value in fields.items() if name not in UNCOUNTED}


def varied_fields(records: Sequence[RunRecord], agent: str) -> list[str]:
    """Fields of which an agent's runs have several values on some task.

    One that an older config does not have is not varied by that alone.
    """
    found: dict[str, None] = {}
    for env in dict.fromkeys(record.env for record in records if record.agent == agent):
        runs = [counted_fields(r) for r in records if (r.agent, r.env) == (agent, env)]
        if any("config" in run for run in runs) and not all("config" in run for run in runs):
            found["config"] = None
        for name in dict.fromkeys(name for run in runs for name in run):
            if len({json.dumps(run[name]) for run in runs if name in run}) > 1:
                found[name] = None
    return list(found)


def describe(setting: tuple[str, Any]) -> str:
    """A setting as a label says it: inverse_temperature 100, hidden 64x64."""
    name, value = setting
    if isinstance(value, list):
        return f"{name} {'x'.join(map(str, value))}"
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _rank(agent: str, settings: dict[str, Any]) -> tuple[Any, ...]:
    """Methods in the registry's order, others by name after them; then numbers before words."""
    order = list(METHODS)
    place = order.index(agent) if agent in order else len(order)
    values = [
        (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, json.dumps(value))
        for value in settings.values()
    ]
    return place, agent, values
