"""Versions of the software that made a run."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("langevinrl", "jax", "jaxlib", "optax", "numpy", "gymnasium", "mujoco")


def versions() -> dict[str, Any]:
    """Return Python, packages, devices, the commit and the command."""
    import jax

    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    devices = [f"{d.platform}: {d.device_kind}" for d in jax.devices()]
    return {**found, "devices": devices, **_git(), "command": sys.argv[1:]}


def _git() -> dict[str, Any]:
    def ask(*words: str) -> str:
        place = Path(__file__).parent
        done = subprocess.run(
            ["git", *words], cwd=place, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        return {
            "commit": ask("rev-parse", "HEAD"),
            "dirty": bool(ask("status", "--porcelain", "-uno")),
        }
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
