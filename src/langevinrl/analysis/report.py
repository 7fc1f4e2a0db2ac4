"""Reports of finished runs: a page, and tables and figures beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.analysis import summary_figures
from langevinrl.analysis.figures import FORMATS, learning_curves, write_figures
from langevinrl.analysis.grids import Axis, seeds_of
from langevinrl.analysis.normalise import Kind
from langevinrl.analysis.page import render_page, source_of
from langevinrl.analysis.page.document import page_document
from langevinrl.analysis.records import find_runs
from langevinrl.analysis.report_tables import report_tables, tidy_rows
from langevinrl.analysis.summary import Summary, summarise
from langevinrl.analysis.tables import safe_file_name, write_csv, write_table
from langevinrl.errors import UserError, field
from langevinrl.registry import label_of
from langevinrl.storage.files import reason_of, require_no_link, write_text

AXES: tuple[Axis, ...] = ("iterations", "env_steps", "hours")


def write_report(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    normalise: Kind = "min-max",
    mix_versions: bool = False,
    figures: bool = True,
    overwrite: bool = False,
    made: str = "",
) -> list[str]:
    """Write a page of all runs in `folders` to `out`, and its tables and figures beside it.

    A page of the same folders is replaced; any other file only with `overwrite`.

    write_report(["sweeps/hopper"], "report.html")

    normalise: which returns score 0 and 1 when tasks are averaged
    mix_versions: treat versions of a task, such as Hopper-v4 and Hopper-v5, as one task
    figures: also draw figures as PNG, SVG and PDF; the page has its own
    overwrite: replace a page of other folders, or another file
    made: a sentence for the foot of the page
    Returns sentences about what was left out, and why.
    """
    places, out = [Path(folder) for folder in folders], Path(out)
    files, source = files_beside(out), source_of(places)
    if not overwrite:
        _require_page_of(source, out)
    summary = summarise(find_runs(places), normalise, mix_versions)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, render_page(page_document(summary, places, made), source))
        return write_files(summary, files, FORMATS if figures else ())
    except OSError as error:
        raise UserError(f"cannot write {out}: {reason_of(error)}") from error


def files_beside(out: Path) -> Path:
    """Return the folder for tables and figures; raise if the page cannot be written."""
    if out.is_dir():
        raise UserError(f"--out {out} is a folder: name a file in it, such as {out}/report.html")
    if out.suffix not in (".html", ".htm"):
        raise UserError(f"--out {out} does not end in .html: the report is a web page")
    files = out.with_name(f"{out.stem}_files")
    for place in (files, files / "tables", files / "figures"):
        require_no_link(place)
    return files


def _require_page_of(source: str, out: Path) -> None:
    """Raise if the file exists and is not a page of the same folders."""
    head = b""
    if out.is_file():
        with out.open("rb") as file:
            head = file.read(1_000)
    if out.exists() and source.encode() not in head:
        raise UserError(
            f"{out} exists and is not a report of these folders: choose another {field('out')}, or "
            f"replace it with {field('overwrite', True)}"
        )


@np.errstate(invalid="ignore", over="ignore")  # as in summarise
def write_files(summary: Summary, out: Path, formats: Sequence[str] = FORMATS) -> list[str]:
    """Write tables/, tidy.csv and figures/ into a folder; return what is missing, and why.

    Figures are written in each of the formats; without formats there are none.

    write_files(summarise(find_runs(["runs"])), Path("report"))
    """
    groups, notes = summary.groups, list(summary.notes)
    if not groups:
        return ["No tables and figures: no evaluation has been logged yet."]
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "tidy.csv", tidy_rows(groups))
    for table in report_tables(summary):
        write_table(table, out / "tables")
    if not summary.finals:
        notes.append("There is no table of final returns: no seed has finished.")
    if formats:
        notes += _figure_notes(summary)
        for name, figure in _figures(summary):
            write_figures(figure, out / "figures", name, formats)
    alone = [f"{group.label} on {group.env}" for group in groups if len(group.series) == 1]
    if alone:
        notes.append(f"There is no interval for curves of one seed: {'; '.join(alone)}.")
    return notes


def _figures(summary: Summary) -> Iterator[tuple[str, Any]]:
    """Draw one figure after the other; yield its file name and itself."""
    for x in AXES:
        if any(seeds_of(group, x) for group in summary.groups):
            yield f"curves_{x}", learning_curves(summary.groups, x)
    for agent in dict.fromkeys(group.agent for group in summary.groups):
        figure = summary_figures.ablation(
            [one for one in summary.finals if one.group.agent == agent]
        )
        if figure is not None:
            yield safe_file_name(f"ablation_{agent}"), figure
    found = summary.aggregates
    if found is not None:
        yield "aggregate_progress", summary_figures.aggregate_curves(found)
        yield "aggregates", summary_figures.aggregate_intervals(found)
        yield "profiles", summary_figures.profiles(found)
        if found.improvement:
            yield "improvement", summary_figures.improvement(found)


def _figure_notes(summary: Summary) -> list[str]:
    """Explain figures, and curves in them, that are missing."""
    notes = []
    for x in AXES:
        without = dict.fromkeys(group.label for group in summary.groups if not seeds_of(group, x))
        if without:
            notes.append(
                f"Curves over {x} lack {', '.join(without)}: its evaluations do not record {x}."
            )
    fields: dict[str, dict[str, Any]] = {}
    for group in summary.groups:
        fields.setdefault(group.agent, {}).update(group.settings)
    for agent, varied in fields.items():
        names = [name for name in varied if name != "config"]
        if len(names) > 2:
            notes.append(
                f"There is no ablation figure of {label_of(agent)}: {len(names)} settings vary "
                f"({', '.join(names)}), and a figure shows one or two."
            )
    found = summary.aggregates
    if found is not None and not found.improvement:
        notes.append(f"{len(found.methods)} methods are too many to compare pair by pair.")
    return notes
