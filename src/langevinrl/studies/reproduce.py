"""A study of the paper from its runs to its report, as one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from langevinrl.analysis.report import write_report
from langevinrl.analysis.tables import Row, write_csv
from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.studies import load_study
from langevinrl.studies.study import REHEARSAL, REHEARSAL_BATCH, Extent, Study, runs
from langevinrl.sweeps.estimate import estimate
from langevinrl.sweeps.queue import SweepFolder
from langevinrl.sweeps.slots import find_slots
from langevinrl.sweeps.start import arrange, sweep
from langevinrl.sweeps.table import duration

HOUR = 3600.0
REPORT = "report.html"


def reproduce(
    name: str, out: Path, extent: Extent, yes: bool, options: Mapping[str, Any]
) -> SweepFolder:
    """Train a study's runs, as far as its folder has not got them, and write its report.

    options: of `sweep`: backend, workers, and the like
    """
    study, console = load_study(name), Console(highlight=False, markup=False)
    configs = arrange(runs(study, extent), options.get("seeds_per_process", "auto"))
    tell(study, extent, configs, console)
    ask(configs, out, yes, options, console)
    folder = sweep(configs, out, study=name, **options)
    write_tables(out)
    for note in write_report([out], out / REPORT, made=f"langevinrl reproduce {name}"):
        console.print(f"  {note}", soft_wrap=True)
    console.print(str(out / REPORT))
    return folder


def tell(study: Study, extent: Extent, configs: Sequence[RunConfig], console: Console) -> None:
    """What is about to be run, and what it can show."""
    total = sum(config.seeds for config in configs)
    lengths = sorted({config.iterations or 0 for config in configs})
    console.print(f"{study.title}. {study.about}", soft_wrap=True)
    console.print(
        f"{total} runs in {len(configs)} jobs of {' or '.join(f'{n:,}' for n in lengths)} "
        f"iterations, scale {extent.scale:g}.",
        soft_wrap=True,
    )
    if extent.scale < REHEARSAL:
        console.print(
            f"Below scale {REHEARSAL:g} this only rehearses the pipeline: 2 seeds, batches of "
            f"{REHEARSAL_BATCH}, at most 4 candidates, 5 evaluations of 2 episodes. "
            "Its numbers say nothing about the methods.",
            soft_wrap=True,
        )


def ask(
    configs: Sequence[RunConfig],
    out: Path,
    yes: bool,
    options: Mapping[str, Any],
    console: Console,
) -> None:
    """Say how long it will take; above an hour, go on only if told to."""
    slots = find_slots(len(configs), options.get("workers"))
    with console.status("measuring an iteration of each method"):
        seconds, _ = estimate(configs, slots)
    where = f"{len(slots)} at a time on this machine"
    if options.get("backend", "local") == "local":
        console.print(f"About {duration(seconds)}, {where}, less what {out} already has.")
    else:
        alone = duration(seconds * len(slots))
        console.print(f"About {alone} of one such processor in all, shared by the cluster.")
    if seconds > HOUR and not yes:
        raise UserError(f"this takes about {duration(seconds)}: start it with --yes")


def write_tables(out: Path) -> None:
    """The parameter table beside the runs, for the report."""
    from langevinrl.studies.parameters import parameter_table

    write_csv(out / "parameters.csv", parameter_table())


def write_table(rows: list[Row], path: Path, console: Console) -> None:
    """A table into a file, and onto the console."""
    from rich.table import Table

    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(path, rows)
    table = Table(*rows[0], box=None, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*map(str, row.values()))
    console.print(table)
    console.print(str(path))
