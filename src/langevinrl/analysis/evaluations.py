"""Reader of evaluations.csv: one curve per seed.  Fast, since a report reads hundreds of files."""

from __future__ import annotations

import csv
import re
from itertools import pairwise
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
    try:
        reader = csv.reader(text.splitlines(keepends=True))
        header = next(reader, list(NEEDED))
        # A folder copied from a run in progress may end in half a line.
        rows = [row for row in reader if len(row) == len(header)]
    except csv.Error as error:
        raise UserError(f"cannot read {path}: {error}") from error
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise UserError(f"{path} does not belong to a run: it has no column {', '.join(missing)}")
    if not rows:
        return {}
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # returns may be infinite or nan
            return _series_by_pair(columns, len(rows))
    except (ValueError, OverflowError) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def _series_by_pair(
    columns: dict[str, tuple[str, ...]], num_rows: int
) -> dict[tuple[str, str], list[Series]]:
    """Convert columns of text, a row per episode, to the seeds of each agent and environment."""
    iterations = np.array(list(map(int, columns["iterations"])), dtype=np.int64)
    values = np.stack(
        [
            np.array(list(map(float, columns.get(name, missing * num_rows))))
            for name, missing in (("env_steps", (-1,)), ("wall_seconds", ("nan",)), ("return", ()))
        ]
    )
    if iterations.min() < 0 or not (np.abs(values[0]) < 2**53).all():
        raise ValueError("iterations or env_steps are negative or too large")
    owners = list(zip(columns["agent"], columns["env"], columns["seed"], strict=True))
    numbers = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    codes = np.array([numbers[owner] for owner in owners])
    # Sort rows by seed and iteration, then average each stretch of equal ones.
    order = np.lexsort((iterations, codes))
    codes, iterations, values = codes[order], iterations[order], values[:, order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1) | np.diff(iterations, prepend=-1))
    counts = np.diff(starts, append=num_rows)
    steps, seconds, returns = np.add.reduceat(values, starts, axis=1) / counts
    codes, iterations = codes[starts], iterations[starts]
    ends = np.searchsorted(codes, np.arange(len(numbers) + 1))
    found: dict[tuple[str, str], list[Series]] = {}
    for (agent, env, seed), (start, end) in zip(numbers, pairwise(ends), strict=True):
        mine = slice(start, end)
        some = found.setdefault((agent, env), [])
        # Files from other programs may name seeds in words: number them instead.
        number = int(seed) if re.fullmatch(r"-?\d+", seed) else len(some)
        some.append(
            Series(
                number, iterations[mine], steps[mine].round().astype(int),
                seconds[mine] / 3600, returns[mine],
            )
        )  # fmt: skip
    return found
