"""langevinrl evaluate DIR [--episodes 20] [--mode keyed|sampled|noise-free]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import tyro

from langevinrl.cli.forms import parse


@dataclass(frozen=True)
class Evaluate:
    """Play episodes with a trained agent."""

    folder: tyro.conf.Positional[Path]  # the run folder
    episodes: int = 20  # per trained seed
    seed: int = 0  # determines the starts of the episodes
    # noise derived from the observation; new noise with exploration; or no noise
    mode: Literal["keyed", "sampled", "noise-free"] = "keyed"
    env: str | None = None  # replaces the environment that the folder names
    # import custom agents and environments that the folder names
    trust: tyro.conf.FlagCreatePairsOff[bool] = False


def main(words: list[str]) -> None:
    asked = parse(Evaluate, words, "evaluate")
    from langevinrl.model import Model

    model = Model.load(asked.folder, asked.env, trust=asked.trust)
    evaluation = model.evaluate(asked.episodes, asked.seed, asked.mode)
    for seed in sorted({episode.seed for episode in evaluation.episodes}):
        own = [episode for episode in evaluation.episodes if episode.seed == seed]
        played = evaluation._replace(episodes=own)
        returns = [episode.total for episode in own]
        length = np.mean([episode.length for episode in own])
        print(
            f"seed {seed}: return {played.mean:.1f} ± {played.std:.1f} "
            f"(min {min(returns):.1f}, max {max(returns):.1f}), length {length:.0f}, "
            f"actions {evaluation.mode}"
        )
