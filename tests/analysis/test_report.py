"""Files of a report, and notes on what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from folders import make_run, make_runs

from langevinrl.analysis.records import find_runs
from langevinrl.analysis.report import write_files
from langevinrl.analysis.summary import summarise
from langevinrl.analysis.tables import safe_file_name
from langevinrl.errors import UserError


def names(folder: Path, suffix: str) -> set[str]:
    return {path.stem for path in folder.glob(f"*.{suffix}")}


def test_report_has_all_tables_and_figures(tmp_path: Path) -> None:
    make_runs(tmp_path / "runs", points=5, episodes=2, seeds=2)
    summary = summarise(find_runs([tmp_path / "runs"]))
    assert write_files(summary, tmp_path / "out", formats=("svg",)) == []
    for suffix in ("csv", "md", "tex"):
        assert names(tmp_path / "out" / "tables", suffix) == {
            "final_returns", "normalised", "aggregates", "improvement",
        }  # fmt: skip
    figures = {f"curves_{x}" for x in ("iterations", "env_steps", "hours")}
    figures |= {"aggregate_progress", "aggregates", "profiles", "improvement"}
    assert {path.name for path in (tmp_path / "out" / "figures").iterdir()} == {
        f"{name}.svg" for name in figures
    }
    assert (tmp_path / "out" / "tidy.csv").exists()


def test_agent_named_like_a_path_stays_in_the_report_folder(tmp_path: Path) -> None:
    for steps in (5, 10):
        make_run(tmp_path / f"runs/{steps}", "x/../../../up", points=2, num_steps=steps)
    write_files(summarise(find_runs([tmp_path / "runs"])), tmp_path / "a/b/out", formats=("svg",))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "runs"]
    assert list((tmp_path / "a/b/out/figures").glob("ablation_x-..-..-..-up-*.svg"))
    assert safe_file_name("ablation_sac") == "ablation_sac"
    assert safe_file_name("a/b") != safe_file_name("a-b") and safe_file_name("..") not in ("", "..")


def test_one_task_and_one_seed_are_noted(tmp_path: Path) -> None:
    make_run(tmp_path / "a", points=3)
    make_run(tmp_path / "b", "sac", points=2, planned=3, seeds=(0, 1))
    notes = "\n".join(write_files(summarise(find_runs([tmp_path])), tmp_path / "out", formats=()))
    assert "no aggregates over tasks: they need at least two tasks" in notes
    assert "SAC on Hopper-v4: 2 of 2 seeds did not finish" in notes
    assert "There is no interval for curves of one seed: NC-LQL on Hopper-v4." in notes
    assert names(tmp_path / "out" / "tables", "md") == {"final_returns"}


def test_many_settings_and_missing_times_are_noted(tmp_path: Path) -> None:
    for number in range(2):
        make_run(tmp_path / f"h{number}", points=2, batch_size=number, warmup=number, delay=number)
    (tmp_path / "foreign").mkdir()
    rows = "agent,env,seed,iterations,return\nx,Hopper-v4,0,5,1\nx,Hopper-v4,0,9,1\n"
    (tmp_path / "foreign" / "evaluations.csv").write_text(rows)
    summary = summarise(find_runs([tmp_path]))
    notes = "\n".join(write_files(summary, tmp_path / "out", formats=("svg",)))
    assert "no ablation figure of NC-LQL: 3 settings vary" in notes
    assert "Curves over hours lack x" in notes


def test_failed_normalisation_is_noted_and_mixed_versions_are_refused(tmp_path: Path) -> None:
    make_runs(tmp_path, tasks=("Hopper-v4", "Walker2d-v5"), points=2, episodes=1, seeds=2)
    summary = summarise(find_runs([tmp_path]), "random-to-best")
    assert "no return of random actions is known for Walker2d-v5" in summary.no_aggregates
    make_run(tmp_path / "five", env="Hopper-v5", points=2)
    with pytest.raises(UserError, match="different tasks"):
        summarise(find_runs([tmp_path]))
    assert summarise(find_runs([tmp_path]), mix_versions=True).groups
