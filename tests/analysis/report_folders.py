"""Run folders made up in NumPy, as many and as long as a test of the report needs."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from langevinrl.registry import METHODS
from langevinrl.storage.folder import EVALUATION_COLUMNS

NINE = {
    "HalfCheetah-v4": (-300, 14000), "Walker2d-v4": (0, 5200), "Humanoid-v4": (100, 6000),
    "Hopper-v4": (10, 3400), "Ant-v4": (-60, 5800), "Swimmer-v4": (5, 130),
    "Pusher-v4": (-150, -22), "Reacher-v4": (-45, -4), "InvertedDoublePendulum-v4": (60, 9350),
}  # fmt: skip


def write_run(
    folder: Path, agent: str, env: str, seeds: Iterable[int] = (0,), points: int = 40,
    length: int = 1_000_000, stop: float = 1.0, episodes: int = 1, **fields: Any,
) -> Path:  # fmt: skip
    """A run folder whose returns rise from poor to good, each method at a pace of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    seeds = list(seeds)
    settings = {"gamma": 0.99, "hidden": [256, 256], **fields.pop("hyperparameters", {})}
    config = {
        "env": env, "agent": agent, "hyperparameters": settings, "iterations": length,
        "seed": seeds[0], "seeds": len(seeds), "out": str(folder), "num_envs": 5,
        "warmup": 30_000, "batch_size": 256, "eval_every": length // points,
    } | fields  # fmt: skip
    versions = {
        "python": "3.11.7", "langevinrl": "0.1.0", "jax": "0.7.0", "commit": "abc1234567",
        "dirty": False,
    } | config.pop("versions", {})  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "versions.json").write_text(json.dumps(versions))
    low, high = NINE.get(env, (0, 100))
    place = list(METHODS).index(agent) if agent in METHODS else 5
    with (folder / "evaluations.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(EVALUATION_COLUMNS)
        for seed in seeds:
            draws = np.random.default_rng(
                [place, seed, len(env), crc32(json.dumps(settings).encode())]
            )
            pace, top = 2.2 + 3 * draws.random() - 0.1 * place, 0.95 - 0.05 * place
            top *= 0.9 + 0.15 * draws.random()
            for k in range(1, int(points * stop) + 1):
                share = top * (1 - np.exp(-pace * k / points)) + 0.02 * draws.normal()
                at = k * length // points
                for episode in range(episodes):
                    value = low + (high - low) * share + episode
                    row = [agent, env, seed, at, 5 * at, episode, value, 1000]
                    table.writerow([*row, round(at * (0.02 + 0.004 * place), 2)])
    return folder


def write_nine(root: Path, methods: int = 10, seeds: int = 5, points: int = 40) -> Path:
    """Ten methods on nine tasks, a folder per seed, at a tenth of the paper's length."""
    for agent in list(METHODS)[:methods]:
        for env in NINE:
            for seed in range(seeds):
                write_run(root / f"{agent}-{env}-{seed}", agent, env, [seed], points, 100_000)
    return root
