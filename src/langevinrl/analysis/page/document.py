"""The document that the page draws: plain lists and rounded numbers.

methods      {label, agent, colour, settings}, in the order of every table
tasks        names, in the paper's order
grids        arrays of iterations or environment steps, each stored once
curves       {method, task, series: [{seed, i, e, h, r}]}; i and e index grids, h hours, r returns
finals       {method, task, seeds, mean, sd} of finished seeds
aggregates   scores over all tasks as in summary.py, an estimate as [value, low, high]; or null
runs         one per run folder; see overview.py
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
from langevinrl.analysis.aggregates import listed
from langevinrl.analysis.evaluations import Series
from langevinrl.analysis.normalise import WORDS
from langevinrl.analysis.page import overview
from langevinrl.analysis.summary import Summary
from langevinrl.errors import UserError
from langevinrl.registry import label_of
from langevinrl.storage.files import read_text

EXTRAS = {"parameters": "parameters.csv", "time": "time.csv"}


def page_document(summary: Summary, folders: Sequence[Path] = (), made: str = "") -> dict[str, Any]:
    """Build everything on the page; `folders` are those the report was asked for."""
    groups, records = summary.groups, summary.records
    versions = overview.list_versions(records)
    agents = {group.agent: label_of(group.agent) for group in groups}
    return {
        "title": _title(list(agents.values()), overview.sort_tasks(group.env for group in groups)),
        "made": made,
        "facts": overview.describe_facts(records, groups),
        "budget": overview.describe_budget(groups),
        "agents": agents,
        **_curves(summary),
        "aggregates": plain(summary.aggregates),
        "noAggregates": summary.no_aggregates,
        "notes": summary.notes,
        "scales": WORDS,
        "paper": {"tasks": paper.TASKS, "progress": paper.PROGRESS, "values": paper.NORMALISED}
        | {"plusMinus": paper.PLUS_MINUS},
        "extras": read_extras(folders),
        "runs": overview.describe_runs(records, groups),
        "versions": versions,
        "madeWith": overview.summarise_versions(versions),
    }


def _curves(summary: Summary) -> dict[str, Any]:
    """List methods, tasks, curves and final returns; the latter two refer to them by place."""
    groups = summary.groups
    grids: dict[tuple[int | None, ...], int] = {}
    first = {group.label: group for group in reversed(groups)}
    labels = list(dict.fromkeys(group.label for group in groups))
    tasks = overview.sort_tasks(group.env for group in groups)
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
        "grids": list(grids),
        "finals": [
            places[id(one.group)]
            | plain({"seeds": one.returns.size, "mean": one.mean.value, "sd": one.deviation})
            for one in summary.finals
        ],
    }


def _series(one: Series, grids: dict[tuple[int | None, ...], int]) -> dict[str, Any]:
    """Convert one seed; a new grid is added to `grids`, where negative numbers, unknown, are null.

    Most seeds share their grids, so a page stores each once.
    """
    places = {}
    for key, array in (("i", one.iterations), ("e", one.env_steps)):
        grid = tuple(x if x >= 0 else None for x in array.tolist())
        places[key] = grids.setdefault(grid, len(grids))
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
    if not methods:
        return "Runs without evaluations"
    which = listed(methods) if len(methods) <= 3 else f"{len(methods)} methods"
    return f"{which} on {listed(tasks) if len(tasks) <= 3 else f'{len(tasks)} tasks'}"


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
