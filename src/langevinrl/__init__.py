"""Soft policies drawn straight from the critic by Langevin dynamics."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langevinrl.agents import REGISTER, Agent
    from langevinrl.config import RunConfig
    from langevinrl.errors import UserError
    from langevinrl.model import Model
    from langevinrl.types import Batch, Spec, Update

__version__ = "0.1.0"

__all__ = ["REGISTER", "Agent", "Batch", "Model", "RunConfig", "Spec", "Update", "UserError"]

_ROOMS = {
    "REGISTER": "agents",
    "Agent": "agents",
    "Batch": "types",
    "Model": "model",
    "RunConfig": "config",
    "Spec": "types",
    "Update": "types",
    "UserError": "errors",
}


def __getattr__(name: str) -> Any:
    # On first use, so that the command line answers and reports are drawn without loading JAX.
    if name not in _ROOMS:
        raise AttributeError(f"module 'langevinrl' has no attribute {name!r}")
    return getattr(importlib.import_module(f"langevinrl.{_ROOMS[name]}"), name)
