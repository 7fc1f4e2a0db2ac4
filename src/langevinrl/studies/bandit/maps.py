"""Style, square panels and colour maps of the plane, shared by the figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from langevinrl.analysis.figures import pyplot
from langevinrl.studies.bandit.files import StudyData

BANDS = 20  # colours of a map
PALETTE = ("#0b1830", "#183e5c", "#246c7c", "#5ca09c", "#c4e2d2")  # low to high value
STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.grid": False,  # lines across a map look like part of it
    "svg.fonttype": "none",
    "svg.hashsalt": "langevinrl",  # the same data always give the same bytes
    "figure.constrained_layout.use": True,
}


@contextmanager
def style() -> Iterator[Any]:
    """Use the figures' style, and yield pyplot."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        yield plt


def square_panels(
    rows: int, columns: int, size: float, extra: float = 0.0, text: float = 0.0
) -> tuple[Any, np.ndarray]:
    """Make panels of `size` inches, plus `extra` total width and `text` height for each row."""
    import matplotlib.pyplot as plt

    shape = (columns * size + extra, rows * (size + text) + 0.3)
    return plt.subplots(rows, columns, figsize=shape, squeeze=False, sharex=True, sharey=True)


def draw_map(axes: Any, study: StudyData, values: np.ndarray, high: float, low: float = 0.0) -> Any:
    """Draw values[i, j] at (x_i, y_j), and circles around the high modes."""
    bound = float(study.exact["bound"])
    image = axes.imshow(
        values.T,
        origin="lower",
        extent=(-bound, bound, -bound, bound),
        cmap=_colours(),
        vmin=low,
        vmax=high,
        interpolation="bilinear",
        interpolation_stage="data",  # of the values, not of their colours
    )
    circle_high_modes(axes, study)
    ticks = np.array([-1, 0, 1]) * max(1, round(bound / 2))
    axes.set(xlim=(-bound, bound), ylim=(-bound, bound), xticks=ticks, yticks=ticks)
    axes.set_aspect("equal")
    return image


def circle_high_modes(axes: Any, study: StudyData, colour: str = "white") -> None:
    from matplotlib.patches import Circle

    for i in study.exact["high"].astype(int):
        centre = tuple(study.exact["centres"][i])
        ring = Circle(centre, float(study.exact["near"]), fill=False, ec=colour, lw=0.7, ls="--")
        axes.add_patch(ring)


def _colours() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("value", PALETTE, N=BANDS)
