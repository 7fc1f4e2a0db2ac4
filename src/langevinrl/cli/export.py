"""langevinrl export DIR [--format numpy|stablehlo|onnx] [--out FILE]"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from langevinrl.cli.forms import parse


@dataclass(frozen=True)
class Changes:
    """Settings of sampling that can differ from training."""

    best_of: int | None = None  # N: chains per action; the most valuable is kept
    steps_per_level: int | None = None  # T: Langevin steps at each level (NC-LQL)
    num_steps: int | None = None  # T: steps of the chain (LQL, QSM)
    flow_steps: int | None = None  # K: steps of the flow (MFP)


@dataclass(frozen=True)
class Export:
    """Write a trained policy as one file that runs without langevinrl."""

    folder: tyro.conf.Positional[Path]  # a run folder or a saved model
    # software that runs it: NumPy alone, JAX, or ONNX Runtime
    format: Literal["numpy", "stablehlo", "onnx"] = "numpy"
    out: Path | None = None  # default: policy.npz, .stablehlo or .onnx in the folder
    seed_index: int = 0  # which of the seeds trained together
    # import the agent that the folder names, if it is not one of ours
    trust: tyro.conf.FlagCreatePairsOff[bool] = False
    changes: Changes = Changes()


def main(words: list[str]) -> None:
    asked = parse(Export, words, "export")
    from langevinrl.export import export

    options = {**vars(asked)}
    changes = vars(options.pop("changes"))
    path = export(**options, **{name: n for name, n in changes.items() if n is not None})
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
