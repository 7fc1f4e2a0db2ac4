"""Training and report of a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from langevinrl.analysis.report import write_report
from langevinrl.analysis.tables import Row, write_csv
from langevinrl.errors import UserError
from langevinrl.studies import load_study
from langevinrl.studies.parameters import parameter_table
from langevinrl.studies.study import REHEARSAL, REHEARSAL_BATCH, Extent, runs
from langevinrl.sweeps.queue import SweepFolder
from langevinrl.sweeps.start import describe_runs, sweep

LONG = 100_000  # iterations in all that need --yes: about an hour of NC-LQL on two cores


def reproduce(
    name: str, out: Path, extent: Extent, yes: bool, options: Mapping[str, Any]
) -> SweepFolder:
    """Train the runs of a study that its folder does not have yet, and write its report.

    options: of `sweep`, such as backend and workers
    """
    study, console = load_study(name), Console(highlight=False, markup=False)
    configs = runs(study, extent)
    console.print(f"{study.title}. {study.about}", soft_wrap=True)
    if extent.scale < REHEARSAL:
        console.print(
            f"Below scale {REHEARSAL:g} this only rehearses the pipeline: batches of "
            f"{REHEARSAL_BATCH}, at most 4 candidates, 5 evaluations of 2 episodes. "
            "Its numbers say nothing about the methods.",
            soft_wrap=True,
        )
    total = sum(config.iterations or 0 for config in configs)
    if total > LONG and not yes:
        raise UserError(f"{describe_runs(configs)}, {total:,} in all: start this with --yes")
    folder = sweep(configs, out, study=name, **options)
    write_csv(out / "parameters.csv", parameter_table())  # for the report
    report = out / "report.html"
    for note in write_report([out], report, made=f"langevinrl reproduce {name}"):
        console.print(f"  {note}", soft_wrap=True)
    console.print(str(report))
    return folder


def write_table(rows: list[Row], path: Path) -> None:
    """Write a table to a file and print it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(path, rows)
    table = Table(*rows[0], box=None, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*map(str, row.values()))
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(str(path))
