"""Learning curves out of run folders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from langevinrl.runs.folder import RunFolder


class Curve(NamedTuple):
    """Evaluations of one agent on one task: mean return of each seed at each point."""

    agent: str
    env: str
    iterations: np.ndarray  # (points,)
    returns: np.ndarray  # (seeds, points)  means over episodes


def read_curves(folders: Iterable[Path]) -> list[Curve]:
    """One curve per agent and task; folders of the same pair are seeds of one curve."""
    totals: dict[tuple[str, str], dict[tuple[str, str], dict[int, list[float]]]] = {}
    for folder in folders:
        for row in RunFolder(folder).read_evaluations():
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
