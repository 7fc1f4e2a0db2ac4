"""Figures of learning curves, and the dress that all figures wear."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langevinrl.analysis.curves import Curve, read_curves
from langevinrl.errors import UserError
from langevinrl.registry import colour_of, label_of


def draw_curves(folders: Sequence[Path], out: Path) -> Path:
    """Return over iterations, a panel per task: the mean over seeds, every seed thin behind it."""
    curves = read_curves(folders)
    if not any(curve.iterations.size for curve in curves):
        raise UserError("nothing to draw: no evaluation has been logged yet")
    plt = pyplot()
    tasks = sorted({curve.env for curve in curves})
    figure, axes = plt.subplots(
        1, len(tasks), figsize=(1.2 + 4.2 * len(tasks), 3.4), squeeze=False, layout="constrained"
    )
    for axis, task in zip(axes[0], tasks, strict=True):
        for curve in curves:
            if curve.env == task:
                draw_curve(axis, curve)
        axis.set(title=task, xlabel="iterations")
        axis.legend(frameon=False)
    axes[0, 0].set_ylabel("return")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=150)
    plt.close(figure)
    return out


def draw_curve(axis: Any, curve: Curve, **style: Any) -> None:
    """The mean over seeds, every seed thin behind it."""
    colour = style.pop("color", None) or colour_of(curve.agent)
    for seed in curve.returns:
        axis.plot(curve.iterations, seed, color=colour, linewidth=0.8, alpha=0.35)
    label = style.pop("label", label_of(curve.agent))
    axis.plot(curve.iterations, curve.returns.mean(axis=0), color=colour, label=label, **style)


def pyplot() -> Any:
    """Matplotlib without a screen, in the project's plain dress."""
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
        }
    )
    return plt
