"""Learning curves: a panel per task with mean over seeds, interval and single seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langevinrl.analysis.figures import count_in_thousands, literal, panels, share_legend
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
    label = style.pop("label", group.label)
    seeds = seeds_of(group, x)
    grid = own_grid(group, x)
    if len(seeds) == 1:
        axis.plot(*seeds[0], color=colour, label=label, **style, **_dots(len(seeds[0][0])))
        return
    if (thin and len(seeds) <= FEW_SEEDS) or not grid.size:
        for places, returns in seeds:
            axis.plot(places, returns, color=colour, linewidth=0.8, alpha=0.35)
    if not grid.size:  # seeds without a common point have no mean, but belong in the legend
        axis.plot([], [], color=colour, label=label, **style)
        return
    found = estimate_curve([on_grid(group, x, grid)])
    axis.plot(grid, found.value, color=colour, label=label, **style, **_dots(len(grid)))
    axis.fill_between(grid, found.low, found.high, color=colour, alpha=0.18, linewidth=0)


def _dots(points: int) -> dict[str, Any]:
    """Mark a single point, which a line would not show."""
    return {"marker": "o"} if points == 1 else {}
