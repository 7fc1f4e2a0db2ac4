"""Every agent's short run still gives the numbers it gave: structure may change, they may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import record

from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.study import run_study


@pytest.mark.parametrize(
    "agent", [pytest.param(a, marks=pytest.mark.xdist_group(a)) for a in record.AGENTS]
)
def test_the_golden_record(agent: str, tmp_path: Path) -> None:
    record.make_run(agent, tmp_path / "run")
    now = record.record(tmp_path / "run")["values"]
    then = json.loads(record.TABLE.read_text())[agent]["values"]
    assert record.differences(now, then) == []


@pytest.mark.slow
def test_the_bandits_quick_study(tmp_path: Path) -> None:
    """Chains along unit scores turn rounding into other corners: to a few samples of 2,000."""
    now = record.record_bandit(run_study(BanditConfig(out=tmp_path, quick=True)))
    assert record.differences(now, json.loads(record.BANDIT.read_text()), tolerance=5e-3) == []
