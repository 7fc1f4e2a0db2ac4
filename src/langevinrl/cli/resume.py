"""langevinrl resume DIR [--iterations N]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from langevinrl.cli.forms import parse, show


@dataclass(frozen=True)
class Resume:
    """Continue a stopped run from its last checkpoint."""

    path: tyro.conf.Positional[Path]  # the run folder
    iterations: int | None = None  # train up to this many iterations instead
    # from now on, when an environment fails: stop, or rebuild it and continue
    on_env_error: Literal["stop", "reset"] | None = None
    # use a config.json that was edited, which makes it a different run
    accept_changes: bool = False
    env: str | None = None  # replaces the environment that the folder names
    # import custom agents and environments that the folder names
    trust: tyro.conf.FlagCreatePairsOff[bool] = False


def main(words: list[str]) -> None:
    asked = parse(Resume, words, "resume")
    from langevinrl.runs.train import resume

    show(resume(**vars(asked)))
