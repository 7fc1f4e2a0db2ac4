"""The page's document and file: numbers, words, missing parts and hostile names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import make_run

from langevinrl import cli
from langevinrl.analysis.groups import group_runs
from langevinrl.analysis.page import ROOM, SCRIPTS, render_page
from langevinrl.analysis.page.document import page_document, plain
from langevinrl.analysis.page.overview import describe_budget, sort_tasks
from langevinrl.analysis.records import find_runs
from langevinrl.analysis.summary import summarise

HOSTILE = '</script><img src=x onerror="window.hacked=1"><!--<script>/*SCRIPT*/ /*STYLE*/ /*DATA*/'

LIGHT = [
    "langevinrl", "langevinrl.cli", "langevinrl.cli.train", "langevinrl.registry",
    "langevinrl.storage.folder", "langevinrl.runs.config", "langevinrl.analysis",
    "langevinrl.envs.vector",
]  # fmt: skip


def document_of(*folders: Path) -> dict[str, Any]:
    document = page_document(summarise(find_runs(folders)), folders)
    return dict(json.loads(json.dumps(document, allow_nan=False)))


def embedded(page: str) -> dict[str, Any]:
    """Return the data as a browser reads them: up to the end of the script element."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def test_curves_hold_every_seed_and_share_their_grids(tmp_path: Path) -> None:
    make_run(tmp_path / "a", "lql", "Hopper-v4", [0, 1], points=4, every=25)
    make_run(tmp_path / "b", "nclql", "Hopper-v4", [3], points=4, every=25)
    document = document_of(tmp_path)
    assert [method["label"] for method in document["methods"]] == ["NC-LQL", "LQL"]
    assert document["grids"] == [[25, 50, 75, 100], [125, 250, 375, 500]]
    nclql, lql = document["curves"]
    assert [one["seed"] for one in lql["series"]] == [0, 1]
    assert [one["seed"] for one in nclql["series"]] == [3]
    assert all(len(one["r"]) == len(one["h"]) == 4 for one in lql["series"])


def test_numbers_are_rounded_and_null_if_not_finite() -> None:
    values = (1234.5678, np.float64(0.000123456), float("nan"), np.array([np.inf, 2]), 123456)
    assert plain(values) == [1234.6, 0.00012346, None, [None, 2], 123456]


def test_tasks_are_in_the_papers_order_then_by_name() -> None:
    tasks = ["HalfCheetah-v4", "Ant-v4", "Apple-v0", "Zebra-v0"]
    assert sort_tasks(sorted(tasks)) == tasks


@pytest.mark.parametrize(
    ("env", "seeds", "words"),
    [
        ("Hopper-v4", 1, "Runs have 1 % of the paper's length. With one seed, the variation"),
        ("Hopper-v4", 3, "Runs have 1 % of the paper's length. Gaps about as wide as the bands"),
        ("Pendulum-v1", 2, "The paper has no result for some of these tasks. Gaps"),
    ],
)
def test_budget_names_length_and_few_seeds(
    env: str, seeds: int, words: str, tmp_path: Path
) -> None:
    make_run(tmp_path / "a", "lql", env, range(seeds), points=2, every=5_000)
    assert describe_budget(group_runs(find_runs([tmp_path]))).startswith(words)


def test_runs_have_status_configuration_and_version(tmp_path: Path) -> None:
    make_run(tmp_path / "a", "lql", "Hopper-v4", [0], points=2)
    make_run(
        tmp_path / "b", "lql", "Hopper-v4", [1], points=1, planned=2, batch_size=9, dirty=True,
        commit="f00dfeed99",
    )  # fmt: skip
    document = document_of(tmp_path)
    first, second = document["runs"]
    assert (first["folder"], first["status"], first["dirty"]) == ("a", "done", False)
    assert (second["folder"], second["status"], second["dirty"]) == ("b", "cut", True)
    assert (second["reached"], second["planned"]) == (100, 200)
    assert first["config"]["batch_size"] == 128 and second["config"]["batch_size"] == 9
    assert first["config"]["learning_rate"] == 1e-4
    assert document["versions"] == ["0.1.0 (0000000)", "0.1.0 (f00dfee)"]


def test_tables_beside_the_runs_are_shown_unchanged(tmp_path: Path) -> None:
    make_run(tmp_path / "a", "lql", "Hopper-v4", points=2)
    (tmp_path / "time.csv").write_text("method,ms_per_update,ratio,paper\nLQL,44.10,0.9,\n")
    (extra,) = document_of(tmp_path)["extras"]
    assert extra["kind"] == "time" and extra["rows"] == [["LQL", "44.10", "0.9", ""]]


