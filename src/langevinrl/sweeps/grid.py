"""A sweep's file, or a few lines of Python -> the run configurations it means."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langevinrl.errors import UserError, unknown
from langevinrl.runs.checks import plain
from langevinrl.runs.config import FIELDS_WITHOUT_EFFECT, RunConfig, agent_class
from langevinrl.storage.files import read_json, read_text
from langevinrl.storage.trust import importing_names, remember, require_trusted

RUN_FIELDS = [f.name for f in dataclasses.fields(RunConfig) if f.name != "hyperparameters"]
# Their lists are the sweep's own: where runs lie follows from what they are, seeds have their key.
NOT_AN_AXIS = ("out", "seed", "seeds", "seed_step")


@dataclass(frozen=True)
class Grid:
    """Runs that share `base`, one for each combination of `axes`, each case of `cases`, each seed.

    Grid(
        base={"env": "Hopper-v4", "iterations": 20_000},
        axes={"agent": ["lql", "nclql"], "inverse_temperature": [100.0, 500.0]},
        seeds=[100, 200, 300],
    ).configs()

    A field is named as on the command line: those of a run and those of its agent side by side.
    """

    base: Mapping[str, Any]  # fields every run has
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # fields that vary, each alone
    cases: Sequence[Mapping[str, Any]] = ({},)  # fields that vary together
    seeds: Sequence[int] = (0,)

    def __post_init__(self) -> None:
        for name, values in self.axes.items():
            if name in NOT_AN_AXIS:
                raise UserError(f"{name!r} is no axis; a sweep's seeds are listed as `seeds`")
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise UserError(f"axis {name!r} is {values!r}; expected a list of values")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise UserError(f"seeds are {list(self.seeds)}; expected a list of different numbers")

    def configs(self) -> list[RunConfig]:
        """One checked configuration per run, its seed alone in it."""
        found = []
        for case, *values in itertools.product(self.cases, *self.axes.values()):
            settings = {**self.base, **case, **dict(zip(self.axes, values, strict=True))}
            for seed in self.seeds:
                found.append(make_config({**settings, "seed": seed}).resolved())
        return found


def make_config(settings: Mapping[str, Any]) -> RunConfig:
    """A run from fields of its own and of its agent, side by side as on the command line."""
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
    """A grid from a TOML or JSON file with the keys base, axes, cases and seeds.

    `trust` allows agents and environments of someone's own that it names, now and later.
    """
    known = [f.name for f in dataclasses.fields(Grid)]
    table = read_table(path, "a sweep", known, needed=("base",))
    require_names(path, [table["base"], table.get("axes", {}), *table.get("cases", [])], trust)
    return Grid(**table)


def require_names(path: Path, tables: Sequence[Any], trust: bool) -> None:
    """Refuses a file that would have modules imported, unless trusted, now or before."""
    found: set[str] = set()
    for table in tables:
        fields = table if isinstance(table, Mapping) else {}
        agents, envs, given = (_as_list(fields.get(n)) for n in ("agent", "env", "env_kwargs"))
        for agent in agents:
            found |= set(importing_names(str(agent), "", {}))
        for env, kwargs in itertools.product(envs or [""], given or [{}]):
            found |= set(importing_names("", str(env), kwargs if kwargs else {}))
    require_trusted(path, sorted(found), trust)
    remember(found)


def _as_list(value: Any) -> list[Any]:
    """The values of a field, which is one or, as an axis, several."""
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value is None else [value]


def read_table(
    path: Path, what: str, known: Sequence[str], needed: Sequence[str]
) -> dict[str, Any]:
    """A TOML or JSON file whose keys are among `known`, the needed ones tables."""
    if path.suffix == ".json":
        table = read_json(path, what)
    else:
        text = read_text(path, what)
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
    """The same runs, the seeds of one configuration side by side in one process.

    Seeds that do not follow each other in equal steps stay apart.
    """
    groups: dict[str, list[RunConfig]] = {}
    for config in configs:
        groups.setdefault(_digest(config, without=(*FIELDS_WITHOUT_EFFECT, "seed")), []).append(
            config
        )
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
    """Ten characters that stand for everything a run is, but not for where it lies."""
    return _digest(config, without=FIELDS_WITHOUT_EFFECT)[:10]


def _digest(config: RunConfig, without: Collection[str]) -> str:
    table = {k: v for k, v in dataclasses.asdict(config).items() if k not in without}
    if not config.env_kwargs:
        del table["env_kwargs"]  # sweeps begun before there was this field keep their ids
    if config.n_step == 1:
        del table["n_step"]  # for the same reason
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
