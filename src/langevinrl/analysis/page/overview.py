"""Facts at the head of the page, and the list of runs with their versions and fields."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from langevinrl.analysis.groups import Group
from langevinrl.analysis.records import RunRecord, task_of
from langevinrl.registry import label_of
from langevinrl.runs.config import PAPER_ITERATIONS

MAX_VERSIONS = 3  # more are counted, not listed


def describe_facts(records: Sequence[RunRecord], groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Return names and values of the facts at the head."""
    labels: dict[str, set[str]] = {}
    for group in groups:
        labels.setdefault(group.agent, set()).add(group.label)
    methods = [
        label_of(agent) + (f" ({len(own)} settings)" if len(own) > 1 else "")
        for agent, own in labels.items()
    ]
    tasks = sort_tasks(group.env for group in groups)
    return [
        (f"Methods ({len(methods)})", ", ".join(methods) or "none"),
        (f"Tasks ({len(tasks)})", ", ".join(tasks) or "none"),
        ("Seeds per curve", _range([len(group.series) for group in groups])),
        ("Runs", str(len(records))),
        ("Iterations", _range([_reached(group.series) for group in groups])),
        ("Made with", summarise_versions(list_versions(records))),
    ]


def describe_budget(groups: Sequence[Group]) -> str:
    """Compare the length of the runs with the paper's, and warn about few seeds."""
    if not groups:
        return "No run has been evaluated yet."
    known = [group for group in groups if group.task in PAPER_ITERATIONS]
    length = "The paper has no result for some of these tasks."
    if len(known) == len(groups):
        shares = [100 * _reached(g.series) / PAPER_ITERATIONS[g.task] for g in known]
        length = f"Runs have {_range(shares, '.2g')} % of the paper's length."
    if any(len(group.series) == 1 for group in groups):
        return f"{length} With one seed, the variation between seeds is unknown."
    return f"{length} Gaps about as wide as the bands may be chance."


def _reached(series: Sequence[Any]) -> int:
    return min((int(one.iterations[-1]) for one in series), default=0)


def _range(values: Sequence[float], form: str = ",") -> str:
    """Return the smallest and the largest value, or the only one."""
    ends = dict.fromkeys(f"{end:{form}}" for end in (min(values), max(values))) if values else []
    return " to ".join(ends) or "none"


def sort_tasks(envs: Iterable[str]) -> list[str]:
    """Sort tasks in the paper's order, then by name."""
    order = list(PAPER_ITERATIONS)
    place = {task: i for i, task in enumerate(order)}
    return sorted(set(envs), key=lambda env: (place.get(task_of(env), len(order)), env))


def describe_runs(records: Sequence[RunRecord], groups: Sequence[Group]) -> list[dict[str, Any]]:
    """List the runs with everything the page shows of them."""
    labels = {id(run): group.label for group in groups for run in group.runs}
    names = short_names([record.folder for record in records])
    return [
        {
            "folder": name,
            "label": labels.get(id(record), label_of(record.agent)),
            "agent": record.agent,
            "task": record.env,
            "seeds": [one.seed for one in record.series],
            "status": record.status,
            "error": record.error,
            "resumes": record.resumes,
            "dirty": record.dirty,
            "changed": record.changed_logs,
            "version": version_of(record),
            "planned": record.config.get("iterations"),
            "reached": _reached(record.series),
            # The agent's own fields follow those of the run.
            "config": {k: v for k, v in record.config.items() if k != "hyperparameters"}
            | record.config.get("hyperparameters", {}),
            "versions": record.versions,
        }
        for record, name in zip(records, names, strict=True)
    ]


def version_of(record: RunRecord) -> str:
    """Return the package version and commit of a run: "0.1.0 (c007fa3)"."""
    number, commit = (record.versions.get(key) for key in ("langevinrl", "commit"))
    if not number:
        return "not recorded"
    return f"{number} ({str(commit)[:7]})" if commit else str(number)


def list_versions(records: Sequence[RunRecord]) -> list[str]:
    """Return the package versions of the evaluated runs, the most frequent first."""
    counts = Counter(version_of(record) for record in records if record.series)
    return [name for name, _ in counts.most_common()]


def summarise_versions(names: Sequence[str]) -> str:
    """Describe a list of package versions in few words."""
    if len(names) <= MAX_VERSIONS:
        return ", ".join(names) or "not recorded"
    numbers = dict.fromkeys(name.partition(" (")[0] for name in names)
    return f"{', '.join(numbers)} at {len(names)} commits"


def short_names(folders: Sequence[Path]) -> list[str]:
    """Return folders without the part of their paths that all share."""
    texts = [folder.as_posix() for folder in folders]
    if len(set(texts)) < 2:
        return [folder.name or text for folder, text in zip(folders, texts, strict=True)]
    common = os.path.commonpath(texts)
    return [os.path.relpath(text, common) if common else text for text in texts]
