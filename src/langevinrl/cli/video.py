"""langevinrl video DIR [--episodes 1] [--out FILE.mp4] [--camera NAME]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from langevinrl.cli.forms import parse


@dataclass(frozen=True)
class Video:
    """Record episodes of a trained agent as an MP4."""

    path: tyro.conf.Positional[Path]  # the run folder
    episodes: int = 1  # played one after the other by the first trained seed
    out: Path | None = None  # default: DIR/video.mp4
    camera: str | None = None  # a camera of the MuJoCo model, by name or number
    seed: int = 0  # sets the starts of the episodes
    env: str | None = None  # replaces the environment of the run
    # allow names in the folder that import Python modules
    trust: tyro.conf.FlagCreatePairsOff[bool] = False


def main(words: list[str]) -> None:
    asked = parse(Video, words, "video")
    from langevinrl.runs.video import record_video

    print(record_video(**vars(asked)))
