"""The tables of a report, each as rows to compute with and rows to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from langevinrl.analysis import paper
from langevinrl.analysis.comparison import Comparison
from langevinrl.analysis.grids import final_returns, mean_curve
from langevinrl.analysis.groups import Group
from langevinrl.analysis.statistics import (
    AGGREGATES,
    estimate,
    mean,
    probability_of_improvement,
)
from langevinrl.analysis.tables import Row, spread, with_interval
from langevinrl.registry import METHODS, label_of

INTERVAL = "Intervals: 95 %, bootstrapped over seeds within each task; none with a single seed."


@dataclass(frozen=True)
class Table:
    """One table: its file's name, what it shows, all columns, and those printed."""

    name: str
    caption: str
    rows: list[Row]
    printed: list[Row]


def final_table(groups: Sequence[Group]) -> Table:
    """The last return of every method on every task, over the seeds that finished."""
    rows, printed = [], []
    large = {group.env for group in groups if (abs(final_returns(group)) >= 1_000).any()}
    for group in sorted(groups, key=lambda one: one.env):
        last = final_returns(group)
        if not last.size:
            continue
        found = estimate(mean, [last])
        rows.append(
            {
                "env": group.env, "agent": group.agent, "method": group.label, "seeds": len(last),
                "return": float(found.value), "low": float(found.low), "high": float(found.high),
                "spread": spread(last) if len(last) > 1 else float("nan"),
                "lowest": last.min(), "highest": last.max(),
            }
        )  # fmt: skip
        values = [float(number) for number in found]
        interval = with_interval(values, digits=0 if group.env in large else 1)
        printed.append(
            {"method": group.label, "task": group.env, "seeds": len(last), "return": interval}
        )
    caption = f"Mean return over seeds at the end of training. {INTERVAL}"
    return Table("final_returns", caption, rows, printed)


def normalised_table(found: Comparison) -> Table:
    """Normalised score x 100 along training, in the paper's layout, the paper's beside it."""
    rows, printed = [], []
    for label in found.methods:
        row: Row = {"method": label}
        shown: Row = {"method": label}
        for progress in paper.PROGRESS:
            scores = [100 * task for task in found.scores(label, progress)]
            empty = any(not task.size for task in scores)
            here = [float("nan")] * 3 if empty else [float(v) for v in estimate(mean, scores)]
            name = f"{progress:.1f}"
            row |= dict(zip((name, f"{name} low", f"{name} high"), here, strict=True))
            last = progress == paper.PROGRESS[-1]
            number = here if last else [here[0], float("nan"), float("nan")]
            shown[name] = with_interval(number, digits=1)
        agent = found.agent(label)
        theirs: Sequence[Any] = paper.NORMALISED.get(agent, [""] * len(paper.PROGRESS))
        for progress, value in zip(paper.PROGRESS, theirs, strict=True):
            row[f"paper {progress:.1f}"] = value
            shown[f"paper {progress:.1f}"] = f"{value:.1f}" if value else ""
        row["paper ±"] = paper.PLUS_MINUS.get(agent, "")
        if row["paper ±"]:
            shown[f"paper {progress:.1f}"] = f"{value:.1f} ± {row['paper ±']:.1f}"
        rows.append(row)
        printed.append(shown)
    caption = (
        f"Normalised return x 100 by training progress, mean over {len(found.tasks)} tasks. "
        f"{found.normalisation.in_words()} {INTERVAL} The paper's columns are as printed, over its "
        "nine tasks and five seeds; it does not define its normalisation."
    )
    return Table("normalised", caption, rows, printed)


def aggregate_table(found: Comparison) -> Table:
    """Mean, median, interquartile mean and optimality gap of every method."""
    rows, printed = [], []
    for label in found.methods:
        scores = found.scores(label)
        counts = sorted({len(task) for task in scores})
        seeds = "–".join(map(str, {counts[0]: 0, counts[-1]: 0}))
        row: Row = {"method": label, "tasks": len(scores), "seeds": seeds}
        shown = dict(row)
        for name, statistic in AGGREGATES.items():
            numbers = [float(number) for number in estimate(statistic, scores)]
            row |= dict(zip((name, f"{name} low", f"{name} high"), numbers, strict=True))
            shown[name] = with_interval(numbers, digits=3)
        rows.append(row)
        printed.append(shown)
    caption = f"Aggregate scores at the end. {found.normalisation.in_words()} {INTERVAL}"
    return Table("aggregates", caption, rows, printed)


def improvement_table(found: Comparison) -> Table:
    """How often a run of one method beats one of another, for every ordered pair."""
    rows, printed = [], []
    for first, second in permutations(found.methods, 2):
        scores = found.scores(first), found.scores(second)
        numbers = [float(n) for n in estimate(probability_of_improvement, *scores)]
        row: Row = {"method": first, "over": second}
        rows.append(row | dict(zip(("probability", "low", "high"), numbers, strict=True)))
        chance = with_interval(numbers, digits=2)
        printed.append(row | {"probability": chance})
    caption = (
        "The chance that a run of one method ends above a run of another on the same task, mean "
        f"over tasks; a tie counts a half. {INTERVAL}"
    )
    return Table("improvement", caption, rows, printed)


def paper_table() -> Table:
    """What the paper prints about size and time on Humanoid-v4, beside our parameter counts."""
    whole = paper.COUNTED_PARAMETERS["nclql"]
    rows: list[Row] = [
        {
            "method": label_of(agent),
            "parameters": paper.COUNTED_PARAMETERS[agent],
            "ratio": f"{paper.COUNTED_PARAMETERS[agent] / whole:.3f}",
            "paper's ratio": f"{paper.HUMANOID_PARAMETERS[agent]:.3f}"
            if agent in paper.HUMANOID_PARAMETERS
            else "",
            "paper's time": f"{paper.HUMANOID_TIME[agent]:.3f}"
            if agent in paper.HUMANOID_TIME
            else "",
        }
        for agent in METHODS
        if agent in paper.COUNTED_PARAMETERS
    ]
    caption = (
        "Trainable parameters on Humanoid-v4, and the paper's ratios to NC-LQL's parameters and "
        f"training time (1.000 is {paper.HUMANOID_HOURS} h on one RTX 4090)."
    )
    return Table("paper_humanoid", caption, rows, rows)


def print_returns(groups: Sequence[Group], most: int = 10) -> None:
    """At most `most` evaluations of each curve, evenly spread, the last always among them."""
    for group in groups:
        points, returns = mean_curve(group)
        if not points.size:
            continue
        print(f"\n{'iterations':>10}  {'return':>9}  over {len(group.series)} seed(s)")
        for i in np.unique(np.linspace(0, len(points) - 1, most).round().astype(int)):
            print(f"{int(points[i]):>10}  {returns[i]:>9.1f}")


def tidy_rows(groups: Sequence[Group]) -> list[Row]:
    """A row per method, task, seed, metric and evaluation: what other tools read."""
    return [
        {"exp_name": group.label, "env_name": group.env, "seed": one.seed, "metric": metric,
         "env_step": int(step), "value": float(value)}
        for group in groups
        for one in group.series
        for metric, values in (("return", one.returns), ("hours", one.hours),
                               ("iterations", one.iterations))
        for step, value in zip(one.env_steps, values, strict=True)
        if np.isfinite(value) or metric == "return"
    ]  # fmt: skip
