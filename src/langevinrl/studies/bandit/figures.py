"""Figures of the bandit study, drawn from its files without JAX."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.analysis.tables import Row
from langevinrl.registry import colour_of, label_of
from langevinrl.studies.bandit.files import StudyData
from langevinrl.studies.bandit.maps import draw_map, square_panels, style

LEVELS_SHOWN = (1, 4, 7, 10)  # noise levels of the paper's value maps, starting at 1
STEPS = 10  # of a chain in its row of panels; longer chains are thinned
DPI = {"steps": 110, "comparison": 140}  # these have many panels
START, END = "white", "#ffc83d"
INK = "#1c2430"  # colour of the exact policy


def draw_figures(out: Path) -> list[Path]:
    """Draw all figures that the folder has data for, as PNG and SVG into out/figures."""
    study, folder = StudyData(out), out / "figures"
    folder.mkdir(exist_ok=True)
    langevin = [name for name in ("lql", "nclql") if name in study.data]
    figures: dict[str, Callable[[StudyData], Any]] = {}
    if len(langevin) == 2:
        figures |= {"values": draw_values, "scores": draw_scores}
    if langevin:
        figures |= {"temperature": draw_temperature, "reward_over_w": draw_reward_over_w}
    figures |= {"comparison": draw_comparison, "steps": draw_steps}
    written = []
    for name, figure_of in figures.items():
        with style() as plt:
            figure = figure_of(study)
            for kind in ("png", "svg"):
                written.append(folder / f"{name}.{kind}")
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(written[-1], dpi=DPI.get(name, 160), metadata=metadata)
            plt.close(figure)
    return written


def draw_values(study: StudyData) -> Any:
    """Draw exact smoothed values above learned ones; each column has its own scale."""
    exact, learned, plain = study.exact, study.data["nclql"]["value"], study.data["lql"]["value"]
    levels = [level for level in LEVELS_SHOWN if level <= len(learned)]
    figure, axes = square_panels(2, len(levels) + 1, 1.75, extra=0.8, text=0.3)
    for column, level in enumerate(levels):
        high = float(exact["smoothed"][level - 1].max())
        draw_map(axes[0, column], study, exact["smoothed"][level - 1], high)
        image = draw_map(axes[1, column], study, learned[level - 1], high)
        sigma = float(exact["sigmas"][level - 1])
        noise = rf"$\sigma$ = {sigma:.2f}" if sigma else "clean"
        axes[0, column].set_title(f"level {level}, {noise}")
        axes[1, column].set_title(f"error {_error(study, 'nclql', level):.3f}")
        figure.colorbar(image, ax=axes[:, column], location="bottom", shrink=0.9, aspect=14)
    draw_map(axes[0, -1], study, exact["reward"], 1.0)
    image = draw_map(axes[1, -1], study, plain[0], 1.0)
    axes[0, -1].set_title("reward")
    axes[1, -1].set_title(f"error {_error(study, 'lql', 1):.3f}")
    figure.colorbar(image, ax=axes[:, -1], location="bottom", shrink=0.9, aspect=14)
    axes[0, 0].set_ylabel("exact")
    axes[1, 0].set_ylabel("learned, NC-LQL")
    axes[1, -1].set_ylabel("LQL's plain critic")
    return figure


def _error(study: StudyData, name: str, level: int) -> float:
    """Return the root-mean-square error of a level's value, mean over seeds."""
    rows = [r for r in study.smoothing if r["method"] == name and int(r["level"]) == level]
    return float(np.mean([float(row["rmse"]) for row in rows]))


def draw_temperature(study: StudyData) -> Any:
    """Draw samples of LQL and NC-LQL over w, above the exact policy at that w."""
    names = [name for name in ("lql", "nclql") if name in study.data]
    sweep = study.exact["sweep"]
    shown = _evenly_spaced(len(sweep), 6)
    figure, axes = square_panels(len(names) + 1, len(shown), 1.6)
    for column, i in enumerate(shown):
        for row, name in enumerate(names):
            panel, points = axes[row, column], study.data[name]["swept"][i]
            draw_map(panel, study, study.exact["reward"], 1.0)
            panel.scatter(*points.T, s=1.2, c=END, lw=0, alpha=0.6, rasterized=True)
            panel.text(0, 0, _sweep_text(study, name, i), c="white", ha="center", va="center",
                       fontsize=7)  # fmt: skip
        exact = study.exact["policies"][i]
        draw_map(axes[-1, column], study, exact / exact.max(), 1.0)
        axes[0, column].set_title(f"w = {sweep[i]:g}")
    for row, label in enumerate([label_of(name) for name in names] + ["exact policy"]):
        axes[row, 0].set_ylabel(label)
    return figure


def _evenly_spaced(size: int, num: int) -> list[int]:
    """Return at most `num` evenly spaced indices below `size`, the first and last included."""
    return sorted(set(np.linspace(0, size - 1, min(size, num)).round().astype(int).tolist()))


def _sweep_text(study: StudyData, name: str, index: int) -> str:
    w = float(study.exact["sweep"][index])
    return f"reward\n{_swept(study, name, 'direction', 'reward_mean')[w]:.2f}"


def _swept(study: StudyData, name: str, score: str, column: str) -> dict[float, float]:
    """Return a column of the sweep by w, mean over seeds."""
    rows = [r for r in study.sweep if r["method"] == name and r["score"] == score]
    found: dict[float, list[float]] = {}
    for row in rows:
        found.setdefault(float(row["w"]), []).append(float(row[column]))
    return {w: float(np.mean(values)) for w, values in found.items()}


