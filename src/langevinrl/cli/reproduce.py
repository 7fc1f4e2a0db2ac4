"""langevinrl reproduce STUDY [--scale F] [--methods ...] [--tasks ...] [--seeds K] [--yes]"""

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
    """Run a study of the paper and write its tables, figures and page.

    Run the same command again to continue.
    """

    # mujoco, single-draw, temperature, levels, splits, short, parameters, time or bandit
    study: tyro.conf.Positional[str]
    extent: Extent
    backends: Backends
    out: Path | None = None  # output folder; reproduce/STUDY by default
    yes: tyro.conf.FlagCreatePairsOff[bool] = False  # start even above 100,000 iterations in all


def main(words: list[str]) -> None:
    args = parse(Reproduce, words, "reproduce")
    out = args.out or Path("reproduce") / args.study
    if args.study not in STUDIES:
        raise UserError(unknown("study", args.study, STUDIES))
    if args.study in TRAINED:
        from langevinrl.studies.reproduce import reproduce

        options = args.backends.options()
        options["seeds_per_process"] = args.backends.seeds_per_process
        exit_if_failed(reproduce(args.study, out, args.extent, args.yes, options))
        return
    if args.extent != Extent():
        raise UserError(f"{args.study} has no runs to scale or select: leave those options out")
    if args.study == "bandit":
        from langevinrl.studies.bandit.settings import BanditConfig
        from langevinrl.studies.bandit.study import run_study

        run_study(BanditConfig(out=out))
    else:
        from langevinrl.studies.parameters import parameter_table
        from langevinrl.studies.reproduce import write_table
        from langevinrl.studies.times import time_table

        rows = parameter_table() if args.study == "parameters" else time_table()
        write_table(rows, out / f"{args.study}.csv")
