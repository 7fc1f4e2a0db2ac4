"""All methods in short runs: blocks and figures from results/short.

results/short/README.md has the commands that made the runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from statistics import mean
from typing import Any

import numpy as np
from result_files import RESULTS, block, table, whole

from langevinrl.analysis import Group, Summary, find_runs, learning_curves, summarise, write_figure
from langevinrl.analysis.aggregates import Aggregates, MethodScores
from langevinrl.analysis.paper import NORMALISED, PROGRESS
from langevinrl.analysis.tables import with_interval
from langevinrl.registry import METHODS, label_of

HERE = RESULTS / "short"
LAST = 4  # evaluations at the end of a trial whose mean chooses the learning rate
OURS = "NC-LQL"
TIMED = ("Hopper-v4", "Reacher-v4", "Walker2d-v4")  # tasks with all runs on one machine
STARTED = ("nclql", "lql")  # methods compared from the same starts


@cache
def summary() -> Summary:
    return summarise(find_runs([HERE / "runs"]))


def scores() -> Aggregates:
    found = summary().aggregates
    assert found is not None, summary().no_aggregates
    return found


@block
def short_rates() -> str:
    """Tabulate the trials of learning rates, mean of the last evaluations; the preset's is bold."""
    found: dict[str, dict[float, float]] = defaultdict(dict)
    for record in find_runs([HERE / "rates"]):
        (series,) = record.series
        rate = _rate(record.config["hyperparameters"])
        found[record.agent][rate] = float(series.returns[-LAST:].mean())
    rates = sorted({rate for own in found.values() for rate in own})
    rows = []
    for agent, own in sorted(found.items(), key=lambda item: -max(item[1].values())):
        kind = METHODS[agent].load()
        kept = _rate({f.name: f.default for f in fields(kind)} | kind.presets["short"])
        cells = [f"**{whole(own[rate])}**" if rate == kept else whole(own[rate]) for rate in rates]
        rows.append((label_of(agent), *cells))
    return table(("method", *(f"{rate:g}" for rate in rates)), rows)


def _rate(values: Mapping[str, Any]) -> float:
    """Return an agent's learning rate, that of its critics if it has several."""
    return float(values.get("learning_rate") or values["critic_learning_rate"])


@block
def short_returns() -> str:
    """Tabulate the last evaluation on each task, the mean and each seed."""
    envs = sorted({group.env for group in summary().groups})
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for one in summary().finals:
        each = ", ".join(whole(float(value)) for value in one.returns)
        found[one.group.label][one.group.env] = f"{whole(float(one.mean.value))} ({each})"
    rows = [(label, *(own.get(env, "") for env in envs)) for label, own in found.items()]
    return table(("method", *envs), rows)


@block
def short_scores() -> str:
    """Tabulate the normalised return x 100 along training, beside the paper's last column."""
    rows = []
    for method in by_score():
        percent = [f"{100 * score.value:.1f}" for score in method.progress]
        paper = NORMALISED.get(method.agent)
        rows.append((method.label, *percent, f"{paper[-1]:.1f}" if paper else ""))
    return table(("method", *(f"{part:.1f}" for part in PROGRESS), "paper, 1.0"), rows)


@block
def short_comparison() -> str:
    """Tabulate the IQM, and how often a run of NC-LQL ends above one of each other method."""
    better = {one.second: one.probability for one in scores().improvement if one.first == OURS}
    rows = []
    for method in by_score():
        chance = with_interval(better[method.label], 2) if method.label in better else ""
        rows.append((method.label, with_interval(method.aggregates["IQM"], 2), chance))
    return table(("method", "IQM", "probability that NC-LQL is better"), rows)


@block
def short_times() -> str:
    """Tabulate the time of an iteration, evaluation and compilation included."""
    found: dict[str, list[float]] = defaultdict(list)
    for group in timed():
        for series in group.series:
            hours = float(np.nanmax(series.hours))
            found[group.label].append(3_600_000 * hours / int(series.iterations[-1]))
    unit = mean(found[OURS])
    order = sorted(found, key=lambda label: mean(found[label]))
    rows = [(label, f"{mean(found[label]):.1f}", f"{mean(found[label]) / unit:.2f}")
            for label in order]  # fmt: skip
    return table(("method", "ms per iteration", "ratio to NC-LQL"), rows)


def timed() -> list[Group]:
    """Return the groups whose times may be compared."""
    return [group for group in summary().groups if group.env in TIMED]


@block
def short_starts() -> str:
    """Tabulate NC-LQL and LQL from the same starts: the last evaluation of each seed."""
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in find_runs([HERE / "runs", HERE / "starts"]):
        start = record.config["hyperparameters"].get("start")
        if record.agent in STARTED and record.status == "done":
            for series in record.series:
                found[record.env, start][record.agent].append(float(series.returns[-1]))
    rows = [
        (env, start, *(", ".join(map(whole, own[agent])) for agent in STARTED))
        for (env, start), own in sorted(found.items())
        if len(own) == len(STARTED)
    ]
    return table(("task", "start", *map(label_of, STARTED)), rows)


def by_score() -> list[MethodScores]:
    """Return the methods of the comparison, the best at the end first."""
    return sorted(scores().methods, key=lambda method: -method.progress[-1].value)


def draw() -> None:
    """Draw returns over environment steps and hours."""
    groups = summary().groups
    write_figure(learning_curves(groups, "env_steps"), HERE / "curves.png")
    write_figure(learning_curves(timed(), "hours"), HERE / "hours.png")
