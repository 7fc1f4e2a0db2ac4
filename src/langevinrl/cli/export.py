"""langevinrl export DIR [--format numpy|stablehlo|onnx] [--out FILE]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from langevinrl.cli.forms import parse


@dataclass(frozen=True)
class Changes:
    """How an action is drawn; as trained unless told, and changed without training again."""

    best_of: int | None = None  # N: chains per action, the most valuable kept
    steps_per_level: int | None = None  # T: Langevin steps at each level (NC-LQL)
    num_levels: int | None = None  # L: how many of the trained levels to walk (NC-LQL)
    num_steps: int | None = None  # T: steps of the chain (LQL, QSM)
    flow_steps: int | None = None  # K: jumps per action (MFP)


@dataclass(frozen=True)
class Export:
    """Write a trained policy as one file that runs without langevinrl."""

    folder: tyro.conf.Positional[Path]  # the run folder, or a saved model
    # what to run it with: NumPy alone, JAX, or ONNX Runtime
    format: Literal["numpy", "stablehlo", "onnx"] = "numpy"
    out: Path | None = None  # the file; policy.npz, .stablehlo or .onnx in the folder unless told
    seed_index: int = 0  # which of the seeds trained side by side
    # follow names of someone's own that the folder holds, which imports them
    trust: tyro.conf.FlagCreatePairsOff[bool] = False
    changes: Changes = Changes()


def main(words: list[str]) -> None:
    asked = parse(Export, words, "export")
    from langevinrl.export import export

    changes = {name: value for name, value in vars(asked.changes).items() if value is not None}
    path = export(
        asked.folder,
        asked.format,
        asked.out,
        seed_index=asked.seed_index,
        env=None,
        trust=asked.trust,
        **changes,
    )
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
