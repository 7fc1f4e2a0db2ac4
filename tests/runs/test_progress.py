"""One line on the console, and none when quiet."""

from __future__ import annotations

import time

import pytest

from langevinrl.runs.progress import ProgressLine


def test_away_from_a_terminal_there_is_a_line_per_evaluation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    line = ProgressLine("lql Hopper-v4", total=1000, start=0)
    now[0] = 60.0  # warm-up and compilation
    line.evaluation(50, 1.0, 0.5)
    line.advance(100)
    now[0] += 10.0
    line.advance(200)
    line.evaluation(200, 12.34, 0.5)
    line.close()
    first, second = capsys.readouterr().out.splitlines()
    assert first == "lql Hopper-v4  50/1000  return 1.0 ± 0.5"
    assert second == "lql Hopper-v4  200/1000  10.0 it/s  1.3 min left  return 12.3 ± 0.5"


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine("lql Hopper-v4", total=10, start=0, quiet=True)
    line.advance(1)
    line.evaluation(1, 0.0, 0.0)
    line.close()
    assert capsys.readouterr().out == ""
