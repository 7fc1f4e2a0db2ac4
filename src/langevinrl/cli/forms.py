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
    from langevinrl.analysis.curves import print_table
    from langevinrl.analysis.figures import draw_curves
    from langevinrl.runs.folder import RunFolder

    print_table(folder)
    try:
        draw_curves([folder], RunFolder(folder).curve)
    except UserError as error:
        print(f"No curve: {error}")
    print(folder)
