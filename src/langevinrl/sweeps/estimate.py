"""Estimates of training time, from a few iterations of one run of each kind.

python -m langevinrl.sweeps.estimate CONFIG.json --cores 0 measures one run and prints its cost.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run
from langevinrl.runs.presets import longest_episode
from langevinrl.storage.trust import search_here
from langevinrl.sweeps.slots import Slot, stay_on

REPEATS = 3  # timed iterations


class Cost(NamedTuple):
    """Seconds for the parts of a run."""

    start: float  # loading and compiling
    iteration: float  # act, step, update
    action: float  # act and step, as in evaluation


def measure(config: RunConfig) -> Cost:
    """Build the run with a short warm-up, and time a few iterations."""
    began = time.monotonic()
    rows = config.rows_per_iteration
    short: dict[str, Any] = {"warmup": rows, "capacity": 2 * rows}
    with Run(dataclasses.replace(config, **short)) as run:
        run.until(1)
        jax.block_until_ready(run.advance())  # type: ignore[no-untyped-call]
        start = time.monotonic() - began
        iteration = _seconds(run.advance)
        action = _seconds(lambda: run.compiled.act(run.seed_keys, 0, run.state, run.envs.obs))
    return Cost(start, iteration, action)


def _seconds(call: Callable[[], Any]) -> float:
    """Return the median time of a few calls."""
    times = []
    for _ in range(REPEATS):
        began = time.monotonic()
        jax.block_until_ready(call())  # type: ignore[no-untyped-call]
        times.append(time.monotonic() - began)
    return statistics.median(times)


def seconds_of(config: RunConfig, cost: Cost) -> float:
    """Return the time of a whole run: start, iterations, and evaluations of full episodes."""
    evaluations = config.length // config.evaluation[0]
    played = evaluations * longest_episode(config.env) * cost.action
    return cost.start + (config.iterations or 0) * cost.iteration + played


def kind_of(config: RunConfig) -> str:
    """Return a key that is equal for runs whose iterations take the same time."""
    fields = {k: v for k, v in config.hyperparameters.items() if not isinstance(v, float)}
    return json.dumps([config.agent, config.seeds, config.num_envs, config.batch_size, fields])


def estimate(configs: Sequence[RunConfig], slots: list[Slot]) -> tuple[float, dict[str, Cost]]:
    """Return the seconds until all runs are done, and the cost of each kind of run."""
    kinds = {kind_of(config): config for config in configs}
    places = [slots[number % len(slots)] for number in range(len(kinds))]
    with ThreadPoolExecutor(len(slots)) as pool:
        costs = dict(zip(kinds, pool.map(_measure_in, places, kinds.values()), strict=True))
    each = [seconds_of(config, costs[kind_of(config)]) for config in configs]
    return max(sum(each) / len(slots), max(each)), costs


def _measure_in(slot: Slot, config: RunConfig) -> Cost:
    """Measure a run in a process of its own in a slot."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        config.write(path)
        words = [sys.executable, "-P", "-m", "langevinrl.sweeps.estimate", str(path)]
        words += ["--trust"] if config.imported() else []  # the caller's names, not a file's
        words += ["--cores", ",".join(map(str, slot.cores))]
        done = subprocess.run(
            words, capture_output=True, text=True, env=slot.environment(os.environ)
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"{config.agent} on {config.env} does not start: {last}")
    return Cost(*json.loads(done.stdout.strip().splitlines()[-1]))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m langevinrl.sweeps.estimate")
    parser.add_argument("config", type=Path)
    parser.add_argument("--cores", required=True)
    parser.add_argument("--trust", action="store_true")
    asked = parser.parse_args(words)
    stay_on(asked.cores)
    if asked.trust:
        search_here()
    print(json.dumps(measure(RunConfig.read(asked.config, trust=asked.trust))))


if __name__ == "__main__":
    main()
