"""Tables of a report, each with all columns for CSV and fewer columns for print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from langevinrl.analysis import paper
from langevinrl.analysis.aggregates import Aggregates
from langevinrl.analysis.grids import mean_curve
from langevinrl.analysis.groups import Group
from langevinrl.analysis.statistics import Estimate
from langevinrl.analysis.summary import FinalReturn, Summary
from langevinrl.analysis.tables import Row, Table, with_interval

INTERVAL = "Intervals: 95 %, bootstrapped over seeds within each task; none with a single seed."


def report_tables(summary: Summary) -> list[Table]:
    """Return all tables of a report that have rows."""
    tables = [final_table(summary.finals)]
    if summary.aggregates:
        tables += [
            normalised_table(summary.aggregates),
            aggregate_table(summary.aggregates),
            improvement_table(summary.aggregates),
        ]
    return [table for table in tables if table.rows]


def final_table(finals: Sequence[FinalReturn]) -> Table:
    """Tabulate the return at the end of training of every method on every task."""
    rows, printed = [], []
    large = {one.group.env for one in finals if (abs(one.returns) >= 1_000).any()}
    for one in sorted(finals, key=lambda one: one.group.env):
        group, seeds = one.group, len(one.returns)
        row: Row = {"env": group.env, "agent": group.agent, "method": group.label, "seeds": seeds}
        row |= _columns(one.mean, "return", "low", "high")
        row |= {"spread": one.deviation}
        rows.append(row | {"lowest": one.returns.min(), "highest": one.returns.max()})
        interval = with_interval(one.mean, digits=0 if group.env in large else 1)
        row = {"method": group.label, "task": group.env, "seeds": seeds}
        printed.append(row | {"return": interval})
    caption = f"Mean return over seeds at the end of training. {INTERVAL}"
    return Table("final_returns", caption, rows, printed)


def _columns(estimate: Estimate, *names: str) -> Row:
    return {name: float(number) for name, number in zip(names, estimate, strict=True)}


def normalised_table(found: Aggregates) -> Table:
    """Tabulate score x 100 along training, in the paper's layout, beside the paper's numbers."""
    rows, printed = [], []
    for method in found.methods:
        row: Row = {"method": method.label}
        shown: Row = {"method": method.label}
        for progress, score in zip(paper.PROGRESS, method.progress, strict=True):
            percent = Estimate(*(100 * number for number in score))
            name = f"{progress:.1f}"
            row |= _columns(percent, name, f"{name} low", f"{name} high")
            last = progress == paper.PROGRESS[-1]
            shown[name] = with_interval(
                percent if last else (percent.value, np.nan, np.nan), digits=1
            )
        theirs: Sequence[Any] = paper.NORMALISED.get(method.agent, [""] * len(paper.PROGRESS))
        for progress, value in zip(paper.PROGRESS, theirs, strict=True):
            row[f"paper {progress:.1f}"] = value
            shown[f"paper {progress:.1f}"] = f"{value:.1f}" if value else ""
        row["paper ±"] = paper.PLUS_MINUS.get(method.agent, "")
        if row["paper ±"]:
            shown[f"paper {progress:.1f}"] += f" ± {row['paper ±']:.1f}"
        rows.append(row)
        printed.append(shown)
    caption = (
        f"Normalised return x 100 by training progress, mean over {len(found.tasks)} tasks. "
        f"{found.normalisation.in_words()} {INTERVAL} The paper's columns are as printed, over its "
        "nine tasks and five seeds; it does not define its normalisation."
    )
    return Table("normalised", caption, rows, printed)


def aggregate_table(found: Aggregates) -> Table:
    """Tabulate mean, median, interquartile mean and optimality gap of every method."""
    rows, printed = [], []
    for method in found.methods:
        fewest, most = min(method.seeds), max(method.seeds)
        seeds = str(fewest) if fewest == most else f"{fewest}–{most}"
        row: Row = {"method": method.label, "tasks": len(method.seeds), "seeds": seeds}
        shown = dict(row)
        for name, score in method.aggregates.items():
            row |= _columns(score, name, f"{name} low", f"{name} high")
            shown[name] = with_interval(score, digits=3)
        rows.append(row)
        printed.append(shown)
    caption = f"Aggregate scores at the end. {found.normalisation.in_words()} {INTERVAL}"
    return Table("aggregates", caption, rows, printed)


def improvement_table(found: Aggregates) -> Table:
    """Tabulate the probability of improvement for every ordered pair of methods."""
    rows, printed = [], []
    for one in found.improvement:
        row: Row = {"method": one.first, "over": one.second}
        rows.append(row | _columns(one.probability, "probability", "low", "high"))
        printed.append(row | {"probability": with_interval(one.probability, digits=2)})
    caption = (
        "Probability that a run of one method ends above a run of another on the same task, mean "
        f"over tasks; a tie counts as half. {INTERVAL}"
    )
    return Table("improvement", caption, rows, printed)


def tidy_rows(groups: Sequence[Group]) -> list[Row]:
    """Return one row per method, task, seed, metric and evaluation, for other tools."""
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


def print_returns(groups: Sequence[Group], most: int = 10) -> None:
    """Print at most `most` evaluations of each curve, evenly spaced, the last one included."""
    for group in groups:
        points, returns = mean_curve(group)
        if not points.size:
            continue
        print(f"\n{'iterations':>10}  {'return':>9}  over {len(group.series)} seed(s)")
        for i in np.unique(np.linspace(0, len(points) - 1, most).round().astype(int)):
            print(f"{int(points[i]):>10}  {returns[i]:>9.1f}")
