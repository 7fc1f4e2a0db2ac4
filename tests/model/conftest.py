"""What the tests of the front door share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from langevinrl import Model


@pytest.fixture(scope="session")
def model(tiny_run: Path) -> Model:
    """A trained model, to be asked and not taught."""
    return Model.load(tiny_run)


@pytest.fixture(scope="session")
def tiny(tiny_fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a model that learns as `tiny_run` did, but for how long."""
    return {name: value for name, value in tiny_fields.items() if name != "iterations"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
