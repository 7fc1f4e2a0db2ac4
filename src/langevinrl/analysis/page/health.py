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
            "reached": min((int(one.iterations[-1]) for one in record.series), default=0),
            "config": flat_config(record.config),
            "versions": record.versions,
        }
        for record, name in zip(records, names, strict=True)
    ]


def flat_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a run, then the agent's own."""
    run = {name: value for name, value in config.items() if name != "hyperparameters"}
    return run | (config.get("hyperparameters") or {})


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
