"""What the verbs share: words to a dataclass, and a finished run shown."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

import tyro

from langevinrl.errors import UserError, usual_word

Form = TypeVar("Form")


def parse(
    form: type[Form], words: list[str], program: str, default: Any = tyro.MISSING_NONPROP
) -> Form:
    """The form filled in from words; --help and slips end the program, with 0 and 2."""
    flat = (tyro.conf.OmitArgPrefixes,)  # --seed, not --run.seed
    filled = default if dataclasses.is_dataclass(default) else form
    known = _field_names(filled)
    for word in words:
        _refuse_usual_word(word, known)
    return tyro.cli(form, args=words, prog=f"langevinrl {program}", default=default, config=flat)


def _field_names(form: Any) -> list[str]:
    """The fields of a form, and of the forms in it."""
    names: list[str] = []
    for field in dataclasses.fields(form):
        inner = getattr(form, field.name, None)
        names += _field_names(inner) if dataclasses.is_dataclass(inner) else [field.name]
    return names


def _refuse_usual_word(word: str, known: list[str]) -> None:
    """Says what a flag of other libraries is called here; what is merely near, tyro finds."""
    name = word.partition("=")[0].lstrip("-").replace("-", "_")
    if word.startswith("-") and name not in known:
        hint = usual_word(name, known)
        if hint:
            raise UserError(f"unknown flag {word.partition('=')[0]}{hint}")


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
