"""The smallest run that tests make: its fields and those of its agent."""

from __future__ import annotations

from typing import Any

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
