"""Run folders, sweeps and evaluations of other programs are found, read and grouped."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from folders import make_run, make_runs, make_sweep

from langevinrl.analysis.evaluations import read_evaluations
from langevinrl.analysis.groups import choose_colours, group_runs
from langevinrl.analysis.records import find_runs
from langevinrl.analysis.report import write_report
from langevinrl.errors import UserError
from langevinrl.registry import colour_of

HEADER = "agent,env,seed,iterations,env_steps,episode,return,length,wall_seconds\n"


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "evaluations.csv").write_text(text)
    return folder


def test_curve_of_a_seed_is_the_mean_over_episodes(tmp_path: Path) -> None:
    rows = [
        "lql,Hopper-v4,4,20,100,0,3,9,7200", "lql,Hopper-v4,4,20,100,1,5,9,7200",
        "lql,Hopper-v4,5,10,50,0,0,9,3600", "lql,Hopper-v4,4,10,50,0,1,9,3600",
        "lql,Hopper-v4,4,10,50,1,2,9,3600",
    ]  # fmt: skip
    write(tmp_path, HEADER + "\n".join(rows) + "\nlql,Hopper-v4,4,30,150,0,-1")  # half a line
    found = read_evaluations(tmp_path / "evaluations.csv")
    assert list(found) == [("lql", "Hopper-v4")]
    four, five = found["lql", "Hopper-v4"]
    assert (four.seed, five.seed) == (4, 5)
    assert four.iterations.tolist() == [10, 20] and four.env_steps.tolist() == [50, 100]
    assert four.returns.tolist() == [1.5, 4.0] and four.hours.tolist() == [1.0, 2.0]
    assert five.iterations.tolist() == [10] and five.returns.tolist() == [0.0]


def test_folder_without_config_and_with_fewer_columns_is_read(tmp_path: Path) -> None:
    write(
        tmp_path, "agent,env,seed,iterations,return\nx,A-v4,one,5,1\nx,A-v4,two,5,2\nx,B-v4,one,5,3"
    )
    first, second = find_runs([tmp_path])
    assert (first.agent, first.env, first.config) == ("x", "A-v4", {})
    assert (second.env, second.status) == ("B-v4", "done")
    assert [one.seed for one in first.series] == [0, 1]
    assert first.series[0].env_steps.tolist() == [-1] and np.isnan(first.series[0].hours).all()
    assert not first.dirty


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no column return"):
        find_runs([write(tmp_path / "a", "agent,env,seed,iterations\n")])
    with pytest.raises(UserError, match=r"evaluations.csv: .*'high'"):
        find_runs([write(tmp_path / "b", HEADER + "lql,A-v4,0,1,5,0,high,9,1\n")])
    with pytest.raises(UserError, match="nowhere is not a folder"):
        find_runs([tmp_path / "nowhere"])
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(UserError, match=r"no run in .*c: looked there and below"):
        find_runs([tmp_path / "c"])


def test_runs_below_a_folder_are_found_once(tmp_path: Path) -> None:
    make_runs(tmp_path / "deep" / "er", points=2, episodes=2, seeds=1)
    make_run(tmp_path / "alone", points=2, planned=3, seeds=(3, 4), dirty=True)
    make_run(tmp_path / "begun", points=0)
    hidden = make_run(tmp_path / "alone" / "checkpoints" / "not-a-run", points=2)
    (tmp_path / "alone" / "resumes.jsonl").write_text("{}\n{}\n")
    records = {r.folder.name: r for r in find_runs([tmp_path, tmp_path / "alone"])}
    assert len(records) == 6 and hidden.name not in records
    alone, begun = records["alone"], records["begun"]
    assert (alone.status, alone.resumes, alone.dirty) == ("cut", 2, True)
    assert [one.seed for one in alone.series] == [3, 4]
    assert (begun.status, begun.series, begun.agent) == ("none", [], "nclql")
    assert records["lql-Hopper-v4-0"].status == "done"


def test_failed_jobs_of_a_sweep_have_their_error(tmp_path: Path) -> None:
    records = find_runs([make_sweep(tmp_path / "sweep")])
    assert [record.status for record in records] == ["done", "failed", "cut", "none"]
    assert [record.error for record in records] == ["", "RuntimeError: out of memory again", "", ""]
    assert [len(group.series) for group in group_runs(records)] == [3]
    assert len(find_runs([tmp_path])) == 4  # found from above as well


def test_runs_that_differ_in_fields_without_effect_are_one_group(tmp_path: Path) -> None:
    make_run(tmp_path / "a", seeds=(0, 1), points=4, capacity=50_000)
    make_run(tmp_path / "b", seeds=(2,), points=3, log_every=7, eval_every=9)
    for seed, timeout, reaction in ((4, 9.0, "stop"), (5, 1.0, "reset")):
        own = {"env_timeout": timeout, "on_env_error": reaction}
        make_run(tmp_path / f"seed{seed}", seeds=(seed,), points=3, **own)
    older = make_run(tmp_path / "c", seeds=(3,), points=4, learning_rate=1e-4)
    text = (older / "config.json").read_text()
    (older / "config.json").write_text(text.replace('    "learning_rate": 0.0001,\n', ""))
    (group,) = group_runs(find_runs([tmp_path]))
    assert (group.label, group.settings, group.colour) == ("NC-LQL", {}, colour_of("nclql"))
    assert [one.seed for one in group.series] == [0, 1, 2, 3, 4, 5] and len(group.runs) == 5


def test_settings_that_vary_on_a_task_make_separate_curves(tmp_path: Path) -> None:
    for w in (500.0, 100.0):
        make_run(tmp_path / f"w{w}", points=2, inverse_temperature=w, hidden=[64, 64])
    make_run(tmp_path / "lql", "lql", points=2, inverse_temperature=7.0)
    make_run(tmp_path / "other", "lql", "Ant-v4", points=2, inverse_temperature=9.0)
    make_run(tmp_path / "small", "sac", points=2, capacity=1_100)
    make_run(tmp_path / "large", "sac", points=2)
    groups = group_runs(find_runs([tmp_path]))
    assert [(g.label, g.task) for g in groups] == [
        ("NC-LQL, inverse_temperature 100", "Hopper"),
        ("NC-LQL, inverse_temperature 500", "Hopper"),
        ("LQL", "Ant"),  # another value on another task is the method's setting there
        ("LQL", "Hopper"),
        ("SAC, capacity 1100", "Hopper"),
        ("SAC, capacity all", "Hopper"),
    ]
    assert groups[0].settings == {"inverse_temperature": 100.0}
    assert groups[2].colour == groups[3].colour == colour_of("lql")
    assert len({group.colour for group in groups}) == 5


def test_runs_of_unknown_settings_are_a_separate_curve(tmp_path: Path) -> None:
    make_run(tmp_path / "ours", points=2)
    write(tmp_path / "theirs", HEADER + "nclql,Hopper-v4,0,1,5,0,1,9,1\n")
    labels = [group.label for group in group_runs(find_runs([tmp_path]))]
    assert labels == ["NC-LQL", "NC-LQL, config none"]


def test_forty_settings_have_forty_colours() -> None:
    colours = choose_colours([(f"LQL, batch_size {number}", "lql") for number in range(40)])
    assert len(set(colours.values())) == 40


def test_real_run_is_read(tiny_run: Path) -> None:
    (record,) = find_runs([tiny_run])
    assert (record.agent, record.env) == ("nclql", "toys:wide")
    assert record.status == "done"
    assert [one.iterations.tolist() for one in record.series] == [[4, 8], [4, 8]]
    # Seven rewards of one plus an action in [-2, 2].
    assert all((abs(one.returns - 7) <= 14).all() for one in record.series)


def test_runs_of_older_versions_are_read() -> None:
    results = Path(__file__).parents[2] / "results"
    found = find_runs([results])
    folders = {path.parent for path in results.rglob("evaluations.csv")}
    assert len(folders) > 50 and {record.folder for record in found} == folders
    assert {record.status for record in found} <= {"done", "cut"}


def test_changed_log_is_named(tiny_run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    (record,) = find_runs([folder])
    assert record.changed_logs == ()
    text = (folder / "evaluations.csv").read_text()
    total = text.splitlines()[-1].split(",")[6]
    (folder / "evaluations.csv").write_text(text.replace(total, "9" * len(total)))
    notes = write_report([folder], tmp_path / "page.html", figures=False)
    assert any("not what the run wrote" in n and "run: evaluations.csv" in n for n in notes)
    assert '"changed":["evaluations.csv"]' in (tmp_path / "page.html").read_text()
