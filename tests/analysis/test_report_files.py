"""A report writes what the runs can support, and says of the rest why it is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from folders import make_run, make_runs

from langevinrl.analysis.groups import group_runs
from langevinrl.analysis.records import find_runs
from langevinrl.analysis.report_files import write_report_files
from langevinrl.errors import UserError


def names(folder: Path, ending: str) -> set[str]:
    return {path.stem for path in folder.glob(f"*.{ending}")}


def test_a_whole_report(tmp_path: Path) -> None:
    make_runs(tmp_path / "runs", points=5, episodes=2, seeds=2)
    groups = group_runs(find_runs([tmp_path / "runs"]))
    assert write_report_files(groups, tmp_path / "out", formats=("svg",)) == []
    tables = {"final_returns", "paper_humanoid", "normalised", "aggregates", "improvement"}
    for ending in ("csv", "md", "tex"):
        assert names(tmp_path / "out" / "tables", ending) == tables
    figures = {f"curves_{x}" for x in ("iterations", "env_steps", "hours")}
    figures |= {f"aggregate_{x}" for x in ("progress", "env_steps", "hours")}
    figures |= {"aggregates", "profiles", "improvement"}
    assert {path.name for path in (tmp_path / "out" / "figures").iterdir()} == {
        f"{name}.svg" for name in figures
    }
    assert (tmp_path / "out" / "tidy.csv").exists()


def test_one_task_and_one_seed_are_said(tmp_path: Path) -> None:
    make_run(tmp_path / "a", points=3)
    make_run(tmp_path / "b", "sac", points=2, planned=3, seeds=(0, 1))
    groups = group_runs(find_runs([tmp_path]))
    notes = "\n".join(write_report_files(groups, tmp_path / "out", formats=()))
    assert "no aggregates over tasks: they need at least two tasks" in notes
    assert "SAC on Hopper-v4: 2 of 2 seeds were not evaluated at 100%" in notes
    assert "there is no interval: NC-LQL on Hopper-v4." in notes
    assert names(tmp_path / "out" / "tables", "md") == {"final_returns", "paper_humanoid"}


def test_one_method_many_settings_and_a_missing_clock_are_said(tmp_path: Path) -> None:
    for number in range(2):
        make_run(tmp_path / f"h{number}", points=2, batch_size=number, warmup=number, delay=number)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    rows = "agent,env,seed,iterations,return\nx,Hopper-v4,0,5,1\nx,Hopper-v4,0,9,1\n"
    (foreign / "evaluations.csv").write_text(rows)
    groups = group_runs(find_runs([tmp_path]))
    notes = "\n".join(write_report_files(groups, tmp_path / "out", formats=("svg",)))
    assert "no ablation figure of NC-LQL: 3 settings vary" in notes
    assert "Curves over hours lack x" in notes


def test_what_cannot_be_put_on_a_scale_is_said_and_versions_are_refused(tmp_path: Path) -> None:
    make_runs(tmp_path, tasks=("Hopper-v4", "Walker2d-v5"), points=2, episodes=1, seeds=2)
    groups = group_runs(find_runs([tmp_path]))
    notes = write_report_files(groups, tmp_path / "out", "random-to-best", formats=())
    assert any("no return of random actions on Walker2d-v5" in note for note in notes)
    make_run(tmp_path / "five", env="Hopper-v5", points=2)
    groups = group_runs(find_runs([tmp_path]))
    with pytest.raises(UserError, match="different tasks"):
        write_report_files(groups, tmp_path / "out", formats=())
    write_report_files(groups, tmp_path / "out", mix_versions=True, formats=())
    with pytest.raises(UserError, match="no evaluation"):
        write_report_files([], tmp_path / "out")


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "statistics.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    make_run(tmp_path / "runs" / "a", points=2)
    monkeypatch.chdir(tmp_path)
    found: dict[str, list[str]] = {}
    exec(code, found)
    assert len(found["notes"]) == 2 and (tmp_path / "report" / "figures").is_dir()
