"""A study folder read back: arrays and tables, without JAX."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from langevinrl.report import NAMES

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

    def line(self, name: str) -> Row:
        """A method's row of the table."""
        return next(row for row in self.table if row["method"] == NAMES[name])


def _arrays(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def read_rows(path: Path) -> list[Row]:
    with path.open() as file:
        return list(csv.DictReader(file))
