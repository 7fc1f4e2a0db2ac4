"""All ten methods on two small tasks: the runs, the table and the figure under results/ten.

From the root of the repository:

python experiments/ten_methods.py train [AGENT...]   # every run that has not finished
python experiments/ten_methods.py draw               # table.csv and curves.png from the runs

Small networks and high learning rates, so that all runs take a few hours: a check that each method
learns, not a ranking.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from reference_policies import reference

from langevinrl.analysis import Group, draw_group, find_runs, group_runs
from langevinrl.analysis.figures import pyplot
from langevinrl.analysis.grids import mean_curve
from langevinrl.analysis.statistics import standard_deviation
from langevinrl.analysis.tables import write_csv
from langevinrl.registry import label_of
from langevinrl.storage.folder import RunFolder

HERE = Path("results/ten")
TASKS = {"Pendulum-v1": 6_000, "InvertedDoublePendulum-v4": 8_000}  # iterations
RUN: dict[str, Any] = {
    "seeds": 3, "warmup": 1_000, "batch_size": 128, "capacity": 100_000,
    "eval_every": 500, "eval_episodes": 10, "checkpoint_every": 2_000,
}  # fmt: skip

# Changes for a short run: the defaults are made for a million iterations.
RATES = {"critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3}
STEADY = RATES | {"final_actor_learning_rate": 1e-3}
FIELDS: dict[str, dict[str, Any]] = {
    "nclql": {"learning_rate": 1e-3},
    "lql": {"learning_rate": 1e-3},
    "sac": RATES | {"temperature_learning_rate": 1e-3, "initial_alpha": 1.0},
    "qsm": STEADY,
    "dipo": RATES | {"num_steps": 20},
    # Cut-off weights are zero unless Q exceeds 1, and Pendulum's values are negative.
    "qvpo": STEADY | {"weights": "advantage", "policy_best_of": 8, "delay": 1},
    "dacer": STEADY | {"temperature_delay": 250},
    "mfp": RATES | {"flow_steps": 5},
    "sdac": STEADY | {"temperature_delay": 10, "delay": 1},
    # As coded, the clip of the exponent is reached by every action on such a small task.
    "dpmd": STEADY | {"temperature_delay": 10, "delay": 1, "weighting": "intended"},
}
SLOW = {"actor_learning_rate": 1e-4, "final_actor_learning_rate": 1e-4}
TASK_FIELDS = {
    # SDAC's policy is exp(5 Q / α) and QSM's exp(Q), and Pendulum's values differ little between
    # actions: the reward scale is the only temperature these two have.
    ("sdac", "Pendulum-v1"): {"reward_scale": 5.0},
    ("qsm", "Pendulum-v1"): {"reward_scale": 5.0},
    # At 1e-3 DACER's policy reaches the edge of the box in every state before the critics have
    # learned, and stays: there the chain is clipped and its gradient is zero.
    ("dacer", "InvertedDoublePendulum-v4"): SLOW,
}

# Draws per action: one.  But MFP learns only from the choice among its draws, and DPMD mostly,
# since its weights compare actions of different states.
FEW: dict[str, int] = dict.fromkeys(FIELDS, 1) | {"mfp": 8, "dpmd": 8}
CHOOSING = ("qsm", "qvpo", "mfp", "sdac", "dpmd")  # their default is the best of 32
JOBS = [(agent, task, draws) for task in TASKS for agent, draws in FEW.items()]
JOBS += [(agent, "Pendulum-v1", 32) for agent in CHOOSING]
# On the longer task 32 chains per step would take too long; 8 do not.
JOBS += [(agent, "InvertedDoublePendulum-v4", 8) for agent in CHOOSING if FEW[agent] == 1]


def folder_of(agent: str, task: str, draws: int) -> Path:
    return HERE / f"{agent}-{task}-{draws}"


def make(agents: list[str]) -> None:
    from langevinrl.runs.config import RunConfig
    from langevinrl.runs.train import resume, train

    for agent, task, draws in JOBS:
        folder = folder_of(agent, task, draws)
        if (agents and agent not in agents) or RunFolder(folder).last_evaluation() >= TASKS[task]:
            continue
        if RunFolder(folder).config.exists():
            resume(folder)
            continue
        fields = {"hidden": (64, 64), "best_of": draws} | FIELDS[agent]
        fields |= TASK_FIELDS.get((agent, task), {})
        config = RunConfig(
            task, agent=agent, hyperparameters=fields, iterations=TASKS[task],
            out=str(folder), **RUN,
        )  # fmt: skip
        train(config)


def curves() -> list[tuple[str, str, int, Group]]:
    """Return agent, task, draws and curve of each run."""
    return [
        (agent, task, draws, group)
        for agent, task, draws in JOBS
        if RunFolder(folder_of(agent, task, draws)).evaluations.exists()
        for group in group_runs(find_runs([folder_of(agent, task, draws)]))
    ]


def draw() -> None:
    found = curves()
    write_table(found)
    plt = pyplot()
    figure, axes = plt.subplots(4, 5, figsize=(13, 9), layout="constrained")
    places = {
        (task, agent): axes.flat[10 * t + a]
        for t, task in enumerate(TASKS)
        for a, agent in enumerate(FIELDS)
    }
    for (task, agent), axis in places.items():
        for policy, line in (("random", ":"), ("zero", "-.")):
            axis.axhline(reference(task, policy), color="0.5", linestyle=line, linewidth=1.2)
        axis.set_title(f"{label_of(agent)}, {task.split('-')[0]}", fontsize=9)
        if task == "Pendulum-v1":
            axis.set_ylim(-1700, 0)
        else:  # from falling at once to balancing for a thousand steps
            axis.set(yscale="log", ylim=(40, 12_000))
        axis.set_xlim(0, TASKS[task])
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
    for agent, task, draws, group in found:
        few = draws == FEW[agent]
        label = "one draw" if draws == 1 else f"best of {draws}"
        draw_group(places[task, agent], group, color="#0072B2" if few else "#D55E00", label=label)
    for (task, _), axis in places.items():
        place = "lower right" if task == "Pendulum-v1" else "upper left"
        axis.legend(frameon=False, fontsize=8, loc=place)
    figure.supxlabel("iterations (five environment steps and one update each)", fontsize=10)
    figure.supylabel(
        "return: mean of three seeds, each seed thin; dotted: random actions, dash-dotted: zero",
        fontsize=10,
    )
    figure.savefig(HERE / "curves.png", dpi=130)
    plt.close(figure)


def write_table(found: list[tuple[str, str, int, Group]]) -> None:
    """Write mean and standard deviation over seeds of the last three evaluations."""
    rows = []
    for agent, task, draws, group in found:
        last = np.array([seed.returns[-3:].mean() for seed in group.series])
        iterations, means = mean_curve(group)
        row = {
            "task": task, "method": label_of(agent), "draws": draws, "seeds": len(last),
            "iterations": int(iterations[-1]), "return": f"{last.mean():.1f}",
            "spread": f"{standard_deviation(last):.1f}", "worst seed": f"{last.min():.1f}",
            "best evaluation": f"{means.max():.1f}",
            "random": reference(task, "random"), "zero": reference(task, "zero"),
        }  # fmt: skip
        rows.append(row)
        print(f"{task:26} {label_of(agent):7} {draws:3}  {row['return']:>8} ± {row['spread']}")
    write_csv(HERE / "table.csv", rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["draw"]:
        draw()
    elif sys.argv[1:2] == ["train"]:
        make(sys.argv[2:])
    else:
        sys.exit(__doc__)
