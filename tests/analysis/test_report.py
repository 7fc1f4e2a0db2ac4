"""Files of a report, and notes on what is left out."""

from __future__ import annotations

from pathlib import Path

from folders import make_run, make_runs

from langevinrl.analysis.records import find_runs
from langevinrl.analysis.report import write_files
from langevinrl.analysis.summary import summarise


def names(folder: Path, suffix: str) -> set[str]:
    return {path.stem for path in folder.glob(f"*.{suffix}")}


def test_report_has_all_tables_and_figures_even_of_diverged_runs(tmp_path: Path) -> None:
    make_runs(tmp_path / "runs", points=2, episodes=2, seeds=2)
    folders = sorted((tmp_path / "runs").iterdir())
    for folder, odd in zip(folders, ("inf", "-inf", "nan", "1e308"), strict=False):
        text = (folder / "evaluations.csv").read_text()
        last = text.splitlines()[-1].split(",")[6]
        (folder / "evaluations.csv").write_text(text.replace(last, odd))
    summary = summarise(find_runs([tmp_path / "runs"]))
    assert write_files(summary, tmp_path / "out", formats=("svg",)) == []
    for suffix in ("csv", "md", "tex"):
        assert names(tmp_path / "out" / "tables", suffix) == {
            "final_returns", "normalised", "aggregates", "improvement",
        }  # fmt: skip
    assert names(tmp_path / "out" / "figures", "svg") == {
        "curves_iterations", "curves_env_steps", "curves_hours", "aggregate_progress",
        "aggregates", "profiles", "improvement",
    }  # fmt: skip
    assert (tmp_path / "out" / "tidy.csv").exists()


def test_one_task_and_one_seed_are_noted(tmp_path: Path) -> None:
    make_run(tmp_path / "a", points=3)
    make_run(tmp_path / "b", "sac", points=2, planned=3, seeds=(0, 1))
    notes = "\n".join(write_files(summarise(find_runs([tmp_path])), tmp_path / "out", formats=()))
    assert "no aggregates over tasks: they need at least two tasks" in notes
    assert "SAC on Hopper-v4: 2 of 2 seeds did not finish" in notes
    assert "There is no interval for curves of one seed: NC-LQL on Hopper-v4." in notes
    assert names(tmp_path / "out" / "tables", "md") == {"final_returns"}
    make_run(tmp_path / "c", env="Ant-v4", points=3)
    assert "only one has all tasks" in summarise(find_runs([tmp_path])).no_aggregates


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


def test_failed_normalisation_is_noted_and_versions_can_be_mixed(tmp_path: Path) -> None:
    make_runs(tmp_path, tasks=("Hopper-v4", "Hopper-v5"), points=2, episodes=1, seeds=2)
    summary = summarise(find_runs([tmp_path]), "random-to-best", mix_versions=True)
    assert "no return of random actions is known for Hopper-v5" in summary.no_aggregates
