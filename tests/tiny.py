"""Settings of the smallest runs that tests make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langevinrl.runs.config import RunConfig

# The smallest run that has everything: two evaluations, two checkpoints, four lines of metrics.
TINY_RUN: dict[str, Any] = {
    "iterations": 8,
    "seed": 3,
    "seeds": 2,
    "num_envs": 2,
    "warmup": 200,
    "batch_size": 8,
    "capacity": 300,
    "eval_every": 4,
    "eval_episodes": 3,
    "checkpoint_every": 4,
    "log_every": 2,
}
TINY_AGENT: dict[str, Any] = {
    "hidden": (8, 8),
    "num_levels": 3,
    "embedding_size": 4,
    # So that actions follow the weights smoothly: by default, corners and signs are all one sees.
    "inverse_temperature": 10.0,
    "normalise": False,
}
LQL_RUN: dict[str, Any] = {
    "agent": "lql", "hyperparameters": {"hidden": (8, 8), "num_steps": 3}, "iterations": 6,
    "warmup": 20, "batch_size": 8, "num_envs": 2, "capacity": 100, "eval_every": 3,
    "eval_episodes": 2, "checkpoint_every": 100, "log_every": 2,
}  # fmt: skip


def lql_config(out: Path | None = None, **changes: Any) -> RunConfig:
    """Return the configuration of a six-iteration LQL run on `toys:wide`."""
    return RunConfig("toys:wide", out=str(out), **(LQL_RUN | changes))
