"""Compare two methods at two temperatures with three seeds each."""

import sys
from pathlib import Path

from langevinrl import Grid, report, sweep

out = Path(sys.argv[1] if len(sys.argv) > 1 else "sweeps/compare")
grid = Grid(
    base={"env": "Pendulum-v1", "iterations": 3_000, "warmup": 1_000},
    axes={"agent": ["lql", "nclql"], "inverse_temperature": [50.0, 500.0]},
    seeds=[0, 1, 2],
)
sweep(grid, out)  # one process per core; run again to continue
report([out], out / "report.html")  # and report_files/ with tables and figures
print((out / "report_files/tables/final_returns.md").read_text())
