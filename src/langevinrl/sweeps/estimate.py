"""How long runs will take, from a few iterations of one of each kind.

python -m langevinrl.sweeps.estimate CONFIG.json --cores 0 measures one, and prints its cost.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.storage.trust import search_here
from langevinrl.sweeps.slots import Slot, stay_on

REPEATS = 3  # timed iterations
LONGEST_EPISODE = 1_000  # steps, where a task does not tell


class Cost(NamedTuple):
    """Seconds of one run's parts."""

    start: float  # loading and compiling
    iteration: float  # act, step, update
    action: float  # act and step, as in evaluation


def measure(config: RunConfig) -> Cost:
    """Build the run as it will be, but for its warm-up, and time a few iterations."""
    from langevinrl.runs.loop import Run

    began = time.monotonic()
    rows = config.rows_per_iteration
    short = {"warmup": rows, "capacity": 2 * rows}
    with Run(dataclasses.replace(config, **short)) as run:  # type: ignore[arg-type]  # one dict of fields
        run.until(1)
        _finish(run.advance())
        start = time.monotonic() - began
        iteration = _median(lambda: _finish(run.advance()))
        action = _median(
            lambda: _finish(run.compiled.act(run.seed_keys, 0, run.state, run.envs.obs))
        )
    return Cost(start, iteration, action)


def seconds_of(config: RunConfig, cost: Cost) -> float:
    """A whole run: start, iterations, and evaluations of full episodes."""
    evaluations = (config.iterations or 0) // (config.eval_every or 1)
    played = evaluations * longest_episode(config.env) * cost.action
    return cost.start + (config.iterations or 0) * cost.iteration + played


def longest_episode(env: str) -> int:
    import gymnasium as gym

    spec = gym.registry.get(env.rpartition(":")[2])
    return (spec.max_episode_steps if spec else None) or LONGEST_EPISODE


def kind_of(config: RunConfig) -> str:
    """Runs of one kind take the same time for an iteration: agent, counts and sizes alike."""
    fields = {k: v for k, v in config.hyperparameters.items() if not isinstance(v, float)}
    return json.dumps([config.agent, config.seeds, config.num_envs, config.batch_size, fields])


def estimate(configs: Sequence[RunConfig], slots: list[Slot]) -> tuple[float, dict[str, Cost]]:
    """Seconds until all runs are done, and the cost of each kind; measured side by side."""
    samples = {kind_of(config): config for config in configs}
    free: SimpleQueue[Slot] = SimpleQueue()
    for slot in slots:
        free.put(slot)

    def ask(config: RunConfig) -> Cost:
        slot = free.get()
        try:
            return _measure_in(slot, config)
        finally:
            free.put(slot)

    with ThreadPoolExecutor(len(slots)) as pool:
        costs = dict(zip(samples, pool.map(ask, samples.values()), strict=True))
    each = [seconds_of(config, costs[kind_of(config)]) for config in configs]
    return max(sum(each) / len(slots), max(each)), costs


def _measure_in(slot: Slot, config: RunConfig) -> Cost:
    """A process of the slot's own, as the run's will be."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "config.json"
        config.write(path)
        words = [sys.executable, "-P", "-m", "langevinrl.sweeps.estimate", str(path)]
        words += ["--trust"] if config.imported() else []  # it comes from our caller, not a file
        words += ["--cores", ",".join(map(str, slot.cores))]
        done = subprocess.run(
            words, capture_output=True, text=True, env=slot.environment(os.environ)
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise UserError(f"{config.agent} on {config.env} does not start: {last}")
    return Cost(*json.loads(done.stdout.strip().splitlines()[-1]))


def _median(call: Any) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.monotonic()
        call()
        times.append(time.monotonic() - began)
    return sorted(times)[len(times) // 2]


def _finish(value: Any) -> None:
    import jax

    jax.block_until_ready(value)  # type: ignore[no-untyped-call]


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
