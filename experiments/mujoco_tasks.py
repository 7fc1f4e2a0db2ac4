"""First learning curves: the runs under results/mujoco, and the figure drawn from them.

python experiments/mujoco_tasks.py train    # 8.6 hours in all when made, on busy cores
python experiments/mujoco_tasks.py draw     # results/mujoco/curves.png from what is there
"""

from __future__ import annotations

import sys
from pathlib import Path

from langevinrl.analysis.figures import NAMES, draw_curve, pyplot, read_curves

HERE = Path("results/mujoco")

# Agent, task, iterations, seeds.
RUNS = [
    ("nclql", "InvertedDoublePendulum-v4", 15_000, 2),
    ("lql", "InvertedDoublePendulum-v4", 15_000, 2),
    ("nclql", "HalfCheetah-v4", 20_000, 3),
    ("nclql", "Hopper-v4", 20_000, 1),
    ("nclql", "Reacher-v4", 10_000, 1),
]

# The authors' released NC-LQL at its defaults, one seed: mean return of ten episodes.
RELEASED = {
    "InvertedDoublePendulum-v4": {
        1_000: 113, 2_000: 194, 4_000: 401, 6_000: 446, 8_000: 671, 9_000: 1538, 10_000: 1546,
    },
    "HalfCheetah-v4": {
        1_500: -512, 3_000: -445, 6_000: -377, 9_000: -187, 10_500: 158, 12_000: 792,
        13_500: 980, 15_000: 787,
    },
}  # fmt: skip

# Uniform random actions, twenty episodes, environments seeded 0 to 19: mean return.
RANDOM = {
    "InvertedDoublePendulum-v4": 62.4,
    "HalfCheetah-v4": -273.7,
    "Hopper-v4": 25.8,
    "Reacher-v4": -44.0,
}


def train() -> None:
    from langevinrl.runs.config import RunConfig
    from langevinrl.runs.train import run

    for agent, env, iterations, seeds in RUNS:
        run(
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
        for curve in read_curves(sorted(HERE.glob(f"*-{task}*"), reverse=True)):
            seeds = len(curve.returns)
            label = f"{NAMES[curve.agent]}, {seeds} seed{'s' * (seeds > 1)}"
            draw_curve(axis, curve, label=label)
        if task in RELEASED:
            points = RELEASED[task]
            axis.plot(list(points), list(points.values()), "k--o", markersize=3.5, linewidth=1,
                      label="released NC-LQL code, 1 seed")  # fmt: skip
        axis.axhline(
            RANDOM[task], color="0.5", linestyle=":", linewidth=1.2, label="random actions"
        )
        axis.set_title(task, fontsize=11)
        axis.set(xlabel="iterations", ylabel="return", xlim=(0, None))
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
        axis.legend(frameon=False, fontsize=9)
    figure.savefig(HERE / "curves.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    {"train": train, "draw": draw}[sys.argv[1]]()
