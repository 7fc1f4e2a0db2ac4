"""langevinrl params --obs-dim O --act-dim A [--json]"""

from __future__ import annotations

import json
from dataclasses import dataclass

import tyro

from langevinrl.cli.forms import parse
from langevinrl.errors import UserError


@dataclass(frozen=True)
class Params:
    """Count the trainable parameters of each agent."""

    obs_dim: int  # observation size
    act_dim: int  # action size
    json: tyro.conf.FlagCreatePairsOff[bool] = False  # print JSON


def main(words: list[str]) -> None:
    args = parse(Params, words, "params")
    if not (0 < args.obs_dim < 10**7 and 0 < args.act_dim < 10**7):
        raise UserError("--obs-dim and --act-dim count axes: at least 1 each, below ten million")
    from langevinrl.studies.parameters import count_all
    from langevinrl.types import Spec

    pairs = count_all(Spec(args.obs_dim, args.act_dim))
    counts = {name: critics + policy for name, (critics, policy) in pairs.items()}
    if args.json:
        print(json.dumps(counts, indent=2))
        return
    for name, count in counts.items():
        print(f"{name:10} {count:>10,}")
