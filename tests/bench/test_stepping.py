"""Ways to step environments are timed beside each other."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from langevinrl.bench.envs import SteppingBench, measure_stepping


def test_a_row_for_each_way_and_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "stepping.csv"
    rows = measure_stepping(
        SteppingBench(envs=("sleep:1",), num_envs=(2,), seconds=0.02, rounds=1, out=out)
    )
    ways = {row.way: row for row in rows}
    assert {"sync", "async"} <= ways.keys()
    assert ways["sync"].ratio == 1 and ways["sync"].micros > 900  # each sleeps a millisecond
    with out.open() as file:
        assert [row["way"] for row in csv.DictReader(file)] == [row.way for row in rows]
    assert "sleep:1" in capsys.readouterr().out
