"""Time of one vector step of environments: in turn, in processes, and by EnvPool.

python experiments/stepping.py --out results/envs/stepping.csv
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

from langevinrl.envs.factory import EnvFactory, as_factory
from langevinrl.envs.vector import VectorEnv


@dataclass(frozen=True)
class Stepping:
    """Time one vector step of several tasks, in every available way."""

    # Gymnasium ids; sleep:MS is a task whose step takes that many milliseconds
    envs: tuple[str, ...] = ("Pendulum-v1", "HalfCheetah-v4", "Humanoid-v4", "sleep:5")
    num_envs: tuple[int, ...] = (1, 2, 5, 16, 64)  # environments in a vector
    seconds: float = 0.5  # at least, for each way and number
    rounds: int = 3  # the ways take turns this many times
    out: Path | None = None  # a CSV file


class Row(NamedTuple):
    """Microseconds per environment and step."""

    env: str
    num_envs: int
    way: str
    micros: float  # median over rounds
    ratio: float  # to stepping in turn, in the same run
    cores: int | None


def sleeping(milliseconds: float) -> EnvFactory:
    """Return a factory of environments whose step waits, as for a slow simulator.

    The class is local, so that it is sent to the processes whole: importing it there would import
    JAX in each of them.
    """

    class Sleeping(gym.Env[np.ndarray, np.ndarray]):
        observation_space = gym.spaces.Box(-1.0, 1.0, (17,), np.float32)
        action_space = gym.spaces.Box(-1.0, 1.0, (6,), np.float32)

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[np.ndarray, dict[str, Any]]:
            return np.zeros(17, np.float32), {}

        def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
            time.sleep(milliseconds / 1e3)
            return np.zeros(17, np.float32), 0.0, False, False, {}

    return Sleeping


def measure(config: Stepping) -> list[Row]:
    """Time every task with every number of environments, and print a line for each."""
    rows = []
    for env in config.envs:
        for num in config.num_envs:
            with ExitStack() as stack:
                micros = time_steps(step_functions(env, num, stack), config)
            base, cores = micros["sync"], os.cpu_count()
            found = [Row(env, num, way, t / num, t / base, cores) for way, t in micros.items()]
            rows += found
            text = "  ".join(f"{row.way} {row.micros:8.1f} µs ({row.ratio:.2f})" for row in found)
            print(f"{env:16} {num:3}  {text}", flush=True)
    return rows


def step_functions(env: str, num: int, stack: ExitStack) -> dict[str, Callable[[], None]]:
    """Return a function for each way to step the environments."""
    kind, _, milliseconds = env.partition(":")
    make = sleeping(float(milliseconds)) if kind == "sleep" else as_factory(env)
    steps = {}
    for way in ("sync", "async"):
        envs = VectorEnv(make, [0], num, asynchronous=way == "async")
        stack.callback(envs.close)
        steps[way] = stepper(envs, (*envs.shape, envs.spec.act_dim))
    pool = make_envpool(env, num)
    if pool is not None:
        stack.callback(pool.close)
        steps["envpool"] = stepper(pool, (num, *pool.action_space.shape))
    return steps


def stepper(envs: Any, shape: tuple[int, ...]) -> Callable[[], None]:
    """Return a function that takes one step with random actions."""
    envs.reset()
    table = np.random.default_rng(0).uniform(-1, 1, (64, *shape)).astype(np.float32)
    actions = cycle(table)
    return lambda: envs.step(next(actions))


def make_envpool(env: str, num: int) -> Any:
    """Make EnvPool's version of a task; None if the package or the task is missing."""
    try:
        import envpool
    except ImportError:
        return None
    if env not in envpool.list_all_envs():
        return None
    return envpool.make(env, env_type="gymnasium", num_envs=num, seed=0)


def time_steps(steps: dict[str, Callable[[], None]], config: Stepping) -> dict[str, float]:
    """Measure median microseconds of each function, in turns."""
    found: dict[str, list[float]] = {way: [] for way in steps}
    for _ in range(config.rounds):
        for way, step in steps.items():
            step()
            began, calls = time.perf_counter(), 0
            while time.perf_counter() - began < config.seconds / config.rounds:
                step()
                calls += 1
            found[way].append(1e6 * (time.perf_counter() - began) / calls)
    return {way: float(np.median(times)) for way, times in found.items()}


def main(config: Stepping) -> None:
    rows = measure(config)
    if config.out is not None:
        config.out.parent.mkdir(parents=True, exist_ok=True)
        with config.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Row._fields)
            for row in rows:
                writer.writerow(
                    row._replace(micros=round(row.micros, 1), ratio=round(row.ratio, 3))
                )


if __name__ == "__main__":
    main(tyro.cli(Stepping))
