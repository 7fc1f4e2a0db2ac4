"""Figures of a summary: aggregates, profiles, probability of improvement and ablations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from langevinrl.analysis.aggregates import Aggregates
from langevinrl.analysis.figures import draw_band, literal, panels, pyplot, share_legend
from langevinrl.analysis.grids import AXIS_LABELS
from langevinrl.analysis.groups import describe, rank
from langevinrl.analysis.records import printable
from langevinrl.analysis.statistics import AGGREGATES, Estimate
from langevinrl.analysis.summary import FinalReturn
from langevinrl.registry import colour_of


def aggregate_curves(found: Aggregates) -> Any:
    """Draw mean and interquartile mean of the scores by training progress."""
    figure, axes = panels(2, width=4.6)
    for method in found.methods:
        if method.curve is not None:
            for axis, score in zip(axes, (method.curve.mean, method.curve.iqm), strict=True):
                draw_band(axis, method.curve.progress, score, method.colour, label=method.label)
    for axis, name in zip(axes, ("mean", "IQM"), strict=True):
        axis.set(xlabel=AXIS_LABELS["progress"], ylabel=f"{name} of normalised scores")
    share_legend(figure, axes, [method.label for method in found.methods])
    return figure


def profiles(found: Aggregates) -> Any:
    """Draw the fraction of runs above every score; higher is better."""
    figure, (axis,) = panels(1, width=5.8, height=3.8)
    for method in found.methods:
        draw_band(axis, found.thresholds, method.profile, method.colour, label=method.label)
    axis.set(xlabel="normalised score at the end", ylabel="fraction of runs above", ylim=(0, 1.03))
    share_legend(figure, [axis], [method.label for method in found.methods])
    return figure


def aggregate_intervals(found: Aggregates) -> Any:
    """Draw mean, median, IQM and optimality gap of every method, each with its interval."""
    longest, count = max(len(one.label) for one in found.methods), len(found.methods)
    figure, axes = pyplot().subplots(
        1, len(AGGREGATES), figsize=(0.08 * longest + 2.4 * len(AGGREGATES), 1 + 0.32 * count),
        sharey=True, layout="constrained",
    )  # fmt: skip
    for axis, name in zip(axes, AGGREGATES, strict=True):
        _draw_intervals(
            axis, [(one.label, one.colour, one.aggregates[name]) for one in found.methods]
        )
        better = "lower" if name == "optimality gap" else "higher"
        axis.set_title(f"{name} ({better} is better)", fontsize=9)
    figure.supxlabel("normalised score at the end", fontsize=10)
    return figure


def _draw_intervals(axis: Any, rows: Sequence[tuple[str, str, Estimate]]) -> None:
    """Draw a row per label with a dot in a colour, and a bar if there is an interval."""
    for height, (_, colour, score) in enumerate(rows):
        if np.isfinite(score.low):
            axis.plot(
                [score.low, score.high], [height, height], color=colour, linewidth=6, alpha=0.35,
                solid_capstyle="butt",
            )  # fmt: skip
        axis.plot([score.value], [height], "o", color=colour, markersize=5)
    axis.set_yticks(range(len(rows)), [literal(label) for label, *_ in rows])
    axis.set(ylim=(len(rows) - 0.4, -0.6))  # the first at the top
    axis.grid(visible=False, axis="y")


def improvement(found: Aggregates) -> Any:
    """Draw how often each method's runs end above another's; beside it the best IQM's intervals."""
    side = 1.6 + 0.46 * len(found.methods)
    figure, (square, axis) = pyplot().subplots(
        1, 2, figsize=(side + 6.2, side), layout="constrained", width_ratios=(side, 4.4)
    )
    _draw_pairs(square, found)
    best = max(found.methods, key=lambda method: float(method.aggregates["IQM"].value))
    chances = {o.second: o.probability for o in found.improvement if o.first == best.label}
    others = [method for method in found.methods if method is not best]
    _draw_intervals(axis, [(one.label, one.colour, chances[one.label]) for one in others])
    axis.axvline(0.5, color="0.5", linewidth=1, linestyle="--")
    axis.set_xlim(-0.02, 1.02)
    axis.set_title(literal(f"{best.label} ends above"), fontsize=10)
    figure.supxlabel("probability of improvement", fontsize=10)
    return figure


