"""Comparison of two runs by what they left on disk."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from langevinrl.storage.folder import METADATA, RunFolder


def read_logs(folder: Path) -> tuple[list[dict[str, str]], str]:
    """Return both logs without times."""
    with (folder / "evaluations.csv").open() as file:
        rows = [{k: v for k, v in r.items() if k != "wall_seconds"} for r in csv.DictReader(file)]
    return rows, (folder / "metrics.jsonl").read_text()


def assert_same_end(one: Path, other: Path) -> None:
    """Compare arrays byte by byte, and metadata and logs without times."""
    paths = [RunFolder(folder).saved_checkpoints()[-1] for folder in (one, other)]
    for group in ("state", "replay", "envs"):
        a, b = ((path / f"{group}.safetensors").read_bytes() for path in paths)
        assert a == b, group
    metadata = [json.loads((path / METADATA).read_text()) for path in paths]
    for table in metadata:
        del table["wall_seconds"], table["logs"]
    assert metadata[0] == metadata[1]
    assert read_logs(one) == read_logs(other)