def draw_reward_over_w(study: StudyData) -> Any:
    """Plot mean reward, distance and nearest exact policy over w, for both kinds of score."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.2))
    columns = ("reward_mean", "total_variation", "nearest_w")
    lines = [("exact", "", "exact policy", "-")]
    for name in ("nclql", "lql"):
        if name in study.data:
            label = label_of(name)
            lines.append((name, "direction", f"{label}, unit score", "-"))
            lines.append((name, "gradient", f"{label}, full gradient", ":"))
    for panel, column in zip(axes, columns, strict=True):
        for name, score, label, dash in lines:
            points = _swept(study, name, score, column)
            panel.plot(list(points), list(points.values()), dash, marker="o", ms=2.5, lw=1.3,
                       c=INK if name == "exact" else colour_of(name), label=label)  # fmt: skip
        panel.set(xscale="log", xlabel="w")
    axes[0].set(ylabel="mean reward", ylim=(0, 1.02))
    axes[1].set(ylabel="total variation to exp(w r)/Z", ylim=(0, 1.02))
    axes[2].set(ylabel="w of the nearest exact policy", yscale="log")
    for panel in axes:
        panel.xaxis.set_major_formatter("{x:g}")
    axes[2].yaxis.set_major_formatter("{x:g}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _grid_of(num: int) -> tuple[int, int]:
    columns = num if num <= 3 else (num + 1) // 2
    return -(-num // columns), columns


def draw_comparison(study: StudyData) -> Any:
    """Draw start and end of chains for each method, with the mean reward of all samples."""
    rows, columns = _grid_of(len(study.data))
    figure, axes = square_panels(rows, columns, 2.0, text=0.55)
    for panel, (name, data) in zip(axes.flat, study.data.items(), strict=False):
        draw_map(panel, study, study.exact["reward"], 1.0)
        start, end = data["chains"][0], data["chains"][-1]
        keep = slice(0, 120)
        panel.quiver(*start[keep].T, *(end - start)[keep].T, angles="xy", scale_units="xy", scale=1,
                     color="white", alpha=0.45, width=0.005, headwidth=5, headlength=6)  # fmt: skip
        panel.scatter(*start[keep].T, s=5, c=START, lw=0, alpha=0.8, zorder=3)
        panel.scatter(*end[keep].T, s=9, c=END, ec="#3a2600", lw=0.3, zorder=4)
        panel.set(title=label_of(name), xlabel=_score(study.line(name)))
    for panel in axes.flat[len(study.data) :]:
        panel.set_axis_off()
    return figure


def _score(line: Row) -> str:
    mean, std, near = (float(line[name]) for name in ("reward_mean", "reward_std", "sum"))
    return f"reward {mean:.2f} ± {std:.2f}\nnear a high mode {near:.3f}"


def draw_steps(study: StudyData) -> Any:
    """Draw the chains from a uniform grid after every step, for the methods in the paper."""
    names = [name for name in study.data if study.line(name)["paper_sum"]]
    figure, axes = square_panels(max(1, len(names)), STEPS + 1, 1.0)
    for row, name in zip(axes, names, strict=False):
        path = study.data[name]["panels"]
        every = max(1, (len(path) - 1) // STEPS)
        for panel, at in zip(row, range(0, len(path), every), strict=False):
            draw_map(panel, study, _landscape(study, name, at), 1.0)
            panel.scatter(*path[at].T, s=1.6, c=END, ec="#3a2600", lw=0.15, rasterized=True)
        row[0].set_ylabel(label_of(name) + (f"\nevery {every}th step" if every > 1 else ""))
    for step, panel in enumerate(axes[0]):
        panel.set_title(f"step {step}" if step else "start")
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[])
    return figure


def draw_scores(study: StudyData) -> Any:
    """Draw score directions of the smoothed density above those of the smoothed value.

    The cosine between the two is averaged over the box.
    """
    exact = study.exact
    sigmas, weights = exact["score_sigmas"], exact["score_weights"]
    figure, axes = square_panels(len(weights) + 1, len(sigmas), 2.0, extra=0.4, text=0.2)
    value_score = _unit(exact["value_score"])
    for column, sigma in enumerate(sigmas):
        for row, w in enumerate(weights):
            score = _unit(exact["density_score"][row, column])
            panel, cosine = axes[row, column], (score * value_score[column]).sum(-1).mean()
            draw_map(panel, study, exact["smoothed_density"][row, column], 1.0)
            _draw_arrows(panel, study, score)
            panel.set_xlabel(f"mean cosine {cosine:.2f}", labelpad=2)
            axes[row, 0].set_ylabel(f"smoothed density\nw = {w:g}")
        value = exact["smoothed_value"][column]
        draw_map(axes[-1, column], study, value, float(value.max()))
        _draw_arrows(axes[-1, column], study, value_score[column])
        axes[0, column].set_title(rf"$\sigma$ = {sigma:.2f}")
    axes[-1, 0].set_ylabel("smoothed value\nany w")
    return figure


def _unit(score: np.ndarray) -> np.ndarray:
    return score / (np.linalg.norm(score, axis=-1, keepdims=True) + 1e-12)


def _draw_arrows(panel: Any, study: StudyData, score: np.ndarray) -> None:
    """Draw directions (G, G, 2) at every second point of the grid."""
    bound, few = float(study.exact["bound"]), score[1::2, 1::2]
    axis = np.linspace(-bound, bound, len(score))[1::2]
    x, y = np.meshgrid(axis, axis, indexing="ij")
    panel.quiver(x, y, few[..., 0], few[..., 1], color="white", scale=22, width=0.006)


def _landscape(study: StudyData, name: str, step: int) -> np.ndarray:
    """Return the value that the last step followed, scaled to 1; the reward if not NC-LQL."""
    if name != "nclql":
        return study.exact["reward"]
    value = study.data[name]["value"]
    level = value[min(max(step, 1), len(value)) - 1]
    return (level - level.min()) / (level.max() - level.min())
