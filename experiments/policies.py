"""Trained policies to try: export runs of NC-LQL auto and play the exports.

From the root of the repository, for each task:

langevinrl train nclql-auto --env HalfCheetah-v4 --iterations 40000 --out runs/HalfCheetah-v4
python experiments/policies.py runs/HalfCheetah-v4 ...

writes results/policies/TASK.npz and TASK.onnx, and a row of returns.csv: the returns of the NumPy
file in 20 episodes, with environments and noise seeded 0 to 19; `first` is that of seed 0.
"""

from __future__ import annotations

import json
import statistics
import sys
import warnings
from pathlib import Path

import gymnasium as gym

from langevinrl.analysis.tables import Row, read_csv, write_csv
from langevinrl.export import NumpyPolicy, export
from langevinrl.storage.folder import CONFIG, VERSIONS

HERE = Path("results/policies")
EPISODES = 20


def play(file: Path, task: str, seed: int) -> float:
    """Return the return of one episode."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of v4 environments
        env = gym.make(task)
    policy = NumpyPolicy(file, seed=seed)
    observation, _ = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(policy(observation))
        total, ended = total + float(reward), terminated or truncated
    return total


def add(run: Path) -> Row:
    """Export a run's policy in both forms and measure it."""
    config = json.loads((run / CONFIG).read_text())
    versions = json.loads((run / VERSIONS).read_text())
    task = config["env"]
    export(run, "onnx", HERE / f"{task}.onnx")
    file = export(run, "numpy", HERE / f"{task}.npz")
    returns = [play(file, task, seed) for seed in range(EPISODES)]
    row: Row = {"task": task, "agent": config["agent"], "seed": config["seed"]}
    row |= {"iterations": config["iterations"], "episodes": EPISODES}
    row |= {"first": round(returns[0], 2)}
    row |= {"mean": round(statistics.fmean(returns), 2), "std": round(statistics.stdev(returns), 2)}
    return row | {"commit": versions["commit"], "dirty": versions["dirty"]}


def main(runs: list[Path]) -> None:
    HERE.mkdir(parents=True, exist_ok=True)
    table = HERE / "returns.csv"
    rows = {row["task"]: row for row in (read_csv(table) if table.exists() else [])}
    for run in runs:
        row = add(run)
        rows[row["task"]] = row
        print(row)
    write_csv(table, [rows[task] for task in sorted(rows)])


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
