"""How fast environments are stepped, one after the other, in processes, or by EnvPool.

python -m langevinrl.bench.envs --out stepping.csv
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import tyro

from langevinrl.envs.vector import VectorEnv, as_factory
from langevinrl.errors import UserError


@dataclass(frozen=True)
class SteppingBench:
    """Time one vector step of several tasks, with each way to do it beside the others."""

    # Gymnasium ids; sleep:MS stands for a task whose step takes so many milliseconds
    envs: tuple[str, ...] = ("Pendulum-v1", "HalfCheetah-v4", "Humanoid-v4", "sleep:5")
    num_envs: tuple[int, ...] = (1, 2, 5, 16, 64)  # environments side by side
    seconds: float = 0.5  # at least, for each way and number
    rounds: int = 3  # the ways take turns so many times
    out: Path | None = None  # a CSV file


class Row(NamedTuple):
    """One way to step so many environments, in microseconds per environment and step."""

    env: str
    num_envs: int
    way: str
    micros: float  # median over rounds
    ratio: float  # to stepping one after the other, in the same run


class Sleeping(gym.Env[np.ndarray, np.ndarray]):
    """A task that waits, as one does that talks to a simulator elsewhere."""

    def __init__(self, milliseconds: float) -> None:
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (17,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (6,), np.float32)
        self.seconds = milliseconds / 1e3

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(17, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        time.sleep(self.seconds)
        return np.zeros(17, np.float32), 0.0, False, False, {}


def measure_stepping(config: SteppingBench) -> list[Row]:
    """Every task with every number of environments; prints a line for each."""
    rows = []
    for env in config.envs:
        for num in config.num_envs:
            with ExitStack() as stack:
                ways = _ways(env, num, stack)
                micros = _time(ways, config) if ways else {}
            base = micros.get("sync", float("nan"))
            found = [Row(env, num, way, t / num, t / base) for way, t in micros.items()]
            rows += found
            said = "  ".join(f"{row.way} {row.micros:8.1f} µs ({row.ratio:.2f})" for row in found)
            print(f"{env:16} {num:3}  {said}", flush=True)
    if config.out is not None:
        _write(rows, config.out)
    return rows


def _ways(env: str, num: int, stack: ExitStack) -> dict[str, Callable[[], None]]:
    """One vector step, by each way that is to be had for this task."""
    kind, _, milliseconds = env.partition(":")
    make = (lambda: Sleeping(float(milliseconds))) if kind == "sleep" else as_factory(env)
    ways: dict[str, Callable[[], None]] = {}
    for way in ("sync", "async"):
        envs = VectorEnv(make, [0], num, asynchronous=way == "async")
        stack.callback(envs.close)
        ways[way] = _stepper(envs)
    pool = _envpool(env, num)
    if pool is not None:
        stack.callback(pool.close)
        ways["envpool"] = _pool_stepper(pool, num)
    return ways


def _stepper(envs: VectorEnv) -> Callable[[], None]:
    envs.reset()
    shape = (64, *envs.shape, envs.spec.act_dim)
    actions = cycle(np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32))

    def step() -> None:
        envs.step(next(actions))

    return step


def _envpool(env: str, num: int) -> Any:
    """EnvPool's version of a task; None without the package or the task."""
    try:
        import envpool
    except ImportError:
        return None
    if env not in envpool.list_all_envs():
        return None
    return envpool.make(env, env_type="gymnasium", num_envs=num, seed=0)


def _pool_stepper(pool: Any, num: int) -> Callable[[], None]:
    pool.reset()
    box = pool.action_space
    table = np.random.default_rng(0).uniform(box.low, box.high, (64, num, *box.shape))
    actions = cycle(table.astype(box.dtype))

    def step() -> None:
        pool.step(next(actions))

    return step


def _time(ways: dict[str, Callable[[], None]], config: SteppingBench) -> dict[str, float]:
    """Median microseconds of one call of each, in turns, so that noise disturbs all alike."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(config.rounds):
        for way, step in ways.items():
            step()
            began, calls = time.perf_counter(), 0
            while time.perf_counter() - began < config.seconds / config.rounds:
                step()
                calls += 1
            found[way].append(1e6 * (time.perf_counter() - began) / calls)
    return {way: float(np.median(times)) for way, times in found.items()}


def _write(rows: list[Row], path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*Row._fields, "cores"])
            for row in rows:
                values = [row.env, row.num_envs, row.way, f"{row.micros:.1f}", f"{row.ratio:.3f}"]
                writer.writerow([*values, os.cpu_count()])
    except OSError as error:
        raise UserError(f"cannot write {path}: {error}") from error


if __name__ == "__main__":
    measure_stepping(tyro.cli(SteppingBench))
