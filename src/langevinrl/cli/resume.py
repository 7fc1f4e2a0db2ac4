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

    folder: tyro.conf.Positional[Path]  # the run folder
    iterations: int | None = None  # go on to this many iterations instead
    # from here on, if an environment fails: stop, or make it anew and go on
    on_env_error: Literal["stop", "reset"] | None = None
    # go on under a config.json that was edited; the run is then another than the one begun
    accept_changes: bool = False
    env: str | None = None  # train in this one instead of the environment that the folder names
    # follow names of someone's own that the folder holds, which imports them
    trust: tyro.conf.FlagCreatePairsOff[bool] = False


def main(words: list[str]) -> None:
    asked = parse(Resume, words, "resume")
    from langevinrl.runs.train import resume

    show(
        resume(
            asked.folder,
            asked.iterations,
            on_env_error=asked.on_env_error,
            env=asked.env,
            trust=asked.trust,
            accept_changes=asked.accept_changes,
        )
    )
