"""What a study of the paper is, and how it is shortened.

A study is data: methods, tasks, seeds, what all runs share and what they vary.  `runs` turns it
into run configurations; at scale 1 they are the paper's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langevinrl.errors import UserError, unknown
from langevinrl.registry import METHODS
from langevinrl.runs.config import PAPER_ITERATIONS, RunConfig
from langevinrl.sweeps.grid import make_config

TASKS = tuple(PAPER_ITERATIONS)
SEEDS = (100, 200, 300, 400, 500)  # of the released launcher
NUM_ENVS, WARMUP, BATCH, CAPACITY = 5, 30_000, 256, 1_000_000  # the paper's table
# Fields of agents that count updates; they shrink with the run.  A policy's `delay` is a ratio.
COUNTED = ("decay_start", "entropy_decay", "temperature_delay")
# Below scale 0.01 no method can learn: such a run only rehearses the pipeline, so what an iteration
# costs is cut as well.
REHEARSAL = 0.01
REHEARSAL_BATCH = 16
REHEARSAL_MOST = {"best_of": 4, "num_noises": 8, "num_entropy_actions": 20, "num_uniform": 4}


class Effort(NamedTuple):
    """How much is played at a scale; counts of evaluations are multiples of five, so that progress
    0.2, 0.4, ... 1.0 is always among them."""

    evaluations: int
    episodes: int
    seeds: int


def effort_at(scale: float) -> Effort:
    """The paper's from a tenth of its length up; less where evaluating would outweigh training."""
    if scale >= 0.1:
        return Effort(40, 20, 5)
    return Effort(20, 5, 5) if scale >= REHEARSAL else Effort(5, 2, 2)


@dataclass(frozen=True)
class Study:
    """One comparison of the paper, as data."""

    name: str  # what `langevinrl reproduce` calls it
    title: str
    about: str  # where it stands in the paper, and which choices are ours
    agents: tuple[str, ...] = tuple(METHODS)
    tasks: tuple[str, ...] = TASKS
    seeds: tuple[int, ...] = SEEDS
    shared: Mapping[str, Any] = field(default_factory=dict)  # fields of every agent that has them
    cases: tuple[Mapping[str, Any], ...] = ({},)  # settings that are compared


@dataclass(frozen=True)
class Extent:
    """How much of a study to run; the defaults are the paper."""

    scale: float = 1.0  # 1 is the paper; less shortens runs, warm-up, delays and decays alike
    iterations: int | None = None  # cut every run here, all else as at its scale
    agents: tuple[str, ...] = ()  # methods; the study's unless told
    tasks: tuple[str, ...] = ()  # tasks without version; the study's unless told
    seeds: int | None = None  # how many; the study's unless told, 2 below scale 0.01
    versions: str = "v4"  # of the environments: v4 is the paper's, v5 runs on a recent MuJoCo
    cases: tuple[int, ...] = ()  # which settings of an ablation, counted from 1; all unless told

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1:
            raise UserError(f"--scale is {self.scale}; expected more than 0, at most 1, the paper")
        if self.seeds is not None and self.seeds < 1:
            raise UserError(f"--seeds is {self.seeds}; expected at least 1")
        if self.iterations is not None and self.iterations < 1:
            raise UserError(f"--iterations is {self.iterations}; expected at least 1")


def runs(study: Study, extent: Extent) -> list[RunConfig]:
    """Every run of a study, to an extent: by task, then method, setting and seed."""
    agents = _pick("method of the study", extent.agents, study.agents)
    asked = [task.split("-v")[0] for task in extent.tasks]
    tasks = _pick("task of the paper", asked, study.tasks, TASKS)
    return [
        configure(study, agent, f"{task}-{extent.versions}", case, seed, extent)
        for task in tasks
        for agent in agents
        for case in _cases(study, extent)
        for seed in _seeds(study, extent)
    ]


def configure(
    study: Study, agent: str, env: str, case: Mapping[str, Any], seed: int, extent: Extent
) -> RunConfig:
    """One run: the paper's, shortened by the extent's scale."""
    scale, effort = extent.scale, effort_at(extent.scale)
    rehearsing = scale < REHEARSAL
    batch = REHEARSAL_BATCH if rehearsing else BATCH
    length = max(effort.evaluations, round(PAPER_ITERATIONS[env.split("-v")[0]] * scale))
    length = min(length, extent.iterations or length)
    warmup = max(batch, round(WARMUP * scale))
    settings: dict[str, Any] = {
        "env": env,
        "agent": agent,
        "seed": seed,
        "iterations": length,
        "num_envs": NUM_ENVS,
        "batch_size": batch,
        "warmup": warmup,
        "capacity": min(CAPACITY, -(-warmup // NUM_ENVS) * NUM_ENVS + NUM_ENVS * length),
        "eval_every": max(1, length // effort.evaluations),
        "eval_episodes": effort.episodes,
        "checkpoint_every": max(1, min(5_000, length)),
        "log_every": max(1, min(100, length // 10)),
    }
    config = make_config(settings)
    values = config.resolved().hyperparameters
    values |= {k: v for k, v in {**study.shared, **case}.items() if k in values}
    values |= {name: max(1, round(values[name] * scale)) for name in COUNTED if name in values}
    if rehearsing:
        most = {k: v for k, v in REHEARSAL_MOST.items() if k in values}
        values |= {name: min(values[name], limit) for name, limit in most.items()}
    return dataclasses.replace(config, hyperparameters=values).resolved()


def _cases(study: Study, extent: Extent) -> Sequence[Mapping[str, Any]]:
    for number in extent.cases:
        if not 1 <= number <= len(study.cases):
            raise UserError(f"--cases {number}: {study.name} has {len(study.cases)}, from 1")
    return [study.cases[number - 1] for number in extent.cases] or study.cases


def _seeds(study: Study, extent: Extent) -> Sequence[int]:
    number = extent.seeds or min(len(study.seeds), effort_at(extent.scale).seeds)
    # The paper's go on as they began where more are wanted.
    return [SEEDS[0] * (i + 1) for i in range(number)]


def _pick(
    what: str, asked: Sequence[str], own: Sequence[str], known: Sequence[str] | None = None
) -> Sequence[str]:
    for name in asked:
        if name not in (known or own):
            raise UserError(unknown(what, name, known or own))
    return asked or own
