"""All tables and figures of a collection of runs, and a sentence for each that is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from langevinrl.analysis import aggregate_figures, report_tables
from langevinrl.analysis.ablation_figures import ablation
from langevinrl.analysis.comparison import Comparison, compare
from langevinrl.analysis.curve_figures import learning_curves
from langevinrl.analysis.figures import FORMATS, write_figures
from langevinrl.analysis.grids import Axis, final_returns, seeds_of
from langevinrl.analysis.groups import Group
from langevinrl.analysis.normalise import Kind, normalise, require_one_version
from langevinrl.analysis.tables import write_csv, write_table
from langevinrl.errors import UserError
from langevinrl.registry import label_of

Writer: TypeAlias = Callable[..., list[Path]]  # write_figures with its folder and formats
AXES: tuple[Axis, ...] = ("iterations", "env_steps", "hours")


def write_report_files(
    groups: Sequence[Group],
    out: Path,
    normalisation: Kind = "min-max",
    mix_versions: bool = False,
    formats: Sequence[str] = FORMATS,
) -> list[str]:
    """Write tables/, tidy.csv and figures/ into a folder; returns what is missing and why.

    Figures are written in each of the formats; with none of them there are no figures.

    write_report_files(group_runs(find_runs([Path("runs")])), Path("report"))
    """
    if not groups:
        raise UserError("nothing to report: no evaluation has been logged yet")
    if not mix_versions:
        require_one_version(groups)
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "tidy.csv", report_tables.tidy_rows(groups))
    tables = [report_tables.final_table(groups), report_tables.paper_table()]
    found, notes = comparison_of(groups, normalisation, mix_versions)
    if found:
        tables += [
            report_tables.normalised_table(found),
            report_tables.aggregate_table(found),
            report_tables.improvement_table(found),
        ]
    for table in tables:
        if table.rows:
            write_table(out / "tables" / table.name, table.rows, table.caption, table.printed)
    if not any(final_returns(group).size for group in groups):
        notes.append("There is no table of final returns: no seed has finished.")
    if formats:
        write = partial(write_figures, folder=out / "figures", formats=formats)
        notes += write_curve_figures(groups, write)
        notes += write_ablations(groups, write)
        if found:
            notes += write_aggregate_figures(found, write)
    return notes + single_seeds(groups)


def comparison_of(
    groups: Sequence[Group], normalisation: Kind = "min-max", mix_versions: bool = False
) -> tuple[Comparison | None, list[str]]:
    """The methods that can be compared over tasks, if there are any, and who is left out."""
    try:
        scale = normalise(groups, normalisation, mix_versions)
    except UserError as error:
        if not mix_versions:
            require_one_version(groups)
        return None, [f"There are no aggregates over tasks: {error}."]
    found = compare(groups, scale)
    if len(found.tasks) < 2:
        reason = "they need at least two tasks with finished runs"
    elif len(found.methods) < 2:
        reason = "scores are relative to the methods shown, and only one has all tasks"
    else:
        return found, found.notes
    return None, [*found.notes, f"There are no aggregates over tasks: {reason}."]


def write_curve_figures(groups: Sequence[Group], write: Writer) -> list[str]:
    """Learning curves over iterations, environment steps and hours."""
    notes = []
    for x in AXES:
        without = [group for group in groups if not seeds_of(group, x)]
        if without:
            names = ", ".join(dict.fromkeys(group.label for group in without))
            notes.append(f"Curves over {x} lack {names}: the evaluations do not say.")
        if len(without) < len(groups):
            write(learning_curves(groups, x), name=f"curves_{x}")
    return notes


def write_aggregate_figures(found: Comparison, write: Writer) -> list[str]:
    """Aggregate curves, metrics with intervals, profiles, probability of improvement."""
    notes = []
    axes: tuple[Axis, ...] = ("progress", "env_steps", "hours")
    for x in axes:
        figure = aggregate_figures.aggregate_curves(found, x)
        if figure is None:
            notes.append(f"There is no aggregate curve over {x}: no method's tasks share any.")
        else:
            write(figure, name=f"aggregate_{x}")
    drawn: dict[str, Callable[[Comparison], Any]] = {
        "aggregates": aggregate_figures.aggregate_intervals,
        "profiles": aggregate_figures.profiles,
        "improvement": aggregate_figures.improvement,
    }
    for name, draw in drawn.items():
        write(draw(found), name=name)
    return notes


def write_ablations(groups: Sequence[Group], write: Writer) -> list[str]:
    """A figure per agent of which one or two settings vary."""
    notes = []
    for agent in dict.fromkeys(group.agent for group in groups):
        own = [group for group in groups if group.agent == agent]
        fields = dict.fromkeys(name for group in own for name in group.settings if name != "config")
        figure = ablation(own)
        if figure is not None:
            write(figure, name=f"ablation_{agent}")
        elif len(fields) > 2:
            notes.append(
                f"There is no ablation figure of {label_of(agent)}: {len(fields)} settings vary "
                f"({', '.join(fields)}), and a figure shows one or two."
            )
    return notes


def single_seeds(groups: Sequence[Group]) -> list[str]:
    """Which curves rest on one seed, and so have no interval."""
    alone = [f"{group.label} on {group.env}" for group in groups if len(group.series) == 1]
    if not alone:
        return []
    return [f"One seed says nothing of the spread, so there is no interval: {'; '.join(alone)}."]
