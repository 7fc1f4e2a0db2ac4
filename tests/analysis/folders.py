"""Run folders as training writes them, with invented returns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.storage.folder import EVALUATION_COLUMNS, RunFolder

CONFIG: dict[str, Any] = {
    "num_envs": 5, "async_envs": False, "action_bound": 1.0, "random_actions": False,
    "warmup": 1_000, "batch_size": 128, "capacity": 1_000_000, "updates_per_iteration": 1,
    "eval_every": 100, "eval_episodes": 20, "checkpoint_every": 1_000, "log_every": 100,
}  # fmt: skip


def make_run(
    folder: Path,
    agent: str = "nclql",
    env: str = "Hopper-v4",
    seeds: Sequence[int] = (0,),
    points: int = 40,
    episodes: int = 20,
    final: float = 1_000.0,
    planned: int | None = None,
    every: int = 100,
    dirty: bool | None = False,
    commit: str = "0" * 40,
    **fields: Any,
) -> Path:
    """Write one run whose returns rise to about `final`, evaluated after each `every` iterations.

    `planned` is the number of evaluations the run should have had; `fields` are fields of the
    configuration, or hyperparameters if it has no such field.
    """
    path = RunFolder(folder)
    folder.mkdir(parents=True)
    own = {"learning_rate": 1e-4, "hidden": [64, 64]}
    own |= {name: value for name, value in fields.items() if name not in CONFIG}
    config = {"env": env, "agent": agent, "hyperparameters": own, "seed": min(seeds, default=0)}
    config |= {"iterations": every * (planned or points), "seeds": len(seeds), "out": str(folder)}
    config |= CONFIG | {"eval_episodes": episodes}
    config |= {name: value for name, value in fields.items() if name in CONFIG}
    path.config.write_text(json.dumps(config, indent=2) + "\n")
    versions = {"python": "3.11.7", "langevinrl": "0.1.0", "commit": commit, "dirty": dirty}
    path.versions.write_text(json.dumps(versions, indent=2) + "\n")
    draw = np.random.default_rng([*agent.encode(), *env.encode(), *map(int, seeds)])
    levels = {seed: final * draw.normal(1, 0.1) for seed in seeds}
    lines = [",".join(EVALUATION_COLUMNS)]
    for point in range(1, points + 1):
        done, mean = every * point, 1 - np.exp(-3 * point / max(points, 1))
        for seed in seeds:
            returns = levels[seed] * mean + abs(final) * draw.normal(0, 0.05, episodes)
            lines += [
                f"{agent},{env},{seed},{done},{5 * done},{episode},{total},1000,{done * 0.072:.2f}"
                for episode, total in enumerate(returns.tolist())
            ]
    path.evaluations.write_text("\r\n".join(lines) + "\r\n")
    return folder


def make_runs(
    root: Path,
    agents: Sequence[str] | Mapping[str, float] = ("nclql", "lql"),
    tasks: Sequence[str] = ("HalfCheetah-v4", "Hopper-v4"),
    seeds: int = 3,
    points: int = 40,
    episodes: int = 20,
    **fields: Any,
) -> Path:
    """Write a folder per agent, task and seed; agents may be given with their final return.

    make_runs(tmp_path, agents={"nclql": 1_000.0, "sac": 700.0}, tasks=["Hopper-v4"], seeds=5)
    """
    finals = agents if isinstance(agents, Mapping) else dict.fromkeys(agents, 1_000.0)
    for agent, final in finals.items():
        for task in tasks:
            for seed in range(seeds):
                folder = root / f"{agent}-{task}-{seed}"
                make_run(folder, agent, task, (seed,), points, episodes, final, **fields)
    return root


def make_sweep(
    root: Path, states: Sequence[str] = ("done", "failed", "running", "waiting")
) -> Path:
    """Write a sweep of one-seed runs, with a job in each of the states."""
    jobs = []
    for number, state in enumerate(states):
        name, folder = f"{number:08x}", f"jobs/nclql-{number:08x}"
        jobs.append({"id": name, "folder": folder})
        if state != "waiting":
            make_run(root / folder, seeds=(number,), points=4 if state == "done" else 2, planned=4)
            (root / "state" / name).mkdir(parents=True)
        if state == "done":
            (root / "state" / name / "done.json").write_text("{}")
        if state in ("failed", "running"):
            for attempt, last in enumerate(("out of memory", "out of memory again"), start=1):
                text = f"Traceback:\n  somewhere\nRuntimeError: {last}\n"
                (root / "state" / name / f"error.{attempt}.txt").write_text(text)
        if state == "running":
            (root / folder / "lock.1").write_text("{}")
    sweep = {"name": "invented", "study": None, "jobs": jobs}
    (root / "sweep.json").write_text(json.dumps(sweep))
    return root
