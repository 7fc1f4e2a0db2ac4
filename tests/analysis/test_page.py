"""The report's document and its file: numbers, words, what is absent, and names that bite."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from report_folders import write_run

from langevinrl import cli
from langevinrl.analysis.groups import group_runs
from langevinrl.analysis.page import ROOM, SCRIPTS, render_page
from langevinrl.analysis.page.budget import describe_budget
from langevinrl.analysis.page.data import page_document
from langevinrl.analysis.page.rounding import rounded
from langevinrl.analysis.page.summary import summarise
from langevinrl.analysis.paper import ITERATIONS
from langevinrl.analysis.records import find_runs
from langevinrl.runs.config import PAPER_ITERATIONS

HOSTILE = '</script><img src=x onerror="window.hacked=1"><!--<script>'


def document_of(*folders: Path) -> dict[str, Any]:
    records = find_runs(folders)
    groups = group_runs(records)
    document = page_document(records, groups, summarise(groups), folders)
    return dict(json.loads(json.dumps(document, allow_nan=False)))


def embedded(page: str) -> dict[str, Any]:
    """The data as a browser reads them: up to the first end of the script element."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def test_curves_hold_every_seed_and_share_their_grids(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lql", "Hopper-v4", [0, 1], points=4, length=100)
    write_run(tmp_path / "b", "nclql", "Hopper-v4", [3], points=4, length=100)
    document = document_of(tmp_path)
    assert [method["label"] for method in document["methods"]] == ["NC-LQL", "LQL"]
    assert document["grids"] == [[25, 50, 75, 100], [125, 250, 375, 500]]
    nclql, lql = document["curves"]
    assert [one["seed"] for one in lql["series"]] == [0, 1]
    assert [one["seed"] for one in nclql["series"]] == [3]
    assert all(len(one["r"]) == len(one["h"]) == 4 for one in lql["series"])


def test_numbers_are_short_and_what_is_not_finite_is_null() -> None:
    assert rounded([1234.5678, 0.000123456, float("nan"), float("inf"), 2.0], 5) == [
        1234.6, 0.00012346, None, None, 2,
    ]  # fmt: skip


def test_tasks_come_in_the_papers_order_then_by_name(tmp_path: Path) -> None:
    for env in ("Zebra-v0", "Ant-v4", "Apple-v0", "HalfCheetah-v4"):
        write_run(tmp_path / env, "lql", env, points=2, length=100)
    tasks = document_of(tmp_path)["tasks"]
    assert [task["name"] for task in tasks] == ["HalfCheetah-v4", "Ant-v4", "Apple-v0", "Zebra-v0"]
    assert [task["paper"] for task in tasks] == [1_000_000, 1_000_000, None, None]


def test_the_papers_lengths_are_those_that_runs_use() -> None:
    assert ITERATIONS == PAPER_ITERATIONS


@pytest.mark.parametrize(
    ("seeds", "length", "words"),
    [
        (1, 10_000, ["one seed", "1 % of the paper's length", "not which of two is better"]),
        (3, 1_000_000, ["3 seeds", "full training length", "may be chance", "held against"]),
        (5, 1_000, ["5 seeds", "0.1 %", "unlikely to be chance", "neither confirm nor refute"]),
    ],
)
def test_the_budget_in_words(seeds: int, length: int, words: list[str], tmp_path: Path) -> None:
    write_run(tmp_path, "lql", "Hopper-v4", range(seeds), points=2, length=length)
    said = describe_budget(group_runs(find_runs([tmp_path])))
    assert all(word in said for word in words), said


def test_the_budget_on_a_task_that_the_paper_lacks(tmp_path: Path) -> None:
    write_run(tmp_path, "lql", "Pendulum-v1", [0, 1], points=2, length=100)
    said = describe_budget(group_runs(find_runs([tmp_path])))
    assert "The paper reports no result" in said and "of the paper's length" not in said


