"""A policy without the training stack: one file for NumPy, for JAX or for ONNX Runtime."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langevinrl.export.files import export
    from langevinrl.export.numpy_policy import NumpyPolicy

__all__ = ["NumpyPolicy", "export"]
_FILES = {"export": "files", "NumpyPolicy": "numpy_policy"}


def __getattr__(name: str) -> Any:
    # On first use, so that NumpyPolicy loads no JAX.
    if name not in _FILES:
        raise AttributeError(f"module 'langevinrl.export' has no attribute {name!r}")
    return getattr(importlib.import_module(f"langevinrl.export.{_FILES[name]}"), name)
