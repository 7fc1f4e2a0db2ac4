"""A study folder with synthetic data, for tests of figures and page."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

FAR = 2**0.5
CENTRES: list[list[float]] = [
    [FAR, 0], [1, 1], [0, FAR], [-1, 1], [-FAR, 0], [-1, -1], [0, -FAR], [1, -1],
]  # fmt: skip
HIGH, SWEEP, STEPS = [2, 0, 6, 4], [1.0, 10.0, 300.0], 10
LABELS = {"nclql": "NC-LQL", "lql": "LQL", "sac": "SAC"}


def write_study(out: Path, num_chains: int = 60, grid: int = 33) -> Path:
    """Write straight chains to the nearest high mode, longer for larger w, and smoothed maps."""
    generator = np.random.default_rng(0)
    axis = np.linspace(-2, 2, grid)
    maps = np.stack([_landscape(axis, 0.3 + 0.05 * (9 - level)) for level in range(10)])
    (out / "data").mkdir(parents=True)
    np.savez(out / "data" / "exact.npz", bound=2.0, near=0.3, centres=CENTRES, high=HIGH, axis=axis,
             reward=maps[-1], smoothed=maps, sigmas=np.linspace(0.8, 0, 10), sweep=SWEEP,
             policies=np.stack([maps[-1] ** 2] * len(SWEEP)), score_sigmas=[0.7, 0.4],
             score_weights=[10.0], smoothed_density=maps[None, :2], smoothed_value=maps[:2],
             density_score=np.ones((1, 2, grid, grid, 2)),
             value_score=np.ones((2, grid, grid, 2)))  # fmt: skip
    start = np.clip(generator.normal(size=(num_chains, 2)), -2, 2)
    for name in LABELS:
        chains = np.stack([_chain(start, min(1.0, 0.1 + w / 300)) for w in SWEEP])
        path = chains[-1] if name != "sac" else chains[-1][[0, -1]]
        np.savez(out / "data" / f"{name}.npz", chains=path, panels=path,
                 value=maps if name == "nclql" else maps[-1:], swept=chains[:, -1],
                 page_chains=chains)  # fmt: skip
    _write_tables(out)
    return out


def _landscape(axis: np.ndarray, std: float) -> np.ndarray:
    x, y = np.meshgrid(axis, axis, indexing="ij")
    modes = [np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * std**2)) for a, b in CENTRES]
    total = sum((2 if i in HIGH else 1) * mode for i, mode in enumerate(modes))
    return np.asarray(total / 2)


def _chain(start: np.ndarray, part: float) -> np.ndarray:
    modes = np.array(CENTRES)[HIGH]
    nearest = modes[np.linalg.norm(start[:, None] - modes[None], axis=-1).argmin(axis=1)]
    times = np.linspace(0, part, STEPS + 1)[:, None, None]
    return start + times * (nearest - start)


def _write_tables(out: Path) -> None:
    (out / "settings.json").write_text(json.dumps({"study": {"methods": list(LABELS)}}))
    numbers: dict[str, Any] = {
        "reward_mean": 0.9, "reward_std": 0.1, "sum": 0.95, "total_variation": 0.3,
        "nearest_w": 12.0,
    }  # fmt: skip
    seeds = [{"method": name, "seed": 0} | numbers for name in LABELS]
    table = [{"method": label, "paper_sum": 0.9} | numbers for label in LABELS.values()]
    sweep = [
        {"method": name, "score": score, "seed": 0, "w": w} | numbers
        for name, score in [("nclql", "direction"), ("nclql", "gradient"), ("lql", "direction"),
                            ("lql", "gradient"), ("exact", "")]
        for w in SWEEP
    ]  # fmt: skip
    smoothing = [
        {"method": name, "seed": 0, "level": level, "rmse": 0.01}
        for name, levels in (("nclql", 10), ("lql", 1))
        for level in range(1, levels + 1)
    ]
    tables: dict[str, list[dict[str, Any]]] = {
        "seeds": seeds,
        "table": table,
        "sweep": sweep,
        "smoothing": smoothing,
    }
    for name, rows in tables.items():
        with (out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
