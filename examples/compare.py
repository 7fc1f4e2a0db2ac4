"""Two methods, two temperatures, three seeds: train, compare with intervals, draw."""

import sys
from pathlib import Path

from langevinrl import Grid, report, sweep

out = Path(sys.argv[1] if len(sys.argv) > 1 else "sweeps/compare")
grid = Grid(
    base={"env": "Pendulum-v1", "iterations": 3_000, "warmup": 1_000},
    axes={"agent": ["lql", "nclql"], "inverse_temperature": [50.0, 500.0]},
    seeds=[0, 1, 2],
)
sweep(grid, out)  # a process per core; run it again to go on where it was cut
report([out], out / "report.html")  # the page, and report_files/ with tables and figures
print((out / "report_files/tables/final_returns.md").read_text())
