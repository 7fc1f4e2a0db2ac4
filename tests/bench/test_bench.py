"""`langevinrl bench`: timing of an agent, and its table and file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from langevinrl.agents.sac import SAC
from langevinrl.bench import Bench, agents, measure
from langevinrl.bench.plain import PLAIN
from langevinrl.errors import UserError
from langevinrl.types import Spec


def test_timing_includes_the_plain_version() -> None:
    agent = SAC(Spec(3, 2), hidden=(8, 8))
    times = agents.bench_agent(agent, PLAIN["sac"], repeats=1, rows=6)
    assert min(times.values()) > 0
    assert times["products ratio"] == pytest.approx(times["update"] / times["products"])
    assert times["ratio"] == pytest.approx(times["update"] / times["plain update"])
    assert times["loop share"] < 1


def test_agent_without_a_plain_version_is_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(Bench(("lql",), tmp_path, repeats=1), {"tiny": Spec(3, 2)})
    (row,) = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert row["update"] > 0 and "ratio" not in row
    assert "lql" in capsys.readouterr().out


def test_one_agent_is_timed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("update", "products", "products ratio", "plain update", "ratio", "act", "loop share",
             "peak MB")  # fmt: skip

    def fake_times(agent: Any, plain: Any, repeats: int, rows: int) -> dict[str, float]:
        assert agent.spec == Spec(3, 2) and plain is PLAIN["sac"] and rows == 256
        return dict.fromkeys(names, 0.5 + repeats)

    monkeypatch.setattr(agents, "bench_agent", fake_times)
    measure(Bench(("sac",), tmp_path, repeats=1), {"tiny": Spec(3, 2)})
    written = json.loads((tmp_path / "bench.json").read_text())
    assert written["rows"] == [{"agent": "sac", "sizes": "tiny"} | dict.fromkeys(names, 1.5)]
    assert written["gemm_gflops"] > 0 and "jax" in written["versions"]
    shown = capsys.readouterr().out
    assert "tiny" in shown and "GEMM" in shown


def test_unknown_agents_are_rejected() -> None:
    with pytest.raises(UserError, match="did you mean sac"):
        measure(Bench(("sacc",)))
