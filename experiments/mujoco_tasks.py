"""Learning curves at the paper's settings: the runs and the figure under results/mujoco.

python experiments/mujoco_tasks.py train
python experiments/mujoco_tasks.py draw     # results/mujoco/curves.png from the runs
"""

from __future__ import annotations

import sys
from pathlib import Path

from reference_policies import reference

from langevinrl.analysis import draw_group, find_runs, group_runs
from langevinrl.analysis.figures import pyplot
from langevinrl.analysis.tables import read_csv

HERE = Path("results/mujoco")

# Agent, task, iterations, seeds.
RUNS = [
    ("nclql", "InvertedDoublePendulum-v4", 15_000, 2),
    ("lql", "InvertedDoublePendulum-v4", 15_000, 2),
    ("nclql", "HalfCheetah-v4", 20_000, 3),
    ("nclql", "Hopper-v4", 20_000, 1),
    ("nclql", "Reacher-v4", 10_000, 1),
]

RELEASED = Path("results/released/evaluations.csv")  # the authors' code, one seed


def make() -> None:
    from langevinrl.runs.config import RunConfig
    from langevinrl.runs.train import train

    for agent, env, iterations, seeds in RUNS:
        train(
            RunConfig(
                env,
                agent=agent,
                iterations=iterations,
                seeds=seeds,
                out=str(HERE / f"{agent}-{env}"),
                eval_every=1_000 if iterations > 10_000 else 500,
                eval_episodes=10,
            )
        )


def draw() -> None:
    plt = pyplot()
    tasks = list(dict.fromkeys(env for _, env, _, _ in RUNS))
    figure, axes = plt.subplots(2, 2, figsize=(9.5, 6.4), layout="constrained")
    for axis, task in zip(axes.flat, tasks, strict=True):
        for group in group_runs(find_runs(sorted(HERE.glob(f"*-{task}*")))):
            seeds = len(group.series)
            draw_group(axis, group, label=f"{group.label}, {seeds} seed{'s' * (seeds > 1)}")
        released = [row for row in read_csv(RELEASED) if row["env"] == task]
        if released:
            steps, returns = ([float(r[c]) for r in released] for c in ("iterations", "return"))
            axis.plot(steps, returns, "k--o", markersize=3.5, linewidth=1,
                      label="released NC-LQL code, 1 seed")  # fmt: skip
        for policy, line in (("random", ":"), ("zero", "-.")):
            axis.axhline(reference(task, policy), color="0.5", linestyle=line, linewidth=1.2,
                         label=f"{policy} actions")  # fmt: skip
        axis.set_title(task, fontsize=11)
        axis.set(xlabel="iterations", ylabel="return", xlim=(0, None))
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
        axis.legend(frameon=False, fontsize=9)
    figure.savefig(HERE / "curves.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    {"train": make, "draw": draw}[sys.argv[1]]()
