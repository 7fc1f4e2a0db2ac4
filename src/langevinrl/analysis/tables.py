"""Tables as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Row: TypeAlias = dict[str, Any]  # a line of a table, by column


def spread(values: Sequence[float] | np.ndarray) -> float:
    """How far seeds lie apart: their sample standard deviation; 0 for a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Rows that share their columns; no row, no header."""
    rows = [
        {k: f"{v:.6g}" if isinstance(v, float | np.floating) else v for k, v in row.items()}
        for row in rows
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        if rows:
            writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[Row]:
    """The rows of a table, everything as text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
