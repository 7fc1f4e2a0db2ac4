"""Tables as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Row: TypeAlias = dict[str, Any]  # a line of a table, by column


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
