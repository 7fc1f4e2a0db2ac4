"""The document that the page draws: plain lists and rounded numbers.

methods      {label, agent, colour, settings}, in the order of every table
tasks        names, in the paper's order
grids        arrays of iterations or environment steps, each stored once
curves       {method, task, series: [{seed, i, e, h, r}]}; i and e index grids, h hours, r returns
finals       {method, task, seeds, mean, sd} of finished seeds
aggregates   scores over all tasks as in summary.py, an estimate as [value, low, high]; or null
runs         one per run folder; see health.py
extras       tables found beside the runs, unchanged
"""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.analysis import paper
from langevinrl.analysis.evaluations import Series
from langevinrl.analysis.normalise import WORDS
from langevinrl.analysis.page.budget import describe_budget, describe_facts, sort_tasks
from langevinrl.analysis.page.health import describe_runs, list_versions, summarise_versions
from langevinrl.analysis.summary import Summary
from langevinrl.errors import UserError
from langevinrl.registry import label_of
from langevinrl.storage.files import read_text

EXTRAS = {"parameters": "parameters.csv", "time": "time.csv"}


def page_document(summary: Summary, folders: Sequence[Path] = (), made: str = "") -> dict[str, Any]:
    """Build everything on the page; `folders` are those the report was asked for."""
    groups, records = summary.groups, summary.records
    agents = {group.agent: label_of(group.agent) for group in groups}
    return {
        "title": _title(list(agents.values()), sort_tasks(group.env for group in groups)),
        "made": made,
        "facts": describe_facts(records, groups),
        "budget": describe_budget(groups),
        "agents": agents,
        **_curves(summary),
        "aggregates": plain(summary.aggregates),
        "noAggregates": summary.no_aggregates,
        "notes": summary.notes,
        "scales": WORDS,
        "paper": {"tasks": paper.TASKS, "progress": paper.PROGRESS, "values": paper.NORMALISED}
        | {"plusMinus": paper.PLUS_MINUS},
        "extras": read_extras(folders),
        "runs": describe_runs(records, groups),
        "versions": list_versions(records),
        "madeWith": summarise_versions(records),
    }


def _curves(summary: Summary) -> dict[str, Any]:
    """List methods, tasks, curves and final returns; the latter two refer to them by place."""
    groups, grids = summary.groups, Grids()
    first = {group.label: group for group in reversed(groups)}
    labels = list(dict.fromkeys(group.label for group in groups))
    tasks = sort_tasks(group.env for group in groups)
    places = {id(g): {"method": labels.index(g.label), "task": tasks.index(g.env)} for g in groups}
    return {
        "methods": [
            {key: getattr(first[label], key) for key in ("label", "agent", "colour", "settings")}
            for label in labels
        ],
        "tasks": tasks,
        "curves": [
            places[id(group)] | {"series": [_series(one, grids) for one in group.series]}
            for group in groups
        ],
        "grids": grids.arrays,
        "finals": [
            places[id(one.group)]
            | plain({"seeds": one.returns.size, "mean": one.mean.value, "sd": one.deviation})
            for one in summary.finals
        ],
    }


class Grids:
    """Arrays shared by many seeds, each stored once."""

    def __init__(self) -> None:
        self.arrays: list[list[int | None]] = []
        self._places: dict[bytes, int] = {}

    def place(self, array: np.ndarray) -> int:
        """Store an array of integers and return its index; negative numbers, unknown, are null."""
        whole = np.ascontiguousarray(array, dtype=np.int64)
        key = whole.tobytes()
        if key not in self._places:
            self._places[key] = len(self.arrays)
            self.arrays.append([x if x >= 0 else None for x in whole.tolist()])
        return self._places[key]


def _series(one: Series, grids: Grids) -> dict[str, Any]:
    places = {"i": grids.place(one.iterations), "e": grids.place(one.env_steps)}
    return {"seed": one.seed, **places, "h": plain(one.hours), "r": plain(one.returns)}


def plain(value: Any) -> Any:
    """Convert to JSON types, floats to five digits; null if not finite, which JSON cannot hold."""
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value


def _title(methods: Sequence[str], tasks: Sequence[str]) -> str:
    def listed(names: Sequence[str], what: str) -> str:
        if len(names) > 3:
            return f"{len(names)} {what}"
        return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)

    if not methods:
        return "Runs without evaluations"
    return f"{listed(methods, 'methods')} on {listed(tasks, 'tasks')}"


def read_extras(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Read the tables of parameters and times in the folders; skip links and other files."""
    found = []
    for kind, name in EXTRAS.items():
        for path in dict.fromkeys(folder / name for folder in folders):
            if not path.is_file() or path.is_symlink():
                continue
            try:
                text = read_text(path, "a table", max_bytes=2**20)
                columns, *rows = csv.reader(text.splitlines()) if text.strip() else [[]]
            except (UserError, csv.Error):
                continue  # not a table: nothing to show
            cells = [(row + [""] * len(columns))[: len(columns)] for row in rows]
            found.append({"kind": kind, "source": str(path), "columns": columns, "rows": cells})
    return found
