"""Run folders -> tables and figures.  Reads files only, and never needs JAX."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from langevinrl.errors import UserError

# What a method is called where people read.
NAMES = {
    "nclql": "NC-LQL", "lql": "LQL", "sac": "SAC", "qsm": "QSM", "dipo": "DIPO", "qvpo": "QVPO",
    "dacer": "DACER", "mfp": "MFP", "sdac": "SDAC", "dpmd": "DPMD",
}  # fmt: skip

# Colour-blind safe, and the two methods of the paper always wear the same two.
COLOURS = {"nclql": "#0072B2", "lql": "#D55E00"}
SPARE_COLOURS = [
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999933",
    "#882255",
    "#44AA99",
]


class Curve(NamedTuple):
    """Evaluations of one agent on one task: mean return of each seed at each point."""

    agent: str
    env: str
    iterations: np.ndarray  # (points,)
    returns: np.ndarray  # (seeds, points)  means over episodes


def read_evaluations(folder: Path) -> list[dict[str, Any]]:
    path = folder / "evaluations.csv"
    if not path.exists():
        raise UserError(f"{folder} is not a run folder: it has no evaluations.csv")
    with path.open(newline="") as file:
        # A folder copied from a run in progress may end in half a line.
        return [row for row in csv.DictReader(file) if None not in row.values()]


def last_evaluation(folder: Path) -> int:
    """The latest iteration a run folder has an evaluation of; 0 if none."""
    if not (folder / "evaluations.csv").exists():
        return 0
    return max((int(row["iterations"]) for row in read_evaluations(folder)), default=0)


def read_curves(folders: Iterable[Path]) -> list[Curve]:
    """One curve per agent and task; folders of the same pair are seeds of one curve."""
    totals: dict[tuple[str, str], dict[tuple[str, str], dict[int, list[float]]]] = {}
    for folder in folders:
        for row in read_evaluations(folder):
            seeds = totals.setdefault((row["agent"], row["env"]), {})
            points = seeds.setdefault((str(folder), row["seed"]), defaultdict(list))
            points[int(row["iterations"])].append(float(row["return"]))
    curves = []
    for (agent, env), seeds in totals.items():
        shared = sorted(set.intersection(*(set(points) for points in seeds.values())))
        returns = [[float(np.mean(points[i])) for i in shared] for points in seeds.values()]
        curves.append(Curve(agent, env, np.array(shared), np.array(returns)))
    return curves


def print_table(folder: Path, most: int = 10) -> None:
    """At most `most` evaluations, evenly spread, the last always among them."""
    for curve in read_curves([folder]):
        if not curve.iterations.size:
            continue
        print(f"\n{'iterations':>10}  {'return':>9}  over {len(curve.returns)} seed(s)")
        picks = np.unique(np.linspace(0, len(curve.iterations) - 1, most).round().astype(int))
        for i in picks:
            print(f"{curve.iterations[i]:>10}  {curve.returns[:, i].mean():>9.1f}")


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
    colour = style.pop("color", None) or colour_of(curve.agent)
    for seed in curve.returns:
        axis.plot(curve.iterations, seed, color=colour, linewidth=0.8, alpha=0.35)
    label = style.pop("label", NAMES.get(curve.agent, curve.agent))
    axis.plot(curve.iterations, curve.returns.mean(axis=0), color=colour, label=label, **style)


def write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Rows that share their columns; no row, no header."""
    rows = [
        {k: f"{v:.6g}" if isinstance(v, float | np.floating) else v for k, v in row.items()}
        for row in rows
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        if rows:
            writer.writeheader()
        writer.writerows(rows)


def colour_of(agent: str) -> str:
    return COLOURS.get(agent) or SPARE_COLOURS[sum(agent.encode()) % len(SPARE_COLOURS)]


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
