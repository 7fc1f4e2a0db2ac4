"""LQL with uniform, normal and zero starts of its chain, on three tasks.

From the root of the repository:

python experiments/lql_start.py train [SEED...]   # every run that has not finished
python experiments/lql_start.py draw              # table.csv and curves.png from the runs

The paper's hyperparameters, 10,000 iterations, two seeds, five episodes an evaluation.  Unfinished
runs are shown as far as they got; `iterations` in the table says how far.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from reference_policies import reference

from langevinrl.analysis import Group, draw_group, find_runs, group_runs
from langevinrl.analysis.figures import pyplot
from langevinrl.analysis.grids import mean_curve
from langevinrl.analysis.tables import Row, write_csv
from langevinrl.storage.folder import RunFolder

HERE = Path("results/lql_start")
TASKS = ("InvertedDoublePendulum-v4", "Reacher-v4", "HalfCheetah-v4")
STARTS = {"uniform": "#0072B2", "normal": "#E69F00", "zero": "#D55E00"}
SEEDS = (0, 1)
ITERATIONS = 10_000


def folder_of(start: str, task: str, seed: int) -> Path:
    return HERE / f"{start}-{task}-{seed}"


def make(seeds: list[int]) -> None:
    from langevinrl.runs.config import RunConfig
    from langevinrl.runs.train import resume, train

    jobs = [(task, start, seed) for task in TASKS for start in STARTS for seed in seeds]
    for task, start, seed in jobs:
        folder = folder_of(start, task, seed)
        if RunFolder(folder).last_evaluation() >= ITERATIONS:
            continue
        if RunFolder(folder).config.exists():
            resume(folder)
            continue
        config = RunConfig(
            task, agent="lql", hyperparameters={"start": start}, iterations=ITERATIONS, seed=seed,
            out=str(folder), eval_every=500, eval_episodes=5, checkpoint_every=2_000,
        )  # fmt: skip
        train(config)


def curves(start: str, task: str) -> list[Group]:
    """Return the seeds that got at least half as far as the furthest, as one curve."""
    reached = {
        f: RunFolder(f).last_evaluation() for f in (folder_of(start, task, s) for s in SEEDS)
    }
    furthest = max(reached.values())
    folders = [f for f, last in reached.items() if 2 * last >= furthest > 0]
    return group_runs(find_runs(folders)) if folders else []


def draw() -> None:
    plt = pyplot()
    tasks = [task for task in TASKS if any(curves(start, task) for start in STARTS)]
    size = (4 * len(tasks), 3.6)
    figure, axes = plt.subplots(1, len(tasks), figsize=size, layout="constrained", squeeze=False)
    rows = []
    for axis, task in zip(axes[0], tasks, strict=True):
        for start, colour in STARTS.items():
            for group in curves(start, task):
                draw_group(axis, group, color=colour, label=f"{start} start")
                iterations, mean = mean_curve(group)
                # Each seed's last three evaluations that all seeds have.
                shared = [seed.returns[seed.iterations <= iterations[-1]] for seed in group.series]
                last = np.array([returns[-3:].mean() for returns in shared])
                row: Row = {"task": task, "start": start, "seeds": len(last)}
                row |= {"iterations": int(iterations[-1]), "return": last.mean()}
                rows.append(row | {"worst seed": last.min(), "best evaluation": mean.max()})
        for policy, line in (("random", ":"), ("zero", "-.")):
            axis.axhline(reference(task, policy), color="0.5", linestyle=line, linewidth=1,
                         label=f"{policy} actions")  # fmt: skip
        axis.set_title(task, fontsize=11)
        axis.set(xlabel="iterations", xlim=(0, ITERATIONS))
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
    axes[0, 0].set_ylabel("LQL's return")
    axes[0, 0].legend(frameon=False)
    write_csv(HERE / "table.csv", rows)
    figure.savefig(HERE / "curves.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    if sys.argv[1:] == ["draw"]:
        draw()
    elif sys.argv[1:2] == ["train"]:
        make([int(word) for word in sys.argv[2:]] or list(SEEDS))
    else:
        sys.exit(__doc__)
