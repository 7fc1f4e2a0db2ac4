"""Ablations: the last return over one varied setting as a line, over two as a map."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from langevinrl.analysis.figures import panels
from langevinrl.analysis.grids import final_returns
from langevinrl.analysis.groups import Group, describe
from langevinrl.analysis.statistics import estimate, mean
from langevinrl.registry import colour_of


def ablation(groups: Sequence[Group]) -> Any | None:
    """A panel per task for the groups of one agent; none unless one or two settings vary."""
    done = [
        group for group in groups if final_returns(group).size and "config" not in group.settings
    ]
    fields = list(dict.fromkeys(name for group in done for name in group.settings))
    done = [group for group in done if set(group.settings) == set(fields)]
    if len(fields) not in (1, 2) or len({json.dumps(group.settings) for group in done}) < 2:
        return None
    envs = sorted({group.env for group in done})
    figure, axes = panels(len(envs))
    for axis, env in zip(axes, envs, strict=True):
        here = [group for group in done if group.env == env]
        if len(fields) == 1:
            log = _is_log([group.settings[fields[0]] for group in done])
            draw_line(axis, here, fields[0], log)
        else:
            draw_map(figure, axis, here, fields[0], fields[1])
        axis.set_title(env, fontsize=11)
    if len(fields) == 1:
        axes[0].set_ylabel("return at the end")
    return figure


def draw_line(axis: Any, groups: Sequence[Group], name: str, log: bool) -> None:
    """The mean over seeds, its interval and every seed at each value of a setting."""
    values = [group.settings[name] for group in groups]
    numeric = all(map(_is_number, values))
    places = [float(value) for value in values] if numeric else list(range(len(values)))
    found = [estimate(mean, [final_returns(group)]) for group in groups]
    means, low, high = (np.array(column, dtype=float) for column in zip(*found, strict=True))
    colour = colour_of(groups[0].agent)
    axis.plot(places, means, "-o" if numeric else "o", color=colour)
    axis.errorbar(
        places, means, (means - low, high - means), fmt="none", color=colour, capsize=4, alpha=0.6
    )
    for place, group in zip(places, groups, strict=True):
        last = final_returns(group)
        axis.plot([place] * len(last), last, "_", color="black", markersize=6, zorder=3)
    if log:
        axis.set_xscale("log")
    axis.set_xticks(places, [_value(name, value) for value in values])
    axis.set_xticks([], minor=True)
    axis.set_xlabel(name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_log(values: Sequence[Any]) -> bool:
    """Whether values are spread over orders of magnitude."""
    if not all(_is_number(value) and value > 0 for value in values):
        return False
    return bool(max(values) / min(values) >= 20)


def draw_map(figure: Any, axis: Any, groups: Sequence[Group], across: str, up: str) -> None:
    """The mean over seeds as colour and number over two settings; empty where nothing was run."""
    columns = _ordered([group.settings[across] for group in groups])
    rows = _ordered([group.settings[up] for group in groups])
    table = np.full((len(rows), len(columns)), np.nan)
    for group in groups:
        place = rows.index(group.settings[up]), columns.index(group.settings[across])
        table[place] = final_returns(group).mean()
    image = axis.imshow(table, origin="lower", aspect="auto", cmap="viridis")
    figure.colorbar(image, ax=axis, label="return at the end")
    middle = (np.nanmin(table) + np.nanmax(table)) / 2
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            axis.text(column, row, f"{value:.4g}", ha="center", va="center", fontsize=8,
                      color="white" if value <= middle else "black")  # fmt: skip
    axis.set_xticks(range(len(columns)), [_value(across, v) for v in columns])
    axis.set_yticks(range(len(rows)), [_value(up, v) for v in rows])
    axis.set(xlabel=across, ylabel=up)
    axis.grid(visible=False)


def _value(name: str, value: Any) -> str:
    return describe((name, value)).removeprefix(f"{name} ")


def _ordered(values: Sequence[Any]) -> list[Any]:
    """Each value once: numbers by size, the rest as text."""
    unique = list({json.dumps(value): value for value in values}.values())
    if all(isinstance(value, int | float) for value in unique):
        return sorted(unique)
    return sorted(unique, key=json.dumps)
