"""langevinrl reproduce STUDY [--scale F] [--agents ...] [--tasks ...] [--seeds K] [--yes]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from langevinrl.cli.forms import parse
from langevinrl.cli.sweep import Backends, exit_if_failed
from langevinrl.errors import UserError, unknown
from langevinrl.studies import STUDIES, TRAINED
from langevinrl.studies.study import Extent


@dataclass(frozen=True)
class Reproduce:
    """A study of the paper: its runs, then its tables, figures and page.

    The same command goes on where it was cut.
    """

    # mujoco, single-draw, temperature, levels, splits, parameters, time or bandit
    study: tyro.conf.Positional[str]
    extent: Extent
    backends: Backends
    out: Path | None = None  # folder for everything; reproduce/STUDY unless told
    yes: tyro.conf.FlagCreatePairsOff[bool] = False  # start even if it takes more than an hour


def main(words: list[str]) -> None:
    asked = parse(Reproduce, words, "reproduce")
    out = asked.out or Path("reproduce") / asked.study
    if asked.study in TRAINED:
        from langevinrl.studies.reproduce import reproduce

        options = asked.backends.options()
        options["seeds_per_process"] = asked.backends.seeds_per_process
        exit_if_failed(reproduce(asked.study, out, asked.extent, asked.yes, options))
    elif asked.study in STUDIES:
        if asked.extent != Extent():
            raise UserError(f"{asked.study} trains no runs to be scaled or chosen: leave that away")
        other(asked.study, out)
    else:
        raise UserError(unknown("study", asked.study, STUDIES))


def other(study: str, out: Path) -> None:
    """The studies that are no sweep."""
    if study == "bandit":
        from langevinrl.studies.bandit.settings import BanditConfig
        from langevinrl.studies.bandit.study import run_study

        run_study(BanditConfig(out=out))
        return
    from rich.console import Console

    from langevinrl.studies.parameters import parameter_table
    from langevinrl.studies.reproduce import write_table
    from langevinrl.studies.times import time_table

    rows = parameter_table() if study == "parameters" else time_table()
    write_table(rows, out / f"{study}.csv", Console(highlight=False, markup=False))
