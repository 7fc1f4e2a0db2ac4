"""Every agent's short run still gives the numbers it gave: structure may change, they may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import record


@pytest.mark.parametrize(
    "agent", [pytest.param(a, marks=pytest.mark.xdist_group(a)) for a in record.AGENTS]
)
def test_the_golden_record(agent: str, tmp_path: Path) -> None:
    record.make_run(agent, tmp_path / "run")
    now = record.record(tmp_path / "run")["values"]
    then = json.loads(record.TABLE.read_text())[agent]["values"]
    assert record.differences(now, then) == []
