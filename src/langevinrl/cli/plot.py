"""langevinrl plot DIR... [--x AXIS] [--out FILE]"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from langevinrl.analysis import find_runs, group_runs, learning_curves, write_figure
from langevinrl.cli.forms import parse
from langevinrl.errors import UserError
from langevinrl.storage.files import require_no_link
from langevinrl.storage.folder import RunFolder


@dataclass(frozen=True)
class Plot:
    """Draw learning curves: a panel per task, with mean over seeds and 95 % interval.

    Runs that differ only in their seeds are one curve.
    """

    folders: tyro.conf.Positional[tuple[Path, ...]]  # runs, sweeps, or folders of them
    x: Literal["iterations", "env_steps", "hours"] = "iterations"  # horizontal axis
    # picture to write, as png, svg or pdf; by default DIR/curve.png, or curves.png for more folders
    out: Path | None = None


def main(words: list[str]) -> None:
    asked = parse(Plot, words, "plot")
    if not asked.folders:
        raise UserError("plot needs at least one run folder")
    records = find_runs(asked.folders)
    for record in records:
        if record.status == "unreadable":
            print(f"A run is left out: {record.error}.", file=sys.stderr)
    groups = group_runs(records)
    alone = len(asked.folders) == 1
    default = RunFolder(asked.folders[0]).curve if alone else Path("curves.png")
    print(write_figure(learning_curves(groups, asked.x), asked.out or require_no_link(default)))
