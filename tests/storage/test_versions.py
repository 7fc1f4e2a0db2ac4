"""What a run was made with is written down."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import jax
import pytest

from langevinrl.storage import versions as room
from langevinrl.storage.versions import versions


def test_versions_of_a_run() -> None:
    found = versions()
    named = {"python", "jax", "numpy", "gymnasium", "mujoco", "commit", "dirty", "devices"}
    assert named <= found.keys()
    assert found["jax"] == jax.__version__
    assert found["devices"] and all(":" in device for device in found["devices"])
    json.dumps(found)


def test_versions_without_git_or_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert room._git() == {"commit": None, "dirty": None}

    def absent(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", absent)
    assert versions()["mujoco"] == "not installed"
