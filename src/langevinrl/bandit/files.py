"""A study folder read back: arrays and tables, without JAX."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

# The methods in the order figures show them.
ORDER = ("nclql", "lql", "sdac", "dpmd", "qsm", "dacer", "dipo", "qvpo", "mfp", "sac")
Arrays = dict[str, np.ndarray]
Row = dict[str, str]


class Study:
    """What a study folder holds."""

    def __init__(self, out: Path) -> None:
        self.exact = _arrays(out / "data" / "exact.npz")
        names = json.loads((out / "settings.json").read_text())["study"]["methods"]
        self.data = {n: _arrays(out / "data" / f"{n}.npz") for n in ORDER if n in names}
        self.seeds, self.sweep, self.smoothing, self.table = (
            read_rows(out / f"{name}.csv") for name in ("seeds", "sweep", "smoothing", "table")
        )
        self.labels = {
            row["method"]: line["method"]
            for row, line in zip(_firsts(self.seeds), self.table, strict=True)
        }

    def line(self, name: str) -> Row:
        """A method's row of the table."""
        return next(row for row in self.table if row["method"] == self.labels[name])


def _arrays(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def read_rows(path: Path) -> list[Row]:
    with path.open() as file:
        return list(csv.DictReader(file))


def _firsts(rows: list[Row]) -> Iterator[Row]:
    """The first row of each method."""
    seen: set[str] = set()
    for row in rows:
        if row["method"] not in seen:
            seen.add(row["method"])
            yield row
