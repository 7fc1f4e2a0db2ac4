"""Soft policies drawn straight from the critic by Langevin dynamics."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langevinrl.agents import Agent
    from langevinrl.errors import UserError
    from langevinrl.model import Model
    from langevinrl.registry import METHODS
    from langevinrl.runs.callbacks import Callback
    from langevinrl.runs.config import RunConfig
    from langevinrl.runs.loop import Run
    from langevinrl.runs.train import resume, train
    from langevinrl.types import Batch, Spec, Update

__version__ = "0.1.0"

__all__ = [
    "METHODS", "Agent", "Batch", "Callback", "Model", "Run", "RunConfig", "Spec", "Update",
    "UserError", "resume", "train",
]  # fmt: skip

_ROOMS = {
    "METHODS": "registry",
    "Agent": "agents",
    "Batch": "types",
    "Callback": "runs.callbacks",
    "Model": "model",
    "Run": "runs.loop",
    "RunConfig": "runs.config",
    "Spec": "types",
    "Update": "types",
    "UserError": "errors",
    "resume": "runs.train",
    "train": "runs.train",
}


def __getattr__(name: str) -> Any:
    # On first use, so that the command line answers and reports are drawn without loading JAX.
    if name not in _ROOMS:
        raise AttributeError(f"module 'langevinrl' has no attribute {name!r}")
    return getattr(importlib.import_module(f"langevinrl.{_ROOMS[name]}"), name)
