"""langevinrl tune FILE [--trials 50] [--objective return]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from langevinrl.cli.forms import parse


@dataclass(frozen=True)
class Tune:
    """Search for good hyperparameters; the same command continues a search or joins it."""

    search: tyro.conf.Positional[Path]  # a TOML or JSON file with base, space and seeds
    trials: int = 50  # in total
    # the last evaluation's mean over all seeds, or its gain on the first per second
    objective: Literal["return", "return-per-second"] = "return"
    # end each run after that long, so that fast settings are preferred
    seconds: float | None = None
    workers: int | None = None  # trials at a time; by default one per core or GPU
    out: Path | None = None  # folder of the search; by default tune/NAME of the file
    # import the agents and environments that the file or folder names; needed once
    trust: tyro.conf.FlagCreatePairsOff[bool] = False


def main(words: list[str]) -> None:
    asked = parse(Tune, words, "tune")
    from langevinrl.sweeps.tune import tune

    out = asked.out or Path("tune") / asked.search.stem
    tune(**vars(asked) | {"out": out})
