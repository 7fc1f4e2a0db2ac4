"""NC-LQL's preset `fast`, one thing changed at a time, on four tasks.

From the root of the repository:

python experiments/past_the_paper.py train STUDY FOLDER ITERATIONS SEED...   # the same goes on
python experiments/collect.py FOLDER RESULTS
python experiments/past_the_paper.py draw STUDY RESULTS      # table.csv and curves.png of them

temperature   w by itself from a spread, beside the paper's unit scores at five fixed w
norms         with norms of the critics' layers and of observations
parts         without each of the preset's other parts

Cases without a run in RESULTS are left out.  Seeds that are reported are 10 and 11, none that a
value was chosen on; the best of five w is chosen on seed 20, in 8,000 iterations.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.analysis import Group, draw_group, find_runs, group_runs
from langevinrl.analysis.colours import COLOURS
from langevinrl.analysis.figures import count_in_thousands, panels, share_legend, write_figure
from langevinrl.analysis.grids import mean_curve
from langevinrl.analysis.groups import UNCOUNTED
from langevinrl.analysis.tables import Row, write_csv
from langevinrl.runs.checks import plain
from langevinrl.sweeps.grid import Grid
from langevinrl.sweeps.start import sweep

TASKS = ("HalfCheetah-v4", "Hopper-v4", "InvertedDoublePendulum-v4", "Walker2d-v4")
BASE = {"agent": "nclql", "preset": "fast", "eval_every": 1_000, "eval_episodes": 5}
FAST: Mapping[str, Any] = {}
UNIT = {"spread": None}
CASES: dict[str, dict[str, Mapping[str, Any]]] = {
    "temperature": {"w by itself, spread 0.2": FAST}
    | {f"w = {w:g}": UNIT | {"inverse_temperature": w} for w in (20.0, 50.0, 100.0, 200.0, 500.0)},
    "norms": {
        "fast": FAST,
        "layer norm": {"critic_norm": "layer"},
        "scaled observations": {"obs_norm": True},
        "both": {"critic_norm": "layer", "obs_norm": True},
    },
    "parts": {
        "fast": FAST,
        "three-step returns": {"n_step": 3},
        "target rate 0.005": {"target_rate": 0.005},
        "learning rate 1e-4": {"learning_rate": 1e-4},
        "batches of 256": {"batch_size": 256},
        "warm-up 30,000": {"warmup": 30_000},
        "rewards x 0.2": {"reward_norm": False, "reward_scale": 0.2},
    },
}


def train(study: str, folder: str, iterations: int, seeds: list[int]) -> None:
    length = {"iterations": iterations, "checkpoint_every": iterations}
    sweep(Grid(BASE | length, {"env": TASKS}, list(CASES[study].values()), seeds), folder)


def counted(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a run that decide what is learned, and of its agent, side by side."""
    run = {name: value for name, value in config.items() if name not in UNCOUNTED}
    return run | plain(config["hyperparameters"])


def groups_of(study: str, place: Path) -> dict[str, list[Group]]:
    """The seeds of each case, task by task: runs that have its fields, and else the preset's."""
    usual = counted(vars(Grid(BASE | {"env": TASKS[0], "iterations": 1}).configs()[0]))
    groups = {}
    records = find_runs([place])
    for label, case in CASES[study].items():
        own = [run for run in records if counted(run.config) == {**usual, **case}]
        if own:
            groups[label] = group_runs(own)
    return groups


def draw(study: str, place: Path) -> None:
    found = groups_of(study, place)
    tasks = sorted({group.env for groups in found.values() for group in groups})
    figure, axes = panels(len(tasks))
    rows: list[Row] = []
    for (label, groups), colour in zip(found.items(), COLOURS, strict=False):
        for group in groups:
            draw_group(axes[tasks.index(group.env)], group, color=colour, label=label)
            places, mean = mean_curve(group)
            last = np.array([seed.returns[-3:].mean() for seed in group.series])
            row: Row = {"task": group.env, "case": label, "seeds": len(last)}
            row |= {"iterations": int(places[-1]), "last three": last.mean()}
            row |= {"worst seed": last.min(), "best seed": last.max(), "whole curve": mean.mean()}
            rows.append(row)
    for axis, task in zip(axes, tasks, strict=True):
        axis.set_title(task, fontsize=11)
        axis.set(xlabel="iterations")
        count_in_thousands(axis)
    share_legend(figure, axes, list(found))
    write_csv(place / "table.csv", sorted(rows, key=lambda row: str(row["task"])))
    write_figure(figure, place / "curves.png")
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"] and len(sys.argv) > 5 and sys.argv[2] in CASES:
        train(sys.argv[2], sys.argv[3], int(sys.argv[4]), [int(word) for word in sys.argv[5:]])
    elif sys.argv[1:2] == ["draw"] and len(sys.argv) == 4 and sys.argv[2] in CASES:
        draw(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(__doc__)
