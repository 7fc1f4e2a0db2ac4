"""Reinforcement learning that samples soft policies from the critic by Langevin dynamics.

import langevinrl as lrl

model = lrl.Model("nclql", "Pendulum-v1").learn(iterations=5_000)
model.learn(iterations=5_000, callback=lrl.callbacks.StopOnReturn(-200))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langevinrl import callbacks, samplers
    from langevinrl.agents import Agent
    from langevinrl.analysis.report import write_report as report
    from langevinrl.envs.check import check_env
    from langevinrl.envs.standardise import standardise
    from langevinrl.errors import UserError
    from langevinrl.model import Model
    from langevinrl.registry import METHODS
    from langevinrl.runs.callbacks import Callback
    from langevinrl.runs.config import RunConfig
    from langevinrl.runs.loop import Run
    from langevinrl.runs.train import resume, train
    from langevinrl.sweeps.grid import Grid
    from langevinrl.sweeps.start import sweep
    from langevinrl.types import Batch, Spec, Update

__version__ = "0.2.0"

__all__ = [
    "METHODS", "Agent", "Batch", "Callback", "Grid", "Model", "Run", "RunConfig", "Spec",
    "Update", "UserError", "callbacks", "check_env", "report", "resume", "samplers", "standardise",
    "sweep", "train",
]  # fmt: skip

_MODULES = ("callbacks", "samplers")  # public as a whole
# Module of each public name, and its name there if it differs.
_HOMES = {
    "METHODS": "registry",
    "Agent": "agents",
    "Batch": "types",
    "Callback": "runs.callbacks",
    "Grid": "sweeps.grid",
    "Model": "model",
    "Run": "runs.loop",
    "RunConfig": "runs.config",
    "Spec": "types",
    "Update": "types",
    "UserError": "errors",
    "check_env": "envs.check",
    "report": "analysis.report:write_report",
    "resume": "runs.train",
    "standardise": "envs.standardise",
    "sweep": "sweeps.start",
    "train": "runs.train",
}


def __getattr__(name: str) -> Any:
    # Imported on first use, so that the command line and reports do not load JAX.
    if name in _MODULES:
        return importlib.import_module(f"langevinrl.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'langevinrl' has no attribute {name!r}")
    room, _, inner = _HOMES[name].partition(":")
    return getattr(importlib.import_module(f"langevinrl.{room}"), inner or name)
