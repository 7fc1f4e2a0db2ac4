"""`langevinrl bench --latency`: timing of single decisions."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from langevinrl.bench import latency
from langevinrl.cli import main
from langevinrl.errors import UserError
from langevinrl.export import NumpyPolicy, export


def test_plain_chain_returns_the_action_of_predict(tmp_path: Path) -> None:
    smooth = {"inverse_temperature": 1.0}
    model = latency.untrained_model(tmp_path, hidden=(8, 8), num_levels=3, **smooth)
    state = jax.tree.map(lambda leaf: leaf[0], model.state)
    obs = np.random.default_rng(0).standard_normal(17).astype(np.float32)
    predicted = model.predict(obs)
    action = predicted[0] if isinstance(predicted, tuple) else predicted
    plain = latency.plain_chain(model.agent, state)
    np.testing.assert_allclose(plain(obs), action, atol=1e-4)
    assert NumpyPolicy(export(tmp_path, "numpy"))(obs).shape == (6,)


def test_forms_take_turns_and_are_compared_with_the_plain_chain() -> None:
    calls: list[str] = []
    forms: dict[str, Any] = {
        latency.PLAIN: lambda obs: calls.append("plain"),
        "fast": lambda obs: calls.append("fast"),
    }
    rows = latency.time_decisions(forms, np.zeros((3, 17)), calls=20)
    assert [row["form"] for row in rows] == [latency.PLAIN, "fast"]
    assert rows[0]["ratio"] == 1 and all(0 < row["p50"] <= row["p99"] for row in rows)
    timed = calls[6:]  # the first six are warm-up
    assert timed == (["plain"] * 10 + ["fast"] * 10) * 2
    assert latency.tabulate(rows).row_count == 2


def test_timing_process_is_pinned_to_one_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"form": latency.PLAIN, "p50": 900.0, "p99": 1000.0, "ratio": 1.0}]

    def run(words: list[str], **options: Any) -> Any:
        assert len(os.sched_getaffinity(0)) == 1 and options["env"]["OPENBLAS_NUM_THREADS"] == "1"
        output = f"noise\n{latency.REPORT}{json.dumps({'rows': rows})}\n"
        return subprocess.CompletedProcess(words, 0, output)

    allowed = os.sched_getaffinity(0)
    monkeypatch.setattr(latency.subprocess, "run", run)
    main(["bench", "--latency", "--out", str(tmp_path), "--calls", "10"])
    assert os.sched_getaffinity(0) == allowed
    assert json.loads((tmp_path / "latency.json").read_text())["rows"] == rows
    assert "plain chain" in capsys.readouterr().out


def test_wrong_arguments_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="3 calls are too few"):
        latency.measure_latency(tmp_path, 3)
    with pytest.raises(SystemExit):
        main(["bench", "sac", "--latency"])