def test_hostile_name_stays_data(tmp_path: Path) -> None:
    make_run(tmp_path / "a", "lql", HOSTILE, points=2, note=HOSTILE)
    page = render_page(document_of(tmp_path))
    assert HOSTILE not in page and "<img" not in page
    assert embedded(page)["tasks"] == [HOSTILE]


def test_page_loads_nothing_and_its_scripts_are_short() -> None:
    page = render_page({})
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in page and "eval(" not in page
    assert {path.stem for path in ROOM.glob("*.js")} == set(SCRIPTS)
    for path in ROOM.glob("*.js"):
        assert len(path.read_text().splitlines()) <= 300, path


# ---- the command ----


def fails(*words: str) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["report", *words])
    assert stop.value.code == 2


def test_command_writes_a_page_and_tables_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "runs" / "a", "lql", "Hopper-v4", [0, 1], points=4, every=25)
    out = tmp_path / "new" / "mine.html"
    cli.main(["report", str(tmp_path / "runs"), "--out", str(out), "--no-figures"])
    assert embedded(out.read_text())["title"] == "LQL on Hopper-v4"
    assert list((out.parent / "mine_files" / "tables").glob("*.csv"))
    assert not (out.parent / "mine_files" / "figures").exists()
    assert capsys.readouterr().out.splitlines()[0] == str(out)


def test_default_page_is_in_the_folder_and_replaces_only_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "a", points=1)
    make_run(tmp_path / "b", points=1)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the same report may be written again
        cli.main(["report", "a", "--no-figures"])
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}
    page = tmp_path / "a" / "report.html"
    before = page.read_text()
    fails("b", "--out", "a/report.html", "--no-figures")
    assert "--overwrite" in capsys.readouterr().err and page.read_text() == before
    cli.main(["report", "b", "--out", "a/report.html", "--no-figures", "--overwrite"])
    assert page.read_text() != before
    cli.main(["report", "a", "b", "--no-figures"])
    assert (tmp_path / "report.html").exists()


def test_links_in_the_folder_are_replaced_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim, run = tmp_path / "victim", make_run(tmp_path / "run", seeds=(0, 1), points=1)
    victim.mkdir()
    (victim / "file").write_text("mine")
    (run / "report.html").symlink_to(victim / "file")
    for name in ("tidy.csv", "tables/final_returns.md", "figures/curves_hours.png"):
        link = run / "report_files" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(victim / "file")
    cli.main(["report", str(run), "--overwrite"])
    assert (victim / "file").read_text() == "mine" and not (run / "report.html").is_symlink()
    shutil.rmtree(run / "report_files" / "figures")
    (run / "report_files" / "figures").symlink_to(victim)
    fails(str(run))
    assert "is a link" in capsys.readouterr().err and len(list(victim.iterdir())) == 1


def test_runs_without_evaluations_make_a_page(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a", "lql", "Hopper-v4", points=2)
    (folder / "evaluations.csv").unlink()
    cli.main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")])
    document = embedded((tmp_path / "page.html").read_text())
    assert document["runs"][0]["status"] == "none" and document["curves"] == []
    assert not (tmp_path / "page_files").exists()


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "a", "lql", "Hopper-v4", points=2)
    make_run(tmp_path / "b", "lql", "Hopper-v5", points=2)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    page, run = str(tmp_path / "page.html"), str(tmp_path / "a")
    for words, message in [
        ([], "at least one folder"),
        ([str(tmp_path / "nowhere"), "--out", page], "is not a folder"),
        ([str(tmp_path / "empty"), "--out", page], "no run in"),
        ([run, "--out", str(tmp_path)], "is a folder"),
        ([run, "--out", str(tmp_path / "page.pdf")], ".html"),
        ([run, "--out", str(tmp_path / "file" / "page.html")], "cannot write"),
        ([run, "--out", "/proc/new/page.html", "--no-figures"], "cannot write"),
        ([str(tmp_path), "--out", page], "--mix-versions"),
        ([run, "--out", page, "--normalise", "max"], "min-max"),
    ]:
        fails(*words)
        assert message in capsys.readouterr().err
    assert not Path(page).exists()


def test_report_needs_no_jax_and_without_figures_no_matplotlib(tmp_path: Path) -> None:
    """The command line must also answer at once, so light modules do not load JAX."""
    make_run(tmp_path / "a", "lql", "Hopper-v4", [0, 1], points=4, every=25)
    words = ["report", str(tmp_path), "--out", str(tmp_path / "page.html"), "--no-figures"]
    check = (
        f"import sys, {', '.join(LIGHT)}; langevinrl.cli.main({words}); "
        "sys.exit(bool({'jax', 'matplotlib'} & sys.modules.keys()))"
    )
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)
