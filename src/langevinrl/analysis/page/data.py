"""Records and groups -> the document the page draws: plain lists and numbers, small enough to send.

methods   {label, agent, colour, settings}, in the order of every table
tasks     {name, paper}: the paper's length in iterations, or null
grids     arrays of iterations or environment steps, each kept once
curves    {method, task, series: [{seed, i, e, h, r}]}; i and e are places in grids, h hours,
          r returns
summary   what is computed over all tasks; see summary.py
runs      one per run folder; see health.py
extras    tables found beside the runs, as they are
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.analysis.groups import Group
from langevinrl.analysis.page.budget import describe_budget, describe_facts, sort_tasks
from langevinrl.analysis.page.health import describe_runs
from langevinrl.analysis.page.rounding import rounded
from langevinrl.analysis.paper import ITERATIONS
from langevinrl.analysis.records import RunRecord, split_version
from langevinrl.analysis.tables import read_csv
from langevinrl.registry import label_of

EXTRAS = {"parameters": "parameters.csv", "time": "time.csv"}


def page_document(
    records: Sequence[RunRecord],
    groups: Sequence[Group],
    summary: dict[str, Any],
    folders: Sequence[Path] = (),
    made: str = "",
) -> dict[str, Any]:
    """Everything on the page; `folders` are those the report was asked for."""
    labels = list(dict.fromkeys(group.label for group in groups))
    tasks = sort_tasks(group.env for group in groups)
    agents = list(dict.fromkeys(group.agent for group in groups))
    first = {group.label: group for group in reversed(groups)}
    grids = Grids()
    curves = [
        {
            "method": labels.index(group.label),
            "task": tasks.index(group.env),
            "series": [_series(one, grids) for one in group.series],
        }
        for group in groups
    ]
    return {
        "title": _title([label_of(agent) for agent in agents], tasks),
        "made": made,
        "facts": describe_facts(records, groups),
        "budget": describe_budget(groups),
        "methods": [
            {key: getattr(first[label], key) for key in ("label", "agent", "colour", "settings")}
            for label in labels
        ],
        "agents": {agent: label_of(agent) for agent in agents},
        "tasks": [
            {"name": task, "paper": ITERATIONS.get(split_version(task)[0])} for task in tasks
        ],
        "grids": grids.arrays,
        "curves": curves,
        "summary": summary,
        "extras": read_extras(folders),
        **describe_runs(records, groups),
    }


class Grids:
    """Arrays that many seeds share, each kept once."""

    def __init__(self) -> None:
        self.arrays: list[list[int | None]] = []
        self._places: dict[bytes, int] = {}

    def place(self, array: np.ndarray) -> int:
        """Where an array of whole numbers is kept; negative ones, which are not known, as null."""
        whole = np.ascontiguousarray(array, dtype=np.int64)
        key = whole.tobytes()
        if key not in self._places:
            self._places[key] = len(self.arrays)
            self.arrays.append([x if x >= 0 else None for x in whole.tolist()])
        return self._places[key]


def _series(one: Any, grids: Grids) -> dict[str, Any]:
    return {
        "seed": one.seed,
        "i": grids.place(one.iterations),
        "e": grids.place(one.env_steps),
        "h": rounded(one.hours, 4),
        "r": rounded(one.returns, 5),
    }


def _title(methods: Sequence[str], tasks: Sequence[str]) -> str:
    def listed(names: Sequence[str], what: str) -> str:
        if len(names) > 3:
            return f"{len(names)} {what}"
        return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)

    if not methods:
        return "Runs without evaluations"
    return f"{listed(methods, 'methods')} on {listed(tasks, 'tasks')}"


def read_extras(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """The tables of parameters and time that lie in the folders, as they are."""
    found = []
    for kind, name in EXTRAS.items():
        for path in dict.fromkeys(folder / name for folder in folders):
            if not path.is_file():
                continue
            rows = read_csv(path)
            columns = list(rows[0]) if rows else []
            cells = [[row[column] or "" for column in columns] for row in rows]
            found.append({"kind": kind, "source": str(path), "columns": columns, "rows": cells})
    return found
