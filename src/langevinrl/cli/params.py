"""langevinrl params --obs-dim O --act-dim A [--json]"""

from __future__ import annotations

import json
from dataclasses import dataclass

import tyro

from langevinrl.cli.forms import parse
from langevinrl.errors import UserError
from langevinrl.registry import METHODS


@dataclass(frozen=True)
class Params:
    """Count each agent's trainable parameters for a task's sizes."""

    obs_dim: int  # observation size
    act_dim: int  # action size
    json: tyro.conf.FlagCreatePairsOff[bool] = False  # print JSON


def main(words: list[str]) -> None:
    asked = parse(Params, words, "params")
    if asked.obs_dim < 1 or asked.act_dim < 1:
        raise UserError("--obs-dim and --act-dim count axes: at least 1 each")
    counts = count_all(asked.obs_dim, asked.act_dim)
    if asked.json:
        print(json.dumps(counts, indent=2))
        return
    for name, count in counts.items():
        print(f"{name:8} {count:>10,}")


def count_all(obs_dim: int, act_dim: int) -> dict[str, int]:
    """Trainable parameters of every agent at its defaults; nothing is computed."""
    import jax

    from langevinrl.learner import count_parameters
    from langevinrl.types import Spec

    spec, key = Spec(obs_dim, act_dim), jax.random.key(0)
    agents = {name: method.load()(spec) for name, method in METHODS.items()}
    return {
        name: count_parameters(jax.eval_shape(agent.init, key)) for name, agent in agents.items()
    }
