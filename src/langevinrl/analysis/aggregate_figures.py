"""Figures over all tasks: aggregate curves and metrics, profiles, probability of improvement."""

from __future__ import annotations

from typing import Any

import numpy as np

from langevinrl.analysis.aggregates import Aggregates
from langevinrl.analysis.figures import literal, panels, pyplot, share_legend
from langevinrl.analysis.grids import AXIS_LABELS
from langevinrl.analysis.statistics import AGGREGATES, Estimate


def aggregate_curves(found: Aggregates) -> Any:
    """Draw mean and interquartile mean of the scores by training progress."""
    figure, axes = panels(2, width=4.6)
    for method in found.methods:
        curve, colour = method.curve, method.colour
        if curve is None:
            continue
        for axis, score in zip(axes, (curve.mean, curve.iqm), strict=True):
            axis.plot(curve.progress, score.value, color=colour, label=method.label)
            axis.fill_between(
                curve.progress, score.low, score.high, color=colour, alpha=0.18, linewidth=0
            )
    for axis, name in zip(axes, ("mean", "IQM"), strict=True):
        axis.set(xlabel=AXIS_LABELS["progress"], ylabel=f"{name} of normalised scores")
    share_legend(figure, axes, [method.label for method in found.methods])
    return figure


def profiles(found: Aggregates) -> Any:
    """Draw the fraction of runs above every score; higher is better."""
    figure, (axis,) = panels(1, width=5.8, height=3.8)
    for method in found.methods:
        (value, low, high), colour = method.profile, method.colour
        axis.plot(found.thresholds, value, color=colour, label=method.label, drawstyle="steps-post")
        axis.fill_between(
            found.thresholds, low, high, color=colour, alpha=0.15, linewidth=0, step="post"
        )
    axis.set(xlabel="normalised score at the end", ylabel="fraction of runs above", ylim=(0, 1.03))
    share_legend(figure, [axis], [method.label for method in found.methods])
    return figure


def aggregate_intervals(found: Aggregates) -> Any:
    """Draw mean, median, IQM and optimality gap of every method, each with its interval."""
    methods = found.methods[::-1]  # the first at the top
    longest = 0.08 * max(len(method.label) for method in methods)
    figure, axes = pyplot().subplots(
        1, len(AGGREGATES), figsize=(longest + 2.4 * len(AGGREGATES), 1 + 0.32 * len(methods)),
        sharey=True, layout="constrained",
    )  # fmt: skip
    for axis, name in zip(axes, AGGREGATES, strict=True):
        for height, method in enumerate(methods):
            draw_interval(axis, height, method.aggregates[name], method.colour)
        better = "lower" if name == "optimality gap" else "higher"
        axis.set_title(f"{name} ({better} is better)", fontsize=9)
        axis.set(ylim=(-0.6, len(methods) - 0.4))
        axis.grid(visible=False, axis="y")
    axes[0].set_yticks(range(len(methods)), [literal(method.label) for method in methods])
    figure.supxlabel("normalised score at the end", fontsize=10)
    return figure


def draw_interval(axis: Any, y: float, score: Estimate, colour: str) -> None:
    """Draw a dot, and a bar if there is an interval."""
    if np.isfinite(score.low):
        axis.plot(
            [score.low, score.high], [y, y], color=colour, linewidth=6, alpha=0.35,
            solid_capstyle="butt",
        )  # fmt: skip
    axis.plot([score.value], [y], "o", color=colour, markersize=5)


def improvement(found: Aggregates) -> Any:
    """Draw how often each method's runs end above another's; beside it the best IQM's intervals."""
    side = 1.6 + 0.46 * len(found.methods)
    figure, (square, axis) = pyplot().subplots(
        1, 2, figsize=(side + 6.2, side), layout="constrained", width_ratios=(side, 4.4)
    )
    _draw_pairs(square, found)
    best = max(found.methods, key=lambda method: float(method.aggregates["IQM"].value))
    others = [method for method in found.methods[::-1] if method is not best]
    chances = {o.second: o.probability for o in found.improvement if o.first == best.label}
    for height, method in enumerate(others):
        draw_interval(axis, height, chances[method.label], method.colour)
    axis.axvline(0.5, color="0.5", linewidth=1, linestyle="--")
    axis.set_yticks(range(len(others)), [literal(method.label) for method in others])
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.6, len(others) - 0.4))
    axis.set_title(literal(f"{best.label} ends above"), fontsize=10)
    figure.supxlabel("probability of improvement", fontsize=10)
    return figure


def _draw_pairs(axis: Any, found: Aggregates) -> None:
    labels = [method.label for method in found.methods]
    chances = np.full((len(labels), len(labels)), np.nan)
    for one in found.improvement:
        row, column = labels.index(one.first), labels.index(one.second)
        chance = one.probability.value
        chances[row, column] = chance
        dark = abs(chance - 0.5) > 0.35
        axis.text(column, row, f"{chance:.2f}", ha="center", va="center", fontsize=8,
                  color="white" if dark else "black")  # fmt: skip
    axis.imshow(chances, vmin=0, vmax=1, cmap="RdBu")
    names = list(map(literal, labels))
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axis.set_yticks(range(len(names)), names)
    axis.grid(visible=False)
    axis.set_title("row ends above column", fontsize=10)
