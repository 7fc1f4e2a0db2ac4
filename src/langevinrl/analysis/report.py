"""Reports of finished runs: a page, and tables and figures beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from langevinrl.analysis import aggregate_figures
from langevinrl.analysis.ablation_figures import ablation
from langevinrl.analysis.curve_figures import learning_curves
from langevinrl.analysis.figures import FORMATS, write_figures
from langevinrl.analysis.grids import Axis, seeds_of
from langevinrl.analysis.groups import Group
from langevinrl.analysis.normalise import Kind
from langevinrl.analysis.page import source_of, write_page
from langevinrl.analysis.page.document import page_document
from langevinrl.analysis.records import find_runs
from langevinrl.analysis.report_tables import report_tables, tidy_rows
from langevinrl.analysis.summary import Summary, summarise
from langevinrl.analysis.tables import safe_file_name, write_csv, write_table
from langevinrl.errors import UserError, field
from langevinrl.registry import label_of
from langevinrl.storage.files import reason_of, require_no_link

Writer: TypeAlias = Callable[..., list[Path]]  # write_figures with its folder and formats
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
        write_page(page_document(summary, places, made), out, source)
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
    for place in (files, *out.absolute().parents):
        if place.exists() and not place.is_dir():
            raise UserError(f"--out {out} cannot be written: {place} is a file, not a folder")
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
        write_table(out / "tables" / table.name, table.rows, table.caption, table.printed)
    if not summary.finals:
        notes.append("There is no table of final returns: no seed has finished.")
    if formats:
        write = partial(write_figures, folder=out / "figures", formats=formats)
        notes += _write_curves(groups, write)
        notes += _write_ablations(summary, write)
        notes += _write_aggregates(summary, write)
    return notes + _single_seeds(groups)


def _write_curves(groups: Sequence[Group], write: Writer) -> list[str]:
    notes = []
    for x in AXES:
        without = [group for group in groups if not seeds_of(group, x)]
        if without:
            names = ", ".join(dict.fromkeys(group.label for group in without))
            notes.append(f"Curves over {x} lack {names}: its evaluations do not record {x}.")
        if len(without) < len(groups):
            write(learning_curves(groups, x), name=f"curves_{x}")
    return notes


def _write_aggregates(summary: Summary, write: Writer) -> list[str]:
    found = summary.aggregates
    if found is None:
        return []
    write(aggregate_figures.aggregate_curves(found), name="aggregate_progress")
    write(aggregate_figures.aggregate_intervals(found), name="aggregates")
    write(aggregate_figures.profiles(found), name="profiles")
    if not found.improvement:
        return [f"{len(found.methods)} methods are too many to compare pair by pair."]
    write(aggregate_figures.improvement(found), name="improvement")
    return []


def _write_ablations(summary: Summary, write: Writer) -> list[str]:
    notes = []
    for agent in dict.fromkeys(group.agent for group in summary.groups):
        own = [group for group in summary.groups if group.agent == agent]
        fields = dict.fromkeys(name for group in own for name in group.settings if name != "config")
        figure = ablation([one for one in summary.finals if one.group.agent == agent])
        if figure is not None:
            write(figure, name=safe_file_name(f"ablation_{agent}"))
        elif len(fields) > 2:
            notes.append(
                f"There is no ablation figure of {label_of(agent)}: {len(fields)} settings vary "
                f"({', '.join(fields)}), and a figure shows one or two."
            )
    return notes


def _single_seeds(groups: Sequence[Group]) -> list[str]:
    alone = [f"{group.label} on {group.env}" for group in groups if len(group.series) == 1]
    return [f"There is no interval for curves of one seed: {'; '.join(alone)}."] if alone else []
