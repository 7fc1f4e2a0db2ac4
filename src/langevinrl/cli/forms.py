"""Functions that several commands share: parsing of arguments, and the summary of a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

import tyro

from langevinrl.errors import UserError, alias_hint, require_none

Form = TypeVar("Form")


def parse(
    form: type[Form], words: list[str], program: str, default: Any = tyro.MISSING_NONPROP
) -> Form:
    """Fill a dataclass from arguments; --help exits with 0 and a mistake with 2."""
    flat = (tyro.conf.OmitArgPrefixes,)  # --seed, not --run.seed
    filled = default if dataclasses.is_dataclass(default) else form
    known = _field_names(filled)
    require_none(hint for word in words if (hint := _usual_flag(word, known)))
    return tyro.cli(form, args=words, prog=f"langevinrl {program}", default=default, config=flat)


def _field_names(form: Any) -> list[str]:
    """Return the fields of a dataclass and of those inside it."""
    names: list[str] = []
    for field in dataclasses.fields(form):
        inner = getattr(form, field.name, None)
        names += _field_names(inner) if dataclasses.is_dataclass(inner) else [field.name]
    return names


def _usual_flag(word: str, known: list[str]) -> str:
    """Return a hint for a flag that other libraries use; tyro finds similar spellings."""
    flag = word.partition("=")[0]
    name = flag.lstrip("-").replace("-", "_")
    hint = alias_hint(name, known) if word.startswith("-") and name not in known else ""
    return f"unknown flag {flag}{hint}" if hint else ""


def show(folder: Path) -> None:
    """Print a run's evaluations and its folder, and draw its curve."""
    from langevinrl.analysis import find_runs, group_runs, learning_curves, write_figure
    from langevinrl.analysis.report_tables import print_returns
    from langevinrl.storage.folder import RunFolder

    groups = group_runs(find_runs([folder]))
    print_returns(groups)
    try:
        write_figure(learning_curves(groups), RunFolder(folder).curve)
    except UserError as error:
        print(f"No curve: {error}")
    print(folder)
