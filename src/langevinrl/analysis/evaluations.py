"""Reader of evaluations.csv: one curve per seed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from langevinrl.errors import UserError
from langevinrl.storage.files import read_text

NEEDED = ("agent", "env", "seed", "iterations", "return")  # columns; others are optional


class Series(NamedTuple):
    """Evaluations of one seed of one run, in order of iterations; P points."""

    seed: int
    iterations: np.ndarray  # (P,) int
    env_steps: np.ndarray  # (P,) int; -1 if not recorded
    hours: np.ndarray  # (P,) float, wall_seconds / 3600; nan if not recorded
    returns: np.ndarray  # (P,) mean over episodes


def read_evaluations(path: Path) -> dict[tuple[str, str], list[Series]]:
    """Read the seeds of an evaluations.csv, by agent and environment; empty without the file."""
    if not path.exists():
        return {}
    text = read_text(path, "evaluations", max_bytes=2**30)
    reader = csv.DictReader(text.splitlines(keepends=True))
    try:
        missing = [name for name in NEEDED if name not in (reader.fieldnames or NEEDED)]
        if missing:
            names = ", ".join(missing)
            raise UserError(f"{path} does not belong to a run: it has no column {names}")
        # A folder copied from a run in progress may end in half a line.
        rows = (row for row in reader if None not in row and None not in row.values())
        with np.errstate(invalid="ignore", over="ignore"):  # returns may be infinite or nan
            return _read_series(rows)
    except (csv.Error, ValueError, OverflowError) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def _read_series(rows: Iterable[dict[str, str]]) -> dict[tuple[str, str], list[Series]]:
    """Convert rows of text, one per episode, to the seeds of each agent and environment."""
    points: dict[tuple[str, str, str], dict[int, list[tuple[float, ...]]]] = {}
    for row in rows:
        owner = row["agent"], row["env"], row["seed"]
        texts = row.get("env_steps", "-1"), row.get("wall_seconds", "nan"), row["return"]
        episodes = points.setdefault(owner, {}).setdefault(int(row["iterations"]), [])
        episodes.append(tuple(map(float, texts)))
    found: dict[tuple[str, str], list[Series]] = {}
    for (agent, env, seed), own in points.items():
        iterations = np.array(sorted(own), dtype=np.int64)
        means = np.array([np.mean(own[at], axis=0) for at in sorted(own)]).T
        if iterations[0] < 0 or not (np.abs(means[0]) < 2**53).all():
            raise ValueError("iterations or env_steps are negative or too large")
        some = found.setdefault((agent, env), [])
        # Files from other programs may name seeds in words: number them instead.
        number = int(seed) if re.fullmatch(r"-?\d+", seed) else len(some)
        steps = means[0].round().astype(int)
        some.append(Series(number, iterations, steps, hours=means[1] / 3600, returns=means[2]))
    return found