def _draw_pairs(axis: Any, found: Aggregates) -> None:
    labels = [method.label for method in found.methods]
    chances = np.full((len(labels), len(labels)), np.nan)
    for one in found.improvement:
        chances[labels.index(one.first), labels.index(one.second)] = one.probability.value
    axis.imshow(chances, vmin=0, vmax=1, cmap="RdBu")
    _label_cells(axis, chances, ".2f", labels, labels, white=abs(chances - 0.5) > 0.35)
    pyplot().setp(axis.get_xticklabels(), rotation=45, ha="right")
    axis.set_title("row ends above column", fontsize=10)


def _label_cells(
    axis: Any, table: np.ndarray, form: str, columns: list[str], rows: list[str], white: np.ndarray
) -> None:
    """Write numbers into the cells of a drawn table, white on dark ones, and label its sides."""
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            axis.text(column, row, f"{value:{form}}", ha="center", va="center", fontsize=8,
                      color="white" if white[row, column] else "black")  # fmt: skip
    axis.set_xticks(range(len(columns)), [literal(name) for name in columns])
    axis.set_yticks(range(len(rows)), [literal(name) for name in rows])
    axis.grid(visible=False)


def ablation(finals: Sequence[FinalReturn]) -> Any | None:
    """Draw one agent's final returns, a panel per task; None unless one or two settings vary."""
    known = [one for one in finals if "config" not in one.group.settings]
    fields = list(dict.fromkeys(name for one in known for name in one.group.settings))
    done = [one for one in known if set(one.group.settings) == set(fields)]
    if len(fields) not in (1, 2) or len({json.dumps(one.group.settings) for one in done}) < 2:
        return None
    envs = sorted({one.group.env for one in done})
    figure, axes = panels(len(envs))
    for axis, env in zip(axes, envs, strict=True):
        here = [one for one in done if one.group.env == env]
        if len(fields) == 1:
            _draw_line(axis, here, fields[0])
        else:
            _draw_map(axis, here, fields[0], fields[1])
        axis.set_title(literal(env), fontsize=11)
    return figure


def _draw_line(axis: Any, finals: Sequence[FinalReturn], name: str) -> None:
    """Draw mean, interval and single seeds at each value of a setting, evenly spaced."""
    values = [one.group.settings[name] for one in finals]
    places = range(len(values))
    means, low, high = np.array([one.mean for one in finals]).T
    colour = colour_of(finals[0].group.agent)
    numbers = all(type(value) in (int, float) for value in values)
    axis.plot(places, means, "-o" if numbers else "o", color=colour)
    axis.errorbar(
        places, means, (means - low, high - means), fmt="none", color=colour, capsize=4, alpha=0.6
    )
    for place, one in enumerate(finals):
        seeds = [place] * len(one.returns)
        axis.plot(seeds, one.returns, "_", color="black", markersize=6, zorder=3)
    axis.set_xticks(places, [literal(_shown(value)) for value in values])
    axis.set(xlabel=literal(name), ylabel="return at the end", xlim=(-0.5, len(values) - 0.5))


def _draw_map(axis: Any, finals: Sequence[FinalReturn], across: str, up: str) -> None:
    """Draw the mean as colour and number over two settings; empty where there is no run."""
    columns = _distinct([one.group.settings[across] for one in finals])
    rows = _distinct([one.group.settings[up] for one in finals])
    table = np.full((len(rows), len(columns)), np.nan)
    for one in finals:
        settings = one.group.settings
        table[rows.index(settings[up]), columns.index(settings[across])] = one.mean.value
    image = axis.imshow(table, origin="lower", aspect="auto", cmap="viridis")
    axis.figure.colorbar(image, ax=axis, label="return at the end")
    dark = table <= (np.nanmin(table) + np.nanmax(table)) / 2
    _label_cells(axis, table, ".4g", list(map(_shown, columns)), list(map(_shown, rows)), dark)
    axis.set(xlabel=literal(across), ylabel=literal(up))


def _distinct(values: Sequence[Any]) -> list[Any]:
    return sorted({json.dumps(value): value for value in values}.values(), key=rank)


def _shown(value: Any) -> str:
    return printable(describe(value))
