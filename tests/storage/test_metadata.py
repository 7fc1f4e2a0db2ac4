"""Metadata that no run of this configuration can have written is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.storage.metadata import raise_as_corrupt, require_metadata

ABSENT = "absent"  # the key is missing
WRONG: dict[str, list[Any]] = {
    "step": [-1, 1.5, "12", None, True, 2**60, ABSENT, 109],
    "iteration": [7, -8, 8.0, "8", None, ABSENT],
    "wall_seconds": [-1, float("nan"), float("inf"), "1", None, ABSENT],
    "logs": [None, [], {"metrics.jsonl": 3}, {"metrics.jsonl": [-1, ""]}, {"metrics.jsonl": [1]}],
    "envs": [None, {}, [], [None] * 3, [1] * 4],
    "episodes": [3, [], ABSENT],
    "replay": [None, 3],
    "replay.size": [-1, 301, 1.0, None, 7, ABSENT],
    "replay.position": [300, -1, "0", None, ABSENT],
    "replay.generators": [None, [], [{}], [1, 2], ABSENT],
}
CHANGES = [(name, value) for name, values in WRONG.items() for value in values]


@pytest.fixture(scope="module")
def good(tiny_run: Path) -> tuple[dict[str, Any], RunConfig]:
    path = max((tiny_run / "checkpoints").iterdir()) / "metadata.json"
    table = json.loads(path.read_text())
    config = RunConfig.read(tiny_run / "config.json")
    # A full ring of 300 rows, which 108 steps of two environments would not fill.
    table["replay"] |= {"size": config.capacity, "position": 16}
    return table, config


def test_metadata_of_a_run_is_accepted(good: tuple[dict[str, Any], RunConfig]) -> None:
    require_metadata(*good)
    require_metadata(good[0] | {"episodes": None, "envs": [None] * 4}, good[1])


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_metadata_that_a_run_cannot_write_is_refused(
    name: str, value: Any, good: tuple[dict[str, Any], RunConfig]
) -> None:
    table, (top, _, below) = copy.deepcopy(good[0]), name.partition(".")
    place = table[top] if below else table
    if value is ABSENT:
        del place[below or top]
    else:
        place[below or top] = value
    wrong = "step|iteration" if top == "step" else top
    with pytest.raises(UserError, match=f"the checkpoint's ({wrong}) is .*; expected"):
        require_metadata(table, good[1])


def test_errors_in_restoring_become_one_sentence() -> None:
    with (
        pytest.raises(UserError, match=r"cannot be restored: KeyError\('state'\)"),
        raise_as_corrupt(),
    ):
        raise KeyError("state")
