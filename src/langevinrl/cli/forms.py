"""What the verbs share: words to a dataclass, and a finished run shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import tyro

from langevinrl.errors import UserError

Form = TypeVar("Form")


def parse(
    form: type[Form], words: list[str], program: str, default: Any = tyro.MISSING_NONPROP
) -> Form:
    """The form filled in from words; --help and slips end the program, with 0 and 2."""
    flat = (tyro.conf.OmitArgPrefixes,)  # --seed, not --run.seed
    return tyro.cli(form, args=words, prog=f"langevinrl {program}", default=default, config=flat)


def show(folder: Path) -> None:
    """A run's evaluations as a short table, its curve, and where it lies."""
    from langevinrl.analysis.curve_figures import learning_curves
    from langevinrl.analysis.figures import write_figure
    from langevinrl.analysis.records import find_runs, group_runs
    from langevinrl.analysis.report_tables import print_returns
    from langevinrl.runs.folder import RunFolder

    groups = group_runs(find_runs([folder]))
    print_returns(groups)
    try:
        write_figure(learning_curves(groups), RunFolder(folder).curve)
    except UserError as error:
        print(f"No curve: {error}")
    print(folder)
