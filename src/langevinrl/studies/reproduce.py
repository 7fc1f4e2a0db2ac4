"""Training and report of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from langevinrl.analysis.report import write_report
from langevinrl.analysis.tables import Row, write_csv
from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.studies import load_study
from langevinrl.studies.parameters import parameter_table
from langevinrl.studies.study import REHEARSAL, REHEARSAL_BATCH, Extent, Study, runs
from langevinrl.sweeps.estimate import estimate
from langevinrl.sweeps.queue import SweepFolder
from langevinrl.sweeps.slots import find_slots
from langevinrl.sweeps.start import arrange, sweep
from langevinrl.sweeps.table import duration

HOUR = 3600.0


def reproduce(
    name: str, out: Path, extent: Extent, yes: bool, options: Mapping[str, Any]
) -> SweepFolder:
    """Train the runs of a study that its folder does not have yet, and write its report.

    options: of `sweep`, such as backend and workers
    """
    study, console = load_study(name), Console(highlight=False, markup=False)
    configs = arrange(runs(study, extent), options.get("seeds_per_process", "auto"))
    print_plan(study, extent, configs, console)
    confirm(configs, out, yes, options, console)
    folder = sweep(configs, out, study=name, **options)
    write_csv(out / "parameters.csv", parameter_table())  # for the report
    report = out / "report.html"
    for note in write_report([out], report, made=f"langevinrl reproduce {name}"):
        console.print(f"  {note}", soft_wrap=True)
    console.print(str(report))
    return folder


def print_plan(
    study: Study, extent: Extent, configs: Sequence[RunConfig], console: Console
) -> None:
    """Print the number and length of runs."""
    total = sum(config.seeds for config in configs)
    lengths = sorted({config.iterations or 0 for config in configs})
    console.print(f"{study.title}. {study.about}", soft_wrap=True)
    jobs = f"{len(configs)} job{'s' * (len(configs) > 1)}"
    console.print(
        f"{total} runs in {jobs} of {' or '.join(f'{n:,}' for n in lengths)} "
        f"iterations, scale {extent.scale:g}.",
        soft_wrap=True,
    )
    if extent.scale < REHEARSAL:
        seeds = len({seed for config in configs for seed in config.seed_list})
        console.print(
            f"Below scale {REHEARSAL:g} this only rehearses the pipeline: {seeds} "
            f"seed{'s' * (seeds > 1)}, batches of {REHEARSAL_BATCH}, at most 4 candidates, "
            "5 evaluations of 2 episodes. "
            "Its numbers say nothing about the methods.",
            soft_wrap=True,
        )


def confirm(
    configs: Sequence[RunConfig],
    out: Path,
    yes: bool,
    options: Mapping[str, Any],
    console: Console,
) -> None:
    """Print the estimated time; raise if it is above an hour and `yes` is not set."""
    slots = find_slots(len(configs), options.get("workers"))
    with console.status("measuring an iteration of each method"):
        seconds, _ = estimate(configs, slots)
    if options.get("backend", "local") == "local":
        where = f"{len(slots)} at a time on this machine"
        console.print(f"About {duration(seconds)}, {where}, less what {out} already has.")
    else:
        alone = duration(seconds * len(slots))
        console.print(f"About {alone} of one such processor in all, shared by the cluster.")
    if seconds > HOUR and not yes:
        raise UserError(f"this takes about {duration(seconds)}: start it with --yes")


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
