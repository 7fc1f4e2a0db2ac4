"""NC-LQL-auto with rewards multiplied by 0.1, 1 and 10.

From the root of the repository:

python experiments/reward_size.py train FOLDER SEED...    # a sweep; run it again to continue
python experiments/collect.py FOLDER RESULTS
python experiments/reward_size.py draw RESULTS            # table.csv and curves.png

Returns are in the task's own rewards.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from langevinrl.analysis import RunRecord, find_runs
from langevinrl.analysis.figures import count_in_thousands, panels, share_legend, write_figure
from langevinrl.analysis.groups import COLOURS
from langevinrl.analysis.tables import Row, write_csv
from langevinrl.sweeps.grid import Grid
from langevinrl.sweeps.start import sweep

TASKS = ("HalfCheetah-v4", "InvertedDoublePendulum-v4")
FACTORS = {1.0: "rewards as they are", 0.1: "a tenth", 10.0: "tenfold"}
BASE = {
    "agent": "nclql-auto", "env": "reward_size:make_scaled", "iterations": 12_000,
    "eval_every": 1_000, "eval_episodes": 5, "checkpoint_every": 12_000,
}  # fmt: skip


def make_scaled(task: str, factor: float) -> gym.Env[Any, Any]:
    """Make a task with rewards multiplied by `factor`."""
    return gym.wrappers.TransformReward(gym.make(task), lambda reward: factor * float(reward))


def train(folder: str, seeds: list[int]) -> None:
    kwargs = [{"task": task, "factor": factor} for task in TASKS for factor in FACTORS]
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # where jobs find the environment
    sweep(Grid(BASE, {"env_kwargs": kwargs}, seeds=seeds), folder)


def draw(place: Path) -> None:
    found = find_runs([place])
    figure, axes = panels(len(TASKS))
    rows: list[Row] = []
    for axis, task in zip(axes, TASKS, strict=True):
        for (factor, label), colour in zip(FACTORS.items(), COLOURS, strict=False):
            runs = [run for run in found if settings_of(run) == (task, factor)]
            if not runs:
                continue
            curves = np.array([run.series[0].returns / factor for run in runs])  # (seeds, P)
            places = runs[0].series[0].iterations
            axis.plot(places, curves.mean(axis=0), color=colour, label=label)
            axis.plot(places, curves.T, color=colour, linewidth=0.8, alpha=0.35)
            last = curves[:, -3:].mean(axis=1)
            row: Row = {"task": task, "rewards": label, "seeds": len(last)}
            row |= {"iterations": int(places[-1]), "last three": last.mean()}
            rows.append(row | {"worst seed": last.min(), "best seed": last.max()})
        axis.set_title(task, fontsize=11)
        axis.set(xlabel="iterations")
        count_in_thousands(axis)
    axes[0].set_ylabel("mean return, in the task's own rewards")
    share_legend(figure, axes, list(FACTORS.values()))
    write_csv(place / "table.csv", rows)
    write_figure(figure, place / "curves.png")


def settings_of(run: RunRecord) -> tuple[str, float]:
    kwargs = run.config["env_kwargs"]
    return kwargs["task"], kwargs["factor"]


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"] and len(sys.argv) > 3:
        train(sys.argv[2], [int(word) for word in sys.argv[3:]])
    elif sys.argv[1:2] == ["draw"] and len(sys.argv) == 3:
        draw(Path(sys.argv[2]))
    else:
        sys.exit(__doc__)
