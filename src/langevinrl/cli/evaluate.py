"""langevinrl evaluate DIR [--episodes 20]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from langevinrl.cli.forms import parse


@dataclass(frozen=True)
class Evaluate:
    """Play episodes with a trained agent."""

    folder: tyro.conf.Positional[Path]  # the run folder
    episodes: int = 20  # per trained seed
    seed: int = 0  # decides the starts of the episodes


def main(words: list[str]) -> None:
    asked = parse(Evaluate, words, "evaluate")
    from langevinrl.model import Model

    episodes = Model.load(asked.folder).evaluate(asked.episodes, asked.seed)
    for seed in sorted({episode.seed for episode in episodes}):
        returns = np.array([e.total for e in episodes if e.seed == seed])
        lengths = np.array([e.length for e in episodes if e.seed == seed])
        print(
            f"seed {seed}: return {returns.mean():.1f} ± {returns.std():.1f} "
            f"(least {returns.min():.1f}, most {returns.max():.1f}), length {lengths.mean():.0f}"
        )
