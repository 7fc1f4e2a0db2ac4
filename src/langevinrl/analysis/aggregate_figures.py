"""Figures over all tasks: aggregate curves and metrics, profiles, probability of improvement."""

from __future__ import annotations

from typing import Any

import numpy as np

from langevinrl.analysis.comparison import Comparison
from langevinrl.analysis.figures import count_in_thousands, panels, pyplot, share_legend
from langevinrl.analysis.grids import AXIS_LABELS, Axis
from langevinrl.analysis.statistics import (
    AGGREGATES,
    estimate,
    iqm,
    mean,
    probability_of_improvement,
    profile,
)


def aggregate_curves(found: Comparison, x: Axis = "progress") -> Any | None:
    """Mean and interquartile mean of the score along an axis; none if no method has one there."""
    figure, axes = panels(2, width=4.6)
    for axis, (name, statistic) in zip(axes, (("mean", mean), ("IQM", iqm)), strict=True):
        for label in found.methods:
            curve = found.curve(label, x, statistic=statistic)
            if curve is None:
                continue
            grid, (value, low, high) = curve
            axis.plot(grid, value, color=found.colour(label), label=label)
            axis.fill_between(grid, low, high, color=found.colour(label), alpha=0.18, linewidth=0)
        axis.set(xlabel=AXIS_LABELS[x], ylabel=f"{name} of normalised scores")
        count_in_thousands(axis)
    if not axes[0].lines:
        pyplot().close(figure)
        return None
    share_legend(figure, axes, list(found.methods))
    return figure


def profiles(found: Comparison) -> Any:
    """For every score, the fraction of runs above it; higher is better, all along."""
    scores = {label: found.scores(label) for label in found.methods}
    runs = np.concatenate([task for tasks in scores.values() for task in tasks])
    thresholds = np.linspace(min(0.0, runs.min()), max(1.0, runs.max()), 101)
    figure, (axis,) = panels(1, width=5.8, height=3.8)
    for label, own in scores.items():
        value, low, high = estimate(lambda s: profile(s, thresholds), own)
        colour = found.colour(label)
        axis.plot(thresholds, value, color=colour, label=label, drawstyle="steps-post")
        axis.fill_between(thresholds, low, high, color=colour, alpha=0.15, linewidth=0, step="post")
    axis.set(xlabel="normalised score at the end", ylabel="fraction of runs above", ylim=(0, 1.03))
    share_legend(figure, [axis], list(found.methods))
    return figure


def aggregate_intervals(found: Comparison) -> Any:
    """Mean, median, IQM and optimality gap of every method: a dot and its interval."""
    labels = list(found.methods)[::-1]  # the first on top
    longest = 0.08 * max(map(len, labels))
    figure, axes = pyplot().subplots(
        1, len(AGGREGATES), figsize=(longest + 2.4 * len(AGGREGATES), 1 + 0.32 * len(labels)),
        sharey=True, layout="constrained",
    )  # fmt: skip
    for axis, (name, statistic) in zip(axes, AGGREGATES.items(), strict=True):
        for height, label in enumerate(labels):
            value, low, high = estimate(statistic, found.scores(label))
            draw_interval(axis, height, value, low, high, found.colour(label))
        better = "lower" if statistic is AGGREGATES["optimality gap"] else "higher"
        axis.set_title(f"{name} ({better} is better)", fontsize=9)
        axis.set(ylim=(-0.6, len(labels) - 0.4))
        axis.grid(visible=False, axis="y")
    axes[0].set_yticks(range(len(labels)), labels)
    figure.supxlabel("normalised score at the end", fontsize=10)
    return figure


def draw_interval(axis: Any, y: float, value: Any, low: Any, high: Any, colour: str) -> None:
    """A dot, and a bar from low to high if there is an interval."""
    if np.isfinite(low):
        axis.plot([low, high], [y, y], color=colour, linewidth=6, alpha=0.35, solid_capstyle="butt")
    axis.plot([value], [y], "o", color=colour, markersize=5)


def improvement(found: Comparison) -> Any:
    """The chance that a row's run ends above a column's; beside it, of the best IQM over each."""
    labels = list(found.methods)
    scores = {label: found.scores(label) for label in labels}
    best = max(labels, key=lambda label: float(iqm(scores[label])))
    side = 1.6 + 0.46 * len(labels)
    figure, (square, axis) = pyplot().subplots(
        1, 2, figsize=(side + 6.2, side), layout="constrained", width_ratios=(side, 4.4)
    )
    chances = np.array(
        [[probability_of_improvement(scores[a], scores[b]) for b in labels] for a in labels]
    )
    np.fill_diagonal(chances, np.nan)
    square.imshow(chances, vmin=0, vmax=1, cmap="RdBu")
    for (row, column), chance in np.ndenumerate(chances):
        if row != column:
            dark = abs(chance - 0.5) > 0.35
            square.text(column, row, f"{chance:.2f}", ha="center", va="center", fontsize=8,
                        color="white" if dark else "black")  # fmt: skip
    ticks = range(len(labels))
    square.set_xticks(ticks, labels, rotation=45, ha="right")
    square.set_yticks(ticks, labels)
    square.grid(visible=False)
    square.set_title("row ends above column", fontsize=10)
    others = [label for label in labels[::-1] if label != best]
    for height, label in enumerate(others):
        here = estimate(probability_of_improvement, scores[best], scores[label])
        draw_interval(axis, height, *here, colour=found.colour(label))
    axis.axvline(0.5, color="0.5", linewidth=1, linestyle="--")
    axis.set_yticks(range(len(others)), others)
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.6, len(others) - 0.4))
    axis.set_title(f"{best} ends above", fontsize=10)
    figure.supxlabel("probability of improvement", fontsize=10)
    return figure
