"""langevinrl report DIR... [--out report.html]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from langevinrl import __version__
from langevinrl.analysis.figures import FORMATS
from langevinrl.analysis.normalise import Kind, require_one_version
from langevinrl.analysis.page import write_page
from langevinrl.analysis.page.data import page_document
from langevinrl.analysis.page.summary import summarise
from langevinrl.analysis.records import Group, find_runs, group_runs
from langevinrl.analysis.report_files import write_report_files
from langevinrl.cli.forms import parse
from langevinrl.errors import UserError


@dataclass(frozen=True)
class Report:
    """Make a page, tables and figures of all runs in some folders."""

    folders: tyro.conf.Positional[tuple[Path, ...]]  # runs, sweeps, or folders of such
    # page to write; tables and figures go into a folder beside it: report_files for report.html
    out: Path = Path("report.html")
    normalise: Kind = "min-max"  # what counts as 0 and 1 where tasks are put together
    mix_versions: bool = False  # put versions of a task together, such as Hopper-v4 and Hopper-v5
    figures: bool = True  # draw the figures as PNG, SVG and PDF as well; the page has its own


def main(words: list[str]) -> None:
    asked = parse(Report, words, "report")
    if not asked.folders:
        raise UserError("report needs at least one folder: of a run, of a sweep, or of several")
    files = check_out(asked.out)
    records = find_runs(asked.folders)
    groups = group_runs(records)
    if not asked.mix_versions:
        refuse_two_versions(groups)
    summary = summarise(groups, asked.normalise, asked.mix_versions)
    made = f"Made by langevinrl {__version__} from {', '.join(map(str, asked.folders))}."
    document = page_document(records, groups, summary, asked.folders, made)
    write_page(document, asked.out)
    print(asked.out)
    if groups:
        formats = FORMATS if asked.figures else ()
        notes = write_report_files(groups, files, asked.normalise, asked.mix_versions, formats)
        print(files)
        for note in notes:
            print(f"  {note}")
    else:
        print("No tables and figures: no evaluation has been logged yet.")


def check_out(out: Path) -> Path:
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


def refuse_two_versions(groups: list[Group]) -> None:
    """Two versions of a task are different problems, unless the user says to mix them."""
    try:
        require_one_version(groups)
    except UserError as error:
        raise UserError(str(error).replace("mix_versions=True", "--mix-versions")) from error
