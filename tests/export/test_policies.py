"""Policies under results/policies: they reach the return in their table."""

from __future__ import annotations

import csv
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from langevinrl.export import NumpyPolicy

ROOT = Path(__file__).parent.parent.parent
POLICIES = ROOT / "results" / "policies"
with (POLICIES / "returns.csv").open(newline="") as file:
    RETURNS = {row["task"]: row for row in csv.DictReader(file)}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Gymnasium's, of v4 tasks
@pytest.mark.parametrize("task", RETURNS)
def test_example_plays_a_policy_to_its_return(
    task: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["play_policy.py", task])
    runpy.run_path(str(ROOT / "examples" / "play_policy.py"))
    played = float(capsys.readouterr().out.split()[-1])
    assert played == pytest.approx(float(RETURNS[task]["first"]), rel=0.05)


@pytest.mark.parametrize("task", RETURNS)
def test_both_forms_of_a_policy_are_small_and_equal(task: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    files = [POLICIES / f"{task}{ending}" for ending in (".npz", ".onnx")]
    assert all(file.stat().st_size < 1_000_000 for file in files)
    policy = NumpyPolicy(files[0], seed=0)
    session = onnxruntime.InferenceSession(files[1], providers=["CPUExecutionProvider"])
    obs = np.random.default_rng(0).normal(size=(3, policy.metadata["obs_dim"]))
    noise = policy.draw_noise(3)
    (expected,) = session.run(["action"], {"obs": obs.astype(np.float32), **noise})
    np.testing.assert_allclose(policy(obs, noise), expected, atol=1e-4)
