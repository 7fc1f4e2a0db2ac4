"""Grids of runs: a sweep's file, or a few lines of Python, as run configurations."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langevinrl.errors import UserError, unknown
from langevinrl.runs.checks import plain
from langevinrl.runs.config import FIELDS_WITHOUT_EFFECT, RunConfig, agent_class
from langevinrl.storage.files import read_json, read_text
from langevinrl.storage.trust import importing_names, require_trusted

RUN_FIELDS = [f.name for f in dataclasses.fields(RunConfig) if f.name != "hyperparameters"]
# Fields that the sweep sets itself.
NOT_AN_AXIS = ("out", "seed", "seeds", "seed_step")


@dataclass(frozen=True)
class Grid:
    """Runs that share `base`: one for each combination of `axes`, `cases` and `seeds`.

    Grid(
        base={"env": "Hopper-v4", "iterations": 20_000},
        axes={"agent": ["lql", "nclql"], "inverse_temperature": [100.0, 500.0]},
        seeds=[100, 200, 300],
    ).configs()

    Fields of the run and of its agent have the names of the command line.
    """

    base: Mapping[str, Any]  # fields of every run
    axes: Mapping[str, Sequence[Any]] = field(
        default_factory=dict
    )  # fields that vary independently
    cases: Sequence[Mapping[str, Any]] = ({},)  # fields that vary together
    seeds: Sequence[int] = (0,)

    def __post_init__(self) -> None:
        if not isinstance(self.base, Mapping) or not isinstance(self.axes, Mapping):
            raise UserError("base and axes of a sweep are tables of fields")
        if not _is_list(self.cases, Mapping):
            raise UserError(f"cases are {self.cases!r}; expected a list of tables")
        for name, values in self.axes.items():
            if name in NOT_AN_AXIS:
                raise UserError(f"{name!r} is no axis; a sweep's seeds are listed as `seeds`")
            if not _is_list(values, object) or not values:
                raise UserError(f"axis {name!r} is {values!r}; expected a list of values")
        if not (_is_list(self.seeds, int) and 0 < len(self.seeds) == len(set(self.seeds))):
            raise UserError(f"seeds are {self.seeds!r}; expected a list of different numbers")

    def configs(self) -> list[RunConfig]:
        """Return one validated configuration per run, with one seed each."""
        found = []
        for case, *values in itertools.product(self.cases, *self.axes.values()):
            settings = {**self.base, **case, **dict(zip(self.axes, values, strict=True))}
            for seed in self.seeds:
                found.append(make_config({**settings, "seed": seed}).resolved())
        return found


def make_config(settings: Mapping[str, Any]) -> RunConfig:
    """Return a run from fields of the run and of its agent, named as on the command line."""
    if "env" not in settings:
        raise UserError("a run needs an env: give it in the base, or as an axis")
    run = plain({name: value for name, value in settings.items() if name in RUN_FIELDS})
    rest = {name: value for name, value in settings.items() if name not in RUN_FIELDS}
    agent = str(run.get("agent", RunConfig.agent))
    known = [f.name for f in dataclasses.fields(agent_class(agent)) if f.name != "spec"]
    for name in rest:
        if name not in known:
            raise UserError(unknown(f"field of a run or of {agent}", name, [*known, *RUN_FIELDS]))
    return RunConfig(**run, hyperparameters=plain(rest))


def read_grid(path: Path, *, trust: bool = False) -> Grid:
    """Read a grid from a TOML or JSON file with the keys base, axes, cases and seeds.

    trust: allow the import of agents and environments that it names, now and later
    """
    known = [f.name for f in dataclasses.fields(Grid)]
    table = read_table(path, "a sweep", known, needed=("base",))
    grid = Grid(**table)
    require_names(path, [grid.base, grid.axes, *grid.cases], trust)
    return grid


def require_names(path: Path, tables: Sequence[Any], trust: bool) -> None:
    """Raise if a file names modules to import that are not trusted."""
    found: set[str] = set()
    for table in tables:
        fields = table if isinstance(table, Mapping) else {}
        agents, envs, given = (_as_list(fields.get(n)) for n in ("agent", "env", "env_kwargs"))
        for agent in agents:
            found |= set(importing_names(str(agent), "", {}))
        for env, kwargs in itertools.product(envs or [""], given or [{}]):
            found |= set(importing_names("", str(env), kwargs if kwargs else {}))
    require_trusted(path, sorted(found), trust)


def _is_list(value: Any, kind: type) -> bool:
    """Return whether a value is a list, or another sequence, of values of a kind."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(one, kind) for one in value)


def _as_list(value: Any) -> list[Any]:
    """Return the values of a field: one, or those of an axis."""
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value is None else [value]


def read_table(
    path: Path, what: str, known: Sequence[str], needed: Sequence[str]
) -> dict[str, Any]:
    """Read a TOML or JSON file; its keys must be `known`, and those `needed` be tables."""
    file = Path(os.path.realpath(path))  # the user's own file may be a link
    if path.suffix == ".json":
        table = read_json(file, what)
    else:
        text = read_text(file, what)
        try:
            table = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise UserError(f"cannot read {what} from {path}: {error}") from error
    for name in needed:
        if not isinstance(table, dict) or not isinstance(table.get(name), dict):
            keys = ", ".join(known)
            raise UserError(f"{path} is not {what}: it has no [{name}] table. Keys: {keys}")
    for name in table:
        if name not in known:
            raise UserError(f"{path}: " + unknown("key", name, known))
    found: dict[str, Any] = table
    return found


def seeds_together(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """Return the same runs with the seeds of each configuration joined in one process.

    Seeds that are not equally spaced stay apart.
    """
    groups: dict[str, list[RunConfig]] = {}
    for config in configs:
        key = _digest(config, without=(*FIELDS_WITHOUT_EFFECT, "seed"))
        groups.setdefault(key, []).append(config)
    found = []
    for group in groups.values():
        seeds = sorted(config.seed for config in group)
        steps = {after - before for before, after in itertools.pairwise(seeds)} or {1}
        if len(steps) == 1 and all(config.seeds == 1 for config in group):
            joined = {"seed": seeds[0], "seeds": len(seeds), "seed_step": steps.pop(), "out": None}
            found.append(dataclasses.replace(group[0], **joined).resolved())  # type: ignore[arg-type]  # one dict of fields
        else:
            found.extend(group)
    return found


def job_id(config: RunConfig) -> str:
    """Return ten characters that identify a run by its fields, but not by its folder."""
    return _digest(config, without=FIELDS_WITHOUT_EFFECT)[:10]


def _digest(config: RunConfig, without: Collection[str]) -> str:
    table = {k: v for k, v in dataclasses.asdict(config).items() if k not in without}
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
