"""`langevinrl reproduce`: a small study with its report, and the parameter and time tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from langevinrl import cli
from langevinrl.analysis.paper import HUMANOID_PARAMETERS
from langevinrl.registry import METHODS
from langevinrl.studies import times
from langevinrl.studies.parameters import parameter_table
from langevinrl.studies.reproduce import reproduce
from langevinrl.studies.study import AGENTS, Extent
from langevinrl.types import Spec

SMALL = Extent(scale=1e-5, agents=("sac",), tasks=("Reacher",))


def test_small_study_ends_with_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mujoco"
    folder = reproduce("mujoco", out, SMALL, False, {})
    printed = capsys.readouterr().out
    assert "2 runs of 5 iterations in 1 job (" in printed
    assert "only rehearses the pipeline" in printed
    assert folder.study == "mujoco" and all(job.done for job in folder.jobs.values())
    assert (out / "report.html").stat().st_size > 50_000
    files = {path.name for path in (out / "report_files").rglob("*.*")}
    assert {"final_returns.csv", "tidy.csv", "curves_iterations.png", "curves_hours.pdf"} <= files


def test_long_study_needs_yes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["reproduce", "splits", "--methods", "nclql", "--out", str(tmp_path / "out")])
    assert caught.value.code == 2 and not (tmp_path / "out").exists()
    printed = capsys.readouterr().err
    assert "84 runs of 1,000,000 iterations, 84,000,000 in all: start this with --yes" in printed


def test_humanoid_parameter_table_is_the_papers() -> None:
    rows = {row["method"]: row for row in parameter_table()}
    assert len(rows) == 10
    for name in AGENTS:
        row = rows[METHODS[name].label]
        assert row["total"] == row["critics"] + row["policy"]
        if name in HUMANOID_PARAMETERS:
            # Three of the paper's ratios differ by up to 0.002; no network it describes gives them.
            assert abs(float(row["ratio"]) - HUMANOID_PARAMETERS[name]) < 0.0025


def test_time_table_is_relative_to_nclql(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two updates and five actions are timed together.
    seen = {"nclql update": 8.0, "nclql act": 5.0, "lql update": 4.0, "lql act": 2.5}
    monkeypatch.setattr(times, "compile_pair", lambda *args: (None, None))
    monkeypatch.setattr(times.Timer, "run", lambda self, repeats: seen)
    nclql, lql = times.time_table(("nclql", "lql"), Spec(2, 1), rows=4)
    assert nclql == {"method": "NC-LQL", "ms_per_update": "4.0", "ms_per_action": "1.00",
                     "ratio": "1.000", "paper": "1.000"}  # fmt: skip
    assert (lql["ratio"], lql["paper"]) == ("0.500", "0.909")


def test_parameters_command_writes_and_prints_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["reproduce", "parameters", "--out", str(tmp_path)])
    with (tmp_path / "parameters.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"method": "NC-LQL", "critics": "475746", "policy": "0",
                       "total": "475746", "ratio": "1.000", "paper": "1.000"}  # fmt: skip
    assert "475746" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mujocco"], "did you mean mujoco"),
        (["parameters", "--scale", "0.1"], "has no runs to scale"),
        (["mujoco", "--scale", "7"], "at most 1"),
        (["mujoco", "--workers", "0"], "--workers from 1"),
    ],
)
def test_wrong_arguments_are_rejected(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["reproduce", *words])
    assert caught.value.code == 2 and message in capsys.readouterr().err
