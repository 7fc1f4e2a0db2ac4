"""Learning curves: a panel per task with mean over seeds, interval and single seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langevinrl.analysis.figures import count_in_thousands, draw_band, literal, panels, share_legend
from langevinrl.analysis.grids import AXIS_LABELS, Axis, on_grid, own_grid, seeds_of
from langevinrl.analysis.groups import Group
from langevinrl.analysis.statistics import estimate_curve
from langevinrl.errors import UserError

FEW_SEEDS, FEW_METHODS = 5, 3  # up to these numbers single seeds are drawn


def learning_curves(groups: Sequence[Group], x: Axis = "iterations") -> Any:
    """Draw return over iterations, env_steps, hours or progress, with a panel per task."""
    drawn = [group for group in groups if seeds_of(group, x)]
    if not drawn:
        raise UserError(
            "nothing to draw: "
            + (f"no evaluation records {x}" if groups else "no evaluation has been logged yet")
        )
    envs = sorted({group.env for group in drawn})
    figure, axes = panels(len(envs))
    for axis, env in zip(axes, envs, strict=True):
        here = [group for group in drawn if group.env == env]
        for group in here:
            draw_group(axis, group, x, thin=len(here) <= FEW_METHODS)
        axis.set_title(literal(env), fontsize=11)
        axis.set_xlabel(AXIS_LABELS[x])
        count_in_thousands(axis)
        if axis.get_subplotspec().is_first_col():
            axis.set_ylabel("return")
    share_legend(figure, axes, [group.label for group in drawn])
    return figure


def draw_group(
    axis: Any, group: Group, x: Axis = "iterations", thin: bool = True, **style: Any
) -> None:
    """Draw the mean over seeds with its 95 % interval, and up to five seeds as thin lines.

    The mean ends with the shortest seed.
    """
    colour = style.pop("color", None) or group.colour
    style.setdefault("label", group.label)
    seeds, grid = seeds_of(group, x), own_grid(group, x)
    found = estimate_curve([on_grid(group, x, grid)])
    if (thin and 1 < len(seeds) <= FEW_SEEDS) or not grid.size:
        for places, returns in seeds:
            axis.plot(places, returns, color=colour, linewidth=0.8, alpha=0.35)
    # Seeds without a common point have no mean, but belong in the legend.
    draw_band(axis, grid, found, colour, **style)
