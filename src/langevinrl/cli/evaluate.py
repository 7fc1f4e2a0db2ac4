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
    from langevinrl.runs.evaluate import Evaluation

    episodes = Model.load(asked.folder).evaluate(asked.episodes, asked.seed)
    for seed in sorted({episode.seed for episode in episodes}):
        played = Evaluation(0, [episode for episode in episodes if episode.seed == seed])
        returns = [episode.total for episode in played.episodes]
        length = np.mean([episode.length for episode in played.episodes])
        print(
            f"seed {seed}: return {played.mean:.1f} ± {played.std:.1f} "
            f"(least {min(returns):.1f}, most {max(returns):.1f}), length {length:.0f}"
        )
