"""Statistics of the package rliable, run in its own environment: JSON in, JSON out."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from rliable import library, metrics

METRICS = {
    "mean": metrics.aggregate_mean,
    "median": metrics.aggregate_median,
    "IQM": metrics.aggregate_iqm,
    "optimality gap": metrics.aggregate_optimality_gap,
}


def main() -> None:
    given = json.load(sys.stdin)
    x, y = np.array(given["x"]), np.array(given["y"])  # (runs, tasks)
    thresholds = np.array(given["thresholds"])
    found: dict[str, Any] = {}
    for name, metric in METRICS.items():
        values, intervals = library.get_interval_estimates(
            {"x": x}, lambda scores, metric=metric: np.array([metric(scores)]), reps=2_000
        )
        found[name] = [float(values["x"][0]), *map(float, intervals["x"][:, 0])]
    profiles, bands = library.create_performance_profile({"x": x}, thresholds, reps=2_000)
    found["profile"] = [profiles["x"].tolist(), *bands["x"].tolist()]
    values, intervals = library.get_interval_estimates(
        {"x,y": (x, y)},
        lambda a, b: np.array([metrics.probability_of_improvement(a, b)]),
        reps=2_000,
    )
    found["improvement"] = [float(values["x,y"][0]), *map(float, intervals["x,y"][:, 0])]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
