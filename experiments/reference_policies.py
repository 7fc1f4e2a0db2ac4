"""Random and zero-action baselines: uniform actions, and the centre of the action box.

From the root of the repository:

python experiments/reference_policies.py   # results/reference/returns.csv, a few minutes

A hundred episodes of each, with environments seeded 0 to 99.  A method whose return stays near
these has not learned.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from langevinrl.analysis.tables import Row, read_csv, write_csv

HERE = Path("results/reference")
TASKS = (
    "Pendulum-v1", "InvertedDoublePendulum-v4", "Reacher-v4", "Pusher-v4", "HalfCheetah-v4",
    "Hopper-v4", "Walker2d-v4", "Swimmer-v4", "Ant-v4", "Humanoid-v4",
)  # fmt: skip
EPISODES = 100


def play(env: gym.Env[Any, Any], policy: str, seed: int) -> float:
    """Play one episode and return its return."""
    box = env.action_space
    assert isinstance(box, gym.spaces.Box)
    env.reset(seed=seed)
    draw, total, ended = np.random.default_rng(seed), 0.0, False
    while not ended:
        centre = (box.low + box.high) / 2
        action = centre if policy == "zero" else draw.uniform(box.low, box.high)
        _, reward, terminated, truncated, _ = env.step(action.astype(box.dtype))
        total, ended = total + float(reward), terminated or truncated
    return total


def measure() -> None:
    rows = []
    for task in TASKS:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning)  # of v4 environments
            env = gym.make(task)
        for policy in ("random", "zero"):
            returns = [play(env, policy, seed) for seed in range(EPISODES)]
            row: Row = {"task": task, "policy": policy, "episodes": EPISODES}
            row |= {"mean": np.mean(returns), "std": np.std(returns, ddof=1)}
            rows.append(row)
            print(f"{task:26} {policy:7} {row['mean']:9.1f} ± {row['std']:.1f}")
        env.close()
    HERE.mkdir(parents=True, exist_ok=True)
    write_csv(HERE / "returns.csv", rows)


def reference(task: str, policy: str) -> float:
    """Return the measured mean return of a policy on a task."""
    rows = read_csv(HERE / "returns.csv")
    return next(float(r["mean"]) for r in rows if r["task"] == task and r["policy"] == policy)


if __name__ == "__main__":
    measure()
