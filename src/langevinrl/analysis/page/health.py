"""Runs as the page lists them: how each ended, its versions, and its fields."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langevinrl.analysis.groups import Group
from langevinrl.analysis.records import RunRecord
from langevinrl.registry import label_of

MAX_VERSIONS = 3  # more are counted, not listed


def describe_runs(records: Sequence[RunRecord], groups: Sequence[Group]) -> dict[str, Any]:
    """List the runs, and the fields and versions that all of them share.

    A run holds only the fields that are not shared: hundreds of runs are mostly alike.
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
        "versions": list_versions(records),
        "madeWith": summarise_versions(records),
    }


def flat_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a run, then the agent's own."""
    run = {name: value for name, value in config.items() if name != "hyperparameters"}
    return run | (config.get("hyperparameters") or {})


def shared_fields(tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields with the same value in all tables."""
    if not tables:
        return {}
    return {
        name: value
        for name, value in tables[0].items()
        if all(name in other and other[name] == value for other in tables)
    }


def version_of(record: RunRecord) -> str:
    """Return the package version and commit of a run: "0.1.0 (c007fa3)"."""
    number, commit = (record.versions.get(key) for key in ("langevinrl", "commit"))
    if not number:
        return "not recorded"
    return f"{number} ({str(commit)[:7]})" if commit else str(number)


def list_versions(records: Sequence[RunRecord]) -> list[str]:
    """Return the package versions of the runs, the most frequent first."""
    return [name for name, _ in Counter(map(version_of, records)).most_common()]


def summarise_versions(records: Sequence[RunRecord]) -> str:
    """Describe the package versions in few words."""
    names = list_versions(records)
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


def _planned_seeds(record: RunRecord) -> list[int]:
    first, count = record.config.get("seed", 0), record.config.get("seeds", 1)
    if not isinstance(first, int) or not isinstance(count, int):
        return []
    return list(range(first, first + count))


def _without(table: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in shared}
