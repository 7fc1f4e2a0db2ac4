"""Reports of folders with odd or hostile files: the bad run is named and left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from folders import make_run

from langevinrl import cli
from langevinrl.analysis.records import find_runs
from langevinrl.analysis.report import write_files, write_report
from langevinrl.analysis.summary import summarise
from langevinrl.analysis.tables import safe_file_name

BIG = 10**400
ODD_CONFIGS: dict[str, Any] = {
    "list": [1, 2],
    "null": None,
    "text": "nclql",
    "iterations text": {"iterations": "many"},
    "iterations list": {"iterations": [1]},
    "iterations negative": {"iterations": -5},
    "iterations huge": {"iterations": BIG},
    "iterations true": {"iterations": True},
    "agent list": {"agent": ["sac"]},
    "env null": {"env": None},
    "hyperparameters null": {"hyperparameters": None},
    "hyperparameters list": {"hyperparameters": [3]},
    "setting nan": {"hyperparameters": {"learning_rate": float("nan")}},
    "setting infinite": {"hyperparameters": {"learning_rate": float("inf")}},
    "setting huge": {"hyperparameters": {"num_steps": BIG}},
    "setting surrogate": {"hyperparameters": {"start": "\ud800"}},
    "warmup text": {"warmup": "a while"},
    "num_envs null": {"num_envs": None},
    "capacity list": {"capacity": []},
    "seeds text": {"seeds": "three"},
}
ODD_NAMES = ["x/../../../up$\\bad{$_\x1b[31m", "x" * 5_000]


@pytest.mark.parametrize("odd", ODD_CONFIGS.values(), ids=ODD_CONFIGS)
def test_run_with_an_odd_config_is_named_and_left_out(
    odd: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "good", points=2)
    path = make_run(tmp_path / "odd", points=2) / "config.json"
    config = {**json.loads(path.read_text()), **odd} if isinstance(odd, dict) else odd
    path.write_text(json.dumps(config))
    assert [record.status for record in find_runs([tmp_path])] == ["done", "unreadable"]
    out = tmp_path / "page.html"
    cli.main(["report", str(tmp_path), "--out", str(out), "--no-figures"])
    (note,) = [x for x in capsys.readouterr().out.splitlines() if "A run is left out" in x]
    assert "odd/config.json" in note and "cannot be read" in out.read_text()


@pytest.mark.parametrize("rows", ["1e999", "nan", "-1", str(BIG), "5.5", "", "\x00"])
@pytest.mark.parametrize("column", ["iterations", "env_steps", "return", "wall_seconds", "seed"])
def test_odd_evaluations_are_read_or_left_out(column: str, rows: str, tmp_path: Path) -> None:
    make_run(tmp_path / "good", points=2, seeds=(0, 1))
    path = make_run(tmp_path / "odd", "sac", points=2, episodes=1) / "evaluations.csv"
    header, first, *rest = path.read_text().splitlines()
    cells = first.split(",")
    cells[header.split(",").index(column)] = rows
    path.write_text("\n".join([header, ",".join(cells), *rest]) + "\n")
    write_report([str(tmp_path)], str(tmp_path / "page.html"), figures=False)


def test_odd_names_are_drawn_literally_inside_the_report_folder(tmp_path: Path) -> None:
    for number, name in enumerate(ODD_NAMES):
        for start in ("$x^$", "y"):
            folder = tmp_path / "runs" / f"{number}{start}"
            make_run(folder, name, f"{ODD_NAMES[0]}-v4", points=1, episodes=1, start=start)
    out = tmp_path / "a" / "b" / "out"
    notes = write_files(summarise(find_runs([tmp_path / "runs"])), out, formats=("svg",))
    assert not any("\x1b" in note or len(note) > 1_000 for note in notes)
    figures = [path.name for path in (out / "figures").glob("ablation_*")]
    assert len(figures) == len(ODD_NAMES) and all(len(name) < 150 for name in figures)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "runs"]
    assert safe_file_name("ablation_sac") == "ablation_sac"
    assert safe_file_name("a/b") != safe_file_name("a-b") and safe_file_name("..") not in ("", "..")


def test_odd_tables_and_sweeps_beside_runs_are_left_out(tmp_path: Path) -> None:
    make_run(tmp_path / "good", points=2)
    (tmp_path / "parameters.csv").write_bytes(b"\xff\x00\x01,\n")
    (tmp_path / "secret").write_text("root:x\n")
    (tmp_path / "time.csv").symlink_to(tmp_path / "secret")
    outside = ({"id": "../a", "folder": "jobs/a"}, {"id": "a", "folder": "../good"})
    for number, jobs in enumerate(("x", [1], *([job] for job in outside))):
        sweep = tmp_path / f"sweep-{number}"
        sweep.mkdir()
        (sweep / "sweep.json").write_text(json.dumps({"jobs": jobs}))
    notes = write_report([tmp_path], tmp_path / "page.html", figures=False)
    assert sum("A run is left out" in note for note in notes) == 4
    assert "root:x" not in (tmp_path / "page.html").read_text()


def test_plot_names_a_run_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "good", points=2)
    (make_run(tmp_path / "odd", points=2) / "config.json").write_text("[]")
    cli.main(["plot", str(tmp_path), "--out", str(tmp_path / "curves.svg")])
    assert "A run is left out" in capsys.readouterr().err
    (tmp_path / "good" / "config.json").write_text("[]")
    with pytest.raises(SystemExit):
        cli.main(["plot", str(tmp_path), "--out", str(tmp_path / "curves.svg")])
