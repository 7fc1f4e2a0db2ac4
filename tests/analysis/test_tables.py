"""Tables in three formats, and the tables of a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from folders import make_run, make_runs

from langevinrl.analysis import paper, report_tables, tables
from langevinrl.analysis.aggregates import Aggregates
from langevinrl.analysis.groups import group_runs
from langevinrl.analysis.page.document import page_document, plain
from langevinrl.analysis.records import find_runs
from langevinrl.analysis.statistics import AGGREGATES
from langevinrl.analysis.summary import Summary, summarise
from langevinrl.analysis.tables import Table, read_csv, with_interval, write_csv, write_table

FINALS = {"nclql": 1_000.0, "sac": 500.0, "elsewhere": 200.0}


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    root = tmp_path_factory.mktemp("tables")
    make_runs(root, FINALS, tasks=("Ant-v4", "Hopper-v4"), seeds=3, points=10, episodes=3)
    return summarise(find_runs([root]))


@pytest.fixture(scope="module")
def aggregates(summary: Summary) -> Aggregates:
    assert summary.aggregates is not None
    return summary.aggregates


def test_table_is_written_in_three_formats(tmp_path: Path) -> None:
    rows = [{"method": "a_b & 50%", "return": 1234.5678, "low": float("nan")}]
    write_table(Table("table", "A caption.", rows, rows), tmp_path / "new")
    assert read_csv(tmp_path / "new" / "table.csv")[0]["return"] == "1234.57"
    lines = (tmp_path / "new" / "table.md").read_text().splitlines()
    assert lines[0] == "A caption." and lines[-1] == "| a_b &amp; 50% | 1235 |  |"
    text = (tmp_path / "new" / "table.tex").read_text()
    assert r"a\_b \& 50\% & 1235 &  \\" in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert r"\begin{tabular}{lrr}" in text and r"\caption{A caption.}" in text


def test_special_characters_are_escaped() -> None:
    text = tables.markdown([{"x|y": "a|b\n<img src=x>"}], "<b> ![i](http://x)")
    assert text.splitlines()[0] == r"&lt;b&gt; !\[i\](http://x)"
    assert r"| x\|y |" in text and r"| a\|b &lt;img src=x&gt; |" in text
    assert r"\textbackslash{}\{1 $\pm$ 2\}" in tables.latex([{"x": "\\{1 ± 2}"}], "")


def test_text_that_looks_like_a_formula_is_neutralised_in_csv(tmp_path: Path) -> None:
    texts = ["=cmd()", "+1+1", "-2*3", "@SUM(A1)", "\t=1", "plain"]
    write_csv(
        tmp_path / "a.csv", [{"text": text, "number": -1.5, "shown": "-1.5"} for text in texts]
    )
    rows = read_csv(tmp_path / "a.csv")
    assert [row["text"] for row in rows] == [f"'{text}" for text in texts[:-1]] + ["plain"]
    assert {(row["number"], row["shown"]) for row in rows} == {("-1.5", "-1.5")}


def test_missing_intervals_are_left_out() -> None:
    nan = float("nan")
    assert with_interval((1.26, 1.0, 2.04), digits=1) == "1.3 (1.0 to 2.0)"
    assert with_interval((1.26, nan, nan), digits=1) == "1.3"
    assert with_interval((nan, nan, nan), digits=1) == "–"


def test_final_returns_are_those_of_the_last_evaluation(summary: Summary) -> None:
    table = report_tables.final_table(summary.finals)
    assert [(row["env"], row["method"]) for row in table.rows[:2]] == [
        ("Ant-v4", "NC-LQL"),
        ("Ant-v4", "SAC"),
    ]
    first = table.rows[0]
    last = [one.returns[-1] for one in summary.groups[0].series]
    assert first["return"] == pytest.approx(np.mean(last)) and first["seeds"] == 3
    assert first["lowest"] <= first["low"] < first["return"] < first["high"] <= first["highest"]
    assert first["spread"] == pytest.approx(np.std(last, ddof=1))


def test_normalised_table_shows_the_papers_numbers(aggregates: Aggregates) -> None:
    table = report_tables.normalised_table(aggregates)
    first, second, third = table.printed
    assert list(first)[:7] == ["method", "0.2", "0.4", "0.6", "0.8", "1.0", "paper 0.2"]
    assert first["paper 1.0"] == "95.5 ± 2.0" and second["paper 0.2"] == "46.1"
    assert third["method"] == "elsewhere" and third["paper 1.0"] == ""
    assert float(first["0.2"]) < float(first["0.8"]) and " to " in first["1.0"]
    assert table.rows[0]["1.0"] == pytest.approx(100, abs=8)  # the best method at its best
    assert "does not define its normalisation" in table.caption and "Ant " in table.caption


def test_aggregates_and_improvements_order_the_methods(aggregates: Aggregates) -> None:
    rows = report_tables.aggregate_table(aggregates).rows
    assert [row["IQM"] for row in rows] == sorted((row["IQM"] for row in rows), reverse=True)
    assert rows[0]["optimality gap"] < rows[1]["optimality gap"]
    assert rows[0]["seeds"] == "3" and rows[0]["mean low"] < rows[0]["mean"]
    table = report_tables.improvement_table(aggregates).rows
    wins = {(row["method"], row["over"]): row["probability"] for row in table}
    assert wins["NC-LQL", "SAC"] == 1.0 and wins["SAC", "NC-LQL"] == 0.0 and len(wins) == 6


def test_page_and_tables_show_the_same_numbers(summary: Summary) -> None:
    page = page_document(summary)
    finals, normalised, aggregates, improvement = report_tables.report_tables(summary)
    shown = {(page["methods"][c["method"]]["label"], page["tasks"][c["task"]]): c
             for c in page["finals"]}  # fmt: skip
    for row in finals.rows:
        cell = shown.pop((row["method"], row["env"]))
        assert (cell["seeds"], cell["mean"]) == (row["seeds"], plain(row["return"]))
        assert cell["sd"] == plain(row["spread"])
    assert not shown
    found = page["aggregates"]
    for method, row, along in zip(found["methods"], aggregates.rows, normalised.rows, strict=True):
        for name in AGGREGATES:
            numbers = [row[name], row[f"{name} low"], row[f"{name} high"]]
            assert method["aggregates"][name] == plain(numbers)
        at = [along[f"{progress:.1f}"] for progress in paper.PROGRESS]
        assert [100 * score[0] for score in method["progress"]] == pytest.approx(at, rel=1e-4)
    pairs = [[one["first"], one["second"], *one["probability"]] for one in found["improvement"]]
    assert pairs == [plain(list(row.values())) for row in improvement.rows]


def test_tidy_rows_hold_every_point(summary: Summary) -> None:
    rows = report_tables.tidy_rows(summary.groups)
    assert list(rows[0]) == ["exp_name", "env_name", "seed", "metric", "env_step", "value"]
    assert len(rows) == 3 * 2 * 3 * 10 * 3
    one = summary.groups[0].series[1]
    mine = [r for r in rows if (r["exp_name"], r["env_name"]) == ("NC-LQL", "Ant-v4")]
    values = [r["value"] for r in mine if r["seed"] == 1 and r["metric"] == "return"]
    assert values == one.returns.tolist()


def test_printed_returns_have_at_most_ten_rows_and_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "a", points=37)
    report_tables.print_returns(group_runs(find_runs([tmp_path])))
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 11
    assert lines[0].split() == ["iterations", "return", "over", "1", "seed(s)"]
    assert lines[1].split()[0] == "100" and lines[-1].split()[0] == "3700"


def test_seeds_without_a_common_evaluation_print_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_run(tmp_path / "a", seeds=(0, 1), points=2) / "evaluations.csv"
    lines = path.read_text().splitlines()
    kept = [r for r in lines if r.split(",")[2:4] not in (["0", "100"], ["1", "200"])]
    path.write_text("\n".join(kept) + "\n")
    report_tables.print_returns(group_runs(find_runs([tmp_path])))
    assert capsys.readouterr().out == ""
