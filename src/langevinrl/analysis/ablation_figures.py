"""Ablation figures: final return over one varied setting as a line, over two as a heat map."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from langevinrl.analysis.figures import literal, panels
from langevinrl.analysis.groups import describe
from langevinrl.analysis.records import printable
from langevinrl.analysis.summary import FinalReturn
from langevinrl.registry import colour_of


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
            draw_line(axis, here, fields[0])
        else:
            draw_map(figure, axis, here, fields[0], fields[1])
        axis.set_title(literal(env), fontsize=11)
    return figure


def draw_line(axis: Any, finals: Sequence[FinalReturn], name: str) -> None:
    """Draw mean, interval and single seeds at each value of a setting, evenly spaced."""
    values = [one.group.settings[name] for one in finals]
    places = list(range(len(values)))
    means, low, high = (np.array(column) for column in zip(*(o.mean for o in finals), strict=True))
    colour = colour_of(finals[0].group.agent)
    axis.plot(places, means, "-o" if all(map(_is_number, values)) else "o", color=colour)
    axis.errorbar(
        places, means, (means - low, high - means), fmt="none", color=colour, capsize=4, alpha=0.6
    )
    for place, one in zip(places, finals, strict=True):
        seeds = [place] * len(one.returns)
        axis.plot(seeds, one.returns, "_", color="black", markersize=6, zorder=3)
    axis.set_xticks(places, [_value(name, value) for value in values])
    axis.set(xlabel=literal(name), ylabel="return at the end", xlim=(-0.5, len(values) - 0.5))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def draw_map(figure: Any, axis: Any, finals: Sequence[FinalReturn], across: str, up: str) -> None:
    """Draw the mean as colour and number over two settings; empty where there is no run."""
    columns = _ordered([one.group.settings[across] for one in finals])
    rows = _ordered([one.group.settings[up] for one in finals])
    table = np.full((len(rows), len(columns)), np.nan)
    for one in finals:
        settings = one.group.settings
        table[rows.index(settings[up]), columns.index(settings[across])] = one.mean.value
    image = axis.imshow(table, origin="lower", aspect="auto", cmap="viridis")
    figure.colorbar(image, ax=axis, label="return at the end")
    middle = (np.nanmin(table) + np.nanmax(table)) / 2
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            axis.text(column, row, f"{value:.4g}", ha="center", va="center", fontsize=8,
                      color="white" if value <= middle else "black")  # fmt: skip
    axis.set_xticks(range(len(columns)), [_value(across, v) for v in columns])
    axis.set_yticks(range(len(rows)), [_value(up, v) for v in rows])
    axis.set(xlabel=literal(across), ylabel=literal(up))
    axis.grid(visible=False)


def _value(name: str, value: Any) -> str:
    return literal(printable(describe((name, value)).removeprefix(f"{name} ")))


def _ordered(values: Sequence[Any]) -> list[Any]:
    """Return the distinct values: numbers by size, the rest as text."""
    unique = list({json.dumps(value): value for value in values}.values())
    if all(map(_is_number, unique)):
        return sorted(unique)
    return sorted(unique, key=json.dumps)
