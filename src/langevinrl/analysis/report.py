"""Everything made of finished runs, in one call: the page, and tables and figures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langevinrl.analysis.figures import FORMATS
from langevinrl.analysis.groups import group_runs
from langevinrl.analysis.normalise import Kind, require_one_version
from langevinrl.analysis.page import write_page
from langevinrl.analysis.page.data import page_document
from langevinrl.analysis.page.summary import summarise
from langevinrl.analysis.records import find_runs
from langevinrl.analysis.report_files import write_report_files
from langevinrl.errors import UserError


def write_report(
    folders: Sequence[Path],
    out: Path,
    *,
    normalise: Kind = "min-max",
    mix_versions: bool = False,
    figures: bool = True,
    made: str = "",
) -> list[str]:
    """Write a page of all runs in `folders` to `out`, and its tables and figures beside it.

    write_report([Path("sweeps/hopper")], Path("report.html"))

    normalise: what counts as 0 and 1 where tasks are put together
    mix_versions: put versions of a task together, such as Hopper-v4 and Hopper-v5
    figures: draw them as PNG, SVG and PDF; the page has its own
    made: a sentence for the foot of the page
    Returns sentences that say what was left out, and why.
    """
    files = files_beside(out)
    records = find_runs(folders)
    groups = group_runs(records)
    if not mix_versions:
        require_one_version(groups)
    summary = summarise(groups, normalise, mix_versions)
    write_page(page_document(records, groups, summary, folders, made), out)
    if not groups:
        return ["No tables and figures: no evaluation has been logged yet."]
    formats = FORMATS if figures else ()
    return write_report_files(groups, files, normalise, mix_versions, formats)


def files_beside(out: Path) -> Path:
    """The folder for tables and figures beside a page; refuses a page that cannot be written."""
    if out.is_dir():
        raise UserError(f"--out {out} is a folder: name a file in it, such as {out}/report.html")
    if out.suffix not in (".html", ".htm"):
        raise UserError(f"--out {out} does not end in .html: the report is a web page")
    files = out.with_name(f"{out.stem}_files")
    for place in (files, *out.absolute().parents):
        if place.exists() and not place.is_dir():
            raise UserError(f"--out {out} cannot be written: {place} is a file, not a folder")
    return files
