"""langevinrl plot DIR... [--out FILE]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from langevinrl.analysis.figures import draw_curves
from langevinrl.cli.forms import parse
from langevinrl.errors import UserError
from langevinrl.runs.folder import RunFolder


@dataclass(frozen=True)
class Plot:
    """Draw learning curves of one or more run folders."""

    folders: tyro.conf.Positional[tuple[Path, ...]]  # run folders
    out: Path | None = None  # picture to write; DIR/curve.png for one folder, curves.png for more


def main(words: list[str]) -> None:
    asked = parse(Plot, words, "plot")
    if not asked.folders:
        raise UserError("plot needs at least one run folder")
    alone = len(asked.folders) == 1
    default = RunFolder(asked.folders[0]).curve if alone else Path("curves.png")
    print(draw_curves(asked.folders, asked.out or default))
