"""Records -> what the page says of each run: how it ended, what it was made with, its fields."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langevinrl.analysis.groups import Group
from langevinrl.analysis.records import RunRecord
from langevinrl.registry import label_of

LISTED = 3  # versions spelled out


def describe_runs(records: Sequence[RunRecord], groups: Sequence[Group]) -> dict[str, Any]:
    """runs, the fields and versions that all of them share, and the package versions used.

    A run keeps only the fields that are not the same everywhere: hundreds of runs are mostly alike.
    """
    labels = {id(run): group.label for group in groups for run in group.runs}
    configs = [flat_config(record.config) for record in records]
    shared = shared_fields(configs)
    versions = shared_fields([record.versions for record in records])
    names = short_names([record.folder for record in records])
    runs = [
        {
            "folder": name,
            "label": labels.get(id(record), label_of(record.agent)),
            "agent": record.agent,
            "task": record.env,
            "seeds": [one.seed for one in record.series] or _planned_seeds(record),
            "status": record.status,
            "error": record.error,
            "resumes": record.resumes,
            "dirty": record.dirty,
            "version": version_of(record),
            "planned": record.config.get("iterations"),
            "reached": min((int(one.iterations[-1]) for one in record.series), default=0),
            "config": _without(config, shared),
            "versions": _without(record.versions, versions),
        }
        for record, config, name in zip(records, configs, names, strict=True)
    ]
    return {
        "runs": runs,
        "shared": shared,
        "sharedVersions": versions,
        "versions": made_with(records),
        "madeWith": summarise_versions(records),
    }


def flat_config(config: dict[str, Any]) -> dict[str, Any]:
    """The fields of a run, the agent's own after the others, lists as lists."""
    run = {name: value for name, value in config.items() if name != "hyperparameters"}
    fields = run | dict(config.get("hyperparameters") or {})
    return {name: json.loads(json.dumps(value, default=str)) for name, value in fields.items()}


def shared_fields(tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The fields that all tables have with one value."""
    if not tables:
        return {}
    first, rest = tables[0], tables[1:]
    return {
        name: value
        for name, value in first.items()
        if all(name in one and one[name] == value for one in rest)
    }


def version_of(record: RunRecord) -> str:
    """Package version and commit of a run: "0.1.0 (c007fa3)"."""
    number, commit = (record.versions.get(key) for key in ("langevinrl", "commit"))
    if not number:
        return "not recorded"
    return f"{number} ({str(commit)[:7]})" if commit else str(number)


def made_with(records: Sequence[RunRecord]) -> list[str]:
    """The package versions of the runs, the most frequent first."""
    return [name for name, _ in Counter(map(version_of, records)).most_common()]


def summarise_versions(records: Sequence[RunRecord]) -> str:
    """The package versions in few words; many commits are counted, not listed."""
    names = made_with(records)
    if len(names) <= LISTED:
        return ", ".join(names) or "not recorded"
    numbers = dict.fromkeys(name.partition(" (")[0] for name in names)
    return f"{', '.join(numbers)} at {len(names)} commits"


def short_names(folders: Sequence[Path]) -> list[str]:
    """Folders without the part of their paths that all share."""
    texts = [folder.as_posix() for folder in folders]
    if len(set(texts)) < 2:
        return [folder.name or text for folder, text in zip(folders, texts, strict=True)]
    common = os.path.commonpath(texts)
    return [os.path.relpath(text, common) if common else text for text in texts]


def _planned_seeds(record: RunRecord) -> list[int]:
    first, count = record.config.get("seed", 0), record.config.get("seeds", 1)
    if not isinstance(first, int) or not isinstance(count, int):
        return []
    return list(range(first, first + count))


def _without(table: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in shared}
