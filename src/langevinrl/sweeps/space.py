"""Search spaces for tuning: ranges and choices for fields of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.sweeps.grid import Grid, read_table, require_names, seeds_together

if TYPE_CHECKING:
    from optuna.trial import Trial

Objective: TypeAlias = Literal["return", "return-per-second"]


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, integers if both are; `log` samples their logarithm."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not all(isinstance(end, int | float) for end in (self.low, self.high)):
            raise UserError(f"range from {self.low!r} to {self.high!r}: expected two numbers")
        if not self.low < self.high or (self.log and self.low <= 0):
            least = "0 < low" if self.log else "low"
            raise UserError(f"range from {self.low} to {self.high}: expected {least} < high")

    def suggest(self, trial: Trial, name: str) -> float:
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(name, self.low, self.high, log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Search:
    """A search: runs that share `base`, with fields drawn from `space`, over `seeds`."""

    base: Mapping[str, Any]
    space: Mapping[str, Range | tuple[Any, ...]]
    seeds: tuple[int, ...]

    def config(self, chosen: Mapping[str, Any]) -> RunConfig:
        """Return the run of chosen values, with all seeds in one process."""
        grid = Grid({**self.base, **chosen}, seeds=self.seeds)
        joined = seeds_together(grid.configs())
        if len(joined) > 1:
            raise UserError(f"seeds are {list(self.seeds)}; tuning needs equal steps between them")
        return joined[0]

    def suggest(self, trial: Trial) -> dict[str, Any]:
        """Return a value for every field of the space, drawn by the trial's sampler."""
        return {
            name: values.suggest(trial, name)
            if isinstance(values, Range)
            else json.loads(trial.suggest_categorical(name, [json.dumps(v) for v in values]))
            for name, values in self.space.items()
        }

    def decode(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return a stored trial's values; choices are stored as JSON, since some are lists."""
        return {
            name: value if isinstance(self.space[name], Range) else json.loads(value)
            for name, value in params.items()
        }

    def check(self) -> None:
        """Raise if an end of a range or a choice is not valid."""
        first = {n: v.low if isinstance(v, Range) else v[0] for n, v in self.space.items()}
        for name, values in self.space.items():
            ends = (values.low, values.high) if isinstance(values, Range) else values
            for value in ends:
                self.config({**first, name: value})


def read_search(path: Path, *, trust: bool = False) -> Search:
    """Read a search from a TOML or JSON file with the keys base, space and seeds.

    trust: allow the import of agents and environments that it names, now and later
    """
    table = read_table(path, "a search", ("base", "space", "seeds"), needed=("base", "space"))
    require_names(path, [table["base"], table["space"]], trust)
    if not table["space"]:
        raise UserError(f"{path}: [space] names no field to tune")
    space = {name: _values(path, name, given) for name, given in table["space"].items()}
    seeds = Grid(table["base"], seeds=table.get("seeds", (0, 1, 2))).seeds
    search = Search(table["base"], space, tuple(seeds))
    search.check()
    return search


def _values(path: Path, name: str, given: Any) -> Range | tuple[Any, ...]:
    """Return a choice from a list, or a range from a table with low, high and log."""
    if isinstance(given, list) and given:
        return tuple(tuple(v) if isinstance(v, list) else v for v in given)
    if isinstance(given, dict) and {"low", "high"} <= given.keys() <= {"low", "high", "log"}:
        return Range(**given)
    raise UserError(
        f"{path}: {name} is {given!r}; expected a list of choices, or {{low = 1, high = 9}}, "
        "with log = true for what varies by factors"
    )