def test_runs_keep_only_the_fields_that_are_not_shared(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lql", "Hopper-v4", [0], points=2, length=100)
    write_run(tmp_path / "b", "lql", "Hopper-v4", [1], points=2, length=100, stop=0.5, batch_size=9,
              versions={"commit": "f00dfeed99", "dirty": True})  # fmt: skip
    document = document_of(tmp_path)
    first, second = document["runs"]
    assert (first["folder"], first["status"], first["dirty"]) == ("a", "done", False)
    assert (second["folder"], second["status"], second["dirty"]) == ("b", "cut", True)
    assert (second["reached"], second["planned"]) == (50, 100)
    assert first["config"]["batch_size"] == 256 and second["config"]["batch_size"] == 9
    assert "gamma" not in first["config"] and document["shared"]["gamma"] == 0.99
    assert document["versions"] == ["0.1.0 (abc1234)", "0.1.0 (f00dfee)"]


def test_one_task_or_one_method_says_why_there_is_no_aggregate(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lql", "Hopper-v4", [0, 1], points=2, length=100)
    write_run(tmp_path / "b", "sac", "Hopper-v4", [0, 1], points=2, length=100)
    assert "two tasks" in document_of(tmp_path)["summary"]["absent"]
    write_run(tmp_path / "c", "lql", "Ant-v4", [0, 1], points=2, length=100)
    assert "only one has all tasks" in document_of(tmp_path)["summary"]["absent"]


def test_the_summary_is_of_scores_times_a_hundred(tmp_path: Path) -> None:
    for agent in ("lql", "nclql"):
        for env in ("Hopper-v4", "Ant-v4"):
            write_run(tmp_path / f"{agent}{env}", agent, env, [0, 1], points=10, length=100)
    summary = document_of(tmp_path)["summary"]
    assert [row["method"] for row in summary["table"]["rows"]] == [0, 1]
    assert summary["table"]["paper"]["0"]["values"][-1] == 95.5
    assert "nine tasks are not those here" in summary["table"]["note"]
    assert [metric["name"] for metric in summary["metrics"]["list"]] == [
        "Mean", "Median", "Interquartile mean", "Optimality gap",
    ]  # fmt: skip
    means = summary["metrics"]["list"][0]["rows"]
    assert all(10 < row["low"] <= row["value"] <= row["high"] < 150 for row in means)
    assert means[0]["value"] == summary["table"]["rows"][0]["values"][-1]
    there, back = summary["improvement"]["rows"]
    assert there["p"] + back["p"] == pytest.approx(1)
    assert there["low"] == pytest.approx(1 - back["high"], abs=1e-3)
    for row in summary["profiles"]["rows"]:
        assert row["share"] == sorted(row["share"], reverse=True)


def test_tables_beside_the_runs_are_taken_as_they_are(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lql", "Hopper-v4", points=2, length=100)
    (tmp_path / "time.csv").write_text("method,ms_per_update,ratio,paper\nLQL,44.10,0.9,\n")
    (extra,) = document_of(tmp_path)["extras"]
    assert extra["kind"] == "time" and extra["rows"] == [["LQL", "44.10", "0.9", ""]]


def test_a_hostile_name_stays_data(tmp_path: Path) -> None:
    write_run(tmp_path, "lql", HOSTILE, points=2, length=100, out=HOSTILE,
              hyperparameters={"note": HOSTILE})  # fmt: skip
    page = render_page(document_of(tmp_path))
    assert HOSTILE not in page and "<img" not in page
    assert embedded(page)["tasks"][0]["name"] == HOSTILE


def test_data_that_look_like_a_place_in_the_template_are_left_alone() -> None:
    page = render_page({"title": "/*SCRIPT*/ /*STYLE*/ /*DATA*/"})
    assert embedded(page)["title"] == "/*SCRIPT*/ /*STYLE*/ /*DATA*/"


def test_the_page_needs_nothing_from_outside_and_its_scripts_are_short() -> None:
    page = render_page({})
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in page and "eval(" not in page
    assert {path.stem for path in ROOM.glob("*.js")} == set(SCRIPTS)
    for path in ROOM.glob("*.js"):
        assert len(path.read_text().splitlines()) <= 300, path


# ---- the verb ----


def fails(*words: str) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["report", *words])
    assert stop.value.code == 2


def test_the_verb_writes_a_page_and_tables_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "runs" / "a", "lql", "Hopper-v4", [0, 1], points=4, length=100)
    out = tmp_path / "new" / "mine.html"
    cli.main(["report", str(tmp_path / "runs"), "--out", str(out), "--no-figures"])
    assert embedded(out.read_text())["title"] == "LQL on Hopper-v4"
    assert list((out.parent / "mine_files" / "tables").glob("*.csv"))
    assert not (out.parent / "mine_files" / "figures").exists()
    assert capsys.readouterr().out.splitlines()[0] == str(out)


def test_runs_without_an_evaluation_make_a_page_of_their_own(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", "lql", "Hopper-v4", points=2, length=100)
    (folder / "evaluations.csv").unlink()
    cli.main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")])
    document = embedded((tmp_path / "page.html").read_text())
    assert document["runs"][0]["status"] == "none" and document["curves"] == []
    assert not (tmp_path / "page_files").exists()


def test_slips_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "a", "lql", "Hopper-v4", points=2, length=100)
    write_run(tmp_path / "b", "lql", "Hopper-v5", points=2, length=100)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    page, run = str(tmp_path / "page.html"), str(tmp_path / "a")
    for words, said in [
        ([], "at least one folder"),
        ([str(tmp_path / "nowhere"), "--out", page], "is not a folder"),
        ([str(tmp_path / "empty"), "--out", page], "no run in"),
        ([run, "--out", str(tmp_path)], "is a folder"),
        ([run, "--out", str(tmp_path / "page.pdf")], ".html"),
        ([run, "--out", str(tmp_path / "file" / "page.html")], "is a file, not a folder"),
        ([str(tmp_path), "--out", page], "--mix-versions"),
        ([run, "--out", page, "--normalise", "max"], "min-max"),
    ]:
        fails(*words)
        assert said in capsys.readouterr().err
    assert not Path(page).exists()


def test_a_report_needs_no_jax_and_without_figures_no_matplotlib(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lql", "Hopper-v4", [0, 1], points=4, length=100)
    words = ["report", str(tmp_path), "--out", str(tmp_path / "page.html"), "--no-figures"]
    check = (
        f"import sys; from langevinrl import cli; cli.main({words}); "
        "sys.exit(bool({'jax', 'matplotlib'} & sys.modules.keys()))"
    )
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)
