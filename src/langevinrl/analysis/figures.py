"""Learning curves, and the style, layout and files of all figures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.analysis.grids import AXIS_LABELS, Axis, on_grid, own_grid, seeds_of
from langevinrl.analysis.groups import Group
from langevinrl.analysis.statistics import Estimate, estimate_curve
from langevinrl.errors import UserError
from langevinrl.storage.files import reason_of

FORMATS = ("png", "svg", "pdf")
FEW_SEEDS, FEW_METHODS = 5, 3  # up to these numbers single seeds are drawn
# No dates or program names, so that the same data give the same bytes.
UNDATED: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def pyplot() -> Any:
    """Return pyplot without a display, in the project's style."""
    try:
        import matplotlib
    except ImportError as error:
        raise UserError(f"cannot draw ({error}): pip install 'langevinrl[plots]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "svg.hashsalt": "langevinrl",  # ids inside the file would otherwise be random
        }
    )
    return plt


def literal(text: str) -> str:
    """Escape dollar signs, between which Matplotlib would read mathematics."""
    return text.replace("$", r"\$")


def write_figure(figure: Any, path: str | Path) -> Path:
    """Write a figure in the format of the path's suffix, and close it."""
    path = Path(path)
    if path.suffix[1:].lower() not in figure.canvas.get_supported_filetypes():
        raise UserError(f"cannot write a picture as {path.name}: end it in {', '.join(FORMATS)}")
    (written,) = write_figures(figure, path.parent, path.stem, [path.suffix[1:]])
    return written


def write_figures(
    figure: Any, folder: Path, name: str, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write a figure as name.png, name.svg and name.pdf, or in other formats, and close it."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # lay out once for all formats
    paths = [folder / f"{name}.{suffix}" for suffix in formats]
    for path, suffix in zip(paths, formats, strict=True):
        drawn = io.BytesIO()
        figure.savefig(drawn, format=suffix, dpi=150, metadata=UNDATED.get(suffix.lower()))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # a link is replaced, not followed
            with path.open("xb") as file:
                file.write(drawn.getbuffer())
        except OSError as error:
            raise UserError(f"cannot write {path}: {reason_of(error)}") from error
    pyplot().close(figure)
    return paths


def panels(count: int, width: float = 4.2, height: float = 3.2) -> tuple[Any, Sequence[Any]]:
    """Create a figure with `count` panels, at most three in a row; return it and its axes."""
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    figure, axes = pyplot().subplots(
        rows, columns, figsize=(0.6 + width * columns, 0.4 + height * rows), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    flat = list(axes.flat)
    for spare in flat[count:]:
        spare.remove()
    return figure, flat[:count]


def draw_band(axis: Any, x: np.ndarray, found: Estimate, colour: str, **style: Any) -> None:
    """Draw a curve with its interval as a band; a single point, which has no line, as a dot."""
    marker = "o" if len(x) == 1 else None
    axis.plot(x, found.value, **{"color": colour, "marker": marker} | style)
    if np.isfinite(found.low).any():
        axis.fill_between(x, found.low, found.high, color=colour, alpha=0.18, linewidth=0)


def count_in_thousands(axis: Any) -> None:
    """Label few ticks along x, in short form: 2.5k, 1M."""
    axis.locator_params(axis="x", nbins=6)

    def show(x: float, _: int) -> str:
        for size, sign in ((1e6, "M"), (1e3, "k")):
            if abs(x) >= size:
                return f"{x / size:g}{sign}"
        return f"{x:g}"

    axis.xaxis.set_major_formatter(show)


def share_legend(figure: Any, axes: Sequence[Any], labels: Sequence[str]) -> None:
    """Draw one legend below all panels, in the order of the labels."""
    shown: dict[str, Any] = {}
    for axis in axes:
        shown |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    entries = {label: shown[label] for label in dict.fromkeys(labels) if label in shown}
    # As many columns as fit the longest label.
    inches = 0.6 + 0.085 * max((len(label) for label in entries), default=0)
    most = max(1, int(figure.get_figwidth() / inches))
    rows = -(-len(entries) // most)
    columns = -(-len(entries) // max(rows, 1)) or 1  # rows of similar length
    figure.legend(
        entries.values(),
        map(literal, entries),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
    )


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
