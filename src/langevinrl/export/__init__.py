"""Export of trained policies: one file for NumPy, JAX or ONNX Runtime."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langevinrl.export.files import export
    from langevinrl.export.numpy_policy import NumpyPolicy, draw_noise

__all__ = ["NumpyPolicy", "draw_noise", "export"]
_FILES = {"export": "files", "NumpyPolicy": "numpy_policy", "draw_noise": "numpy_policy"}


def __getattr__(name: str) -> Any:
    # Imported on first use, because NumpyPolicy needs no JAX.
    if name not in _FILES:
        raise AttributeError(f"module 'langevinrl.export' has no attribute {name!r}")
    return getattr(importlib.import_module(f"langevinrl.export.{_FILES[name]}"), name)
