"""Tiny sweeps that tests of every backend share."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from langevinrl.runs.config import RunConfig
from langevinrl.sweeps.grid import Grid
from langevinrl.sweeps.job import run_job
from langevinrl.sweeps.queue import SweepFolder

TINY: dict[str, Any] = {
    "env": "Pendulum-v1", "agent": "lql", "iterations": 12, "num_envs": 2, "warmup": 20,
    "batch_size": 4, "capacity": 200, "eval_every": 6, "eval_episodes": 1, "checkpoint_every": 3,
    "log_every": 3, "hidden": [4], "num_steps": 2, "compilation_cache": False,
}  # fmt: skip


def tiny_configs(seeds: int = 2, **changed: Any) -> list[RunConfig]:
    """One run per seed."""
    return Grid({**TINY, **changed}, seeds=range(seeds)).configs()


def run_in_this_process(configs: Sequence[RunConfig], out: Path) -> Path:
    """A finished sweep, without the cost of a process per job."""
    for id_ in SweepFolder.write(out, configs).jobs:
        assert run_job(out, id_) == "done"
    return out


def results(sweep: Path) -> dict[str, tuple[list[list[str]], dict[str, np.ndarray]]]:
    """Each run's evaluations, without their times, and its weights, by the job's id."""
    found = {}
    for job in SweepFolder(sweep).jobs.values():
        with (job.folder / "evaluations.csv").open(newline="") as file:
            rows = [row[:-1] for row in csv.reader(file)]
        checkpoint = max((job.folder / "checkpoints").iterdir())
        found[job.id] = rows, load_file(checkpoint / "state.safetensors")
    return found


def assert_same(one: Path, other: Path) -> None:
    """Two sweeps of the same runs: equal evaluations, equal weights, to the bit."""
    ours, theirs = results(one), results(other)
    assert ours.keys() == theirs.keys() and ours
    for id_, (rows, weights) in ours.items():
        assert rows == theirs[id_][0]
        assert weights.keys() == theirs[id_][1].keys()
        for name, array in weights.items():
            assert np.array_equal(array, theirs[id_][1][name]), (id_, name)


def until(condition: Callable[[], object], seconds: float = 90.0) -> None:
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
