"""Arrays and tables of a study folder, read without JAX."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from langevinrl.analysis.tables import Row, read_csv
from langevinrl.registry import METHODS, label_of

Arrays = dict[str, np.ndarray]


class StudyData:
    """Contents of a study folder; methods are in the registry's order."""

    def __init__(self, out: Path) -> None:
        self.exact = _arrays(out / "data" / "exact.npz")
        names = json.loads((out / "settings.json").read_text())["study"]["methods"]
        self.data = {n: _arrays(out / "data" / f"{n}.npz") for n in METHODS if n in names}
        self.seeds, self.sweep, self.smoothing, self.table = (
            read_csv(out / f"{name}.csv") for name in ("seeds", "sweep", "smoothing", "table")
        )

    def line(self, name: str) -> Row:
        """Return a method's row of the table."""
        return next(row for row in self.table if row["method"] == label_of(name))


def _arrays(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
