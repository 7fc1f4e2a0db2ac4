"""langevinrl report DIR... [--out FILE]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from langevinrl.analysis.normalise import Kind
from langevinrl.analysis.report import write_report
from langevinrl.cli.forms import parse
from langevinrl.errors import UserError


@dataclass(frozen=True)
class Report:
    """Write a page, tables and figures of all runs in some folders."""

    folders: tyro.conf.Positional[tuple[Path, ...]]  # runs, sweeps, or folders of them
    # page to write, by default DIR/report.html, or ./report.html for several folders; tables and
    # figures go into a folder beside it: report_files for report.html
    out: Path | None = None
    normalise: Kind = "min-max"  # which returns score 0 and 1 when tasks are averaged
    mix_versions: bool = False  # treat Hopper-v4 and Hopper-v5 as one task
    figures: bool = True  # also draw figures as PNG, SVG and PDF; the page has its own
    overwrite: bool = False  # replace a page of other folders, or another file


def main(words: list[str]) -> None:
    asked = parse(Report, words, "report")
    if not asked.folders:
        raise UserError("report needs at least one folder: a run, a sweep, or a folder of runs")
    from langevinrl import __version__

    made = f"Made by langevinrl {__version__} from {', '.join(map(str, asked.folders))}."
    default = asked.folders[0] / "report.html" if len(asked.folders) == 1 else Path("report.html")
    out = asked.out or default
    notes = write_report(**vars(asked) | {"out": out, "made": made})
    print(out)
    for note in notes:
        print(f"  {note}")
