"""Short runs of every agent give the recorded numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import record

from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.study import run_study


@pytest.mark.parametrize(
    "agent", [pytest.param(a, marks=pytest.mark.xdist_group(a)) for a in record.FIELDS]
)
def test_run_gives_the_recorded_values(agent: str, tmp_path: Path) -> None:
    record.make_run(agent, tmp_path / "run")
    now = record.record(tmp_path / "run")["values"]
    then = json.loads(record.TABLE.read_text())[agent]["values"]
    assert record.differences(now, then) == []


@pytest.mark.slow
def test_quick_bandit_study_gives_the_recorded_values(tmp_path: Path) -> None:
    # Rounding moves a few of 2,000 samples, since chains follow the direction of a gradient only.
    now = record.record_bandit(run_study(BanditConfig(out=tmp_path, quick=True)))
    assert record.differences(now, json.loads(record.BANDIT.read_text()), tolerance=5e-3) == []
