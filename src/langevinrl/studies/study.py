"""Studies of the paper as data, and the run configurations they consist of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, NamedTuple

import tyro

from langevinrl.errors import UserError, unknown
from langevinrl.runs.config import PAPER_ITERATIONS, RunConfig

AGENTS = ("nclql", "lql", "sac", "qsm", "dipo", "qvpo", "dacer", "mfp", "sdac", "dpmd")
TASKS = tuple(PAPER_ITERATIONS)
SEEDS = (100, 200, 300, 400, 500)  # of the released launcher
# Agent fields that count updates, so that they scale with the run.
COUNTED = ("decay_start", "entropy_decay", "temperature_delay")
# Below this scale no method can learn: such a run only tests the pipeline, so that an iteration
# is made cheaper as well.
REHEARSAL = 0.01
REHEARSAL_BATCH = 16
REHEARSAL_MOST = {"best_of": 4, "num_noises": 8, "num_entropy_actions": 20, "num_uniform": 4}


class Effort(NamedTuple):
    """Evaluations of a run and number of seeds.

    Evaluations are multiples of five, so that they include progress 0.2, 0.4, ... 1.0.
    """

    evaluations: int
    episodes: int
    seeds: int


def effort_at(scale: float) -> Effort:
    """Return the paper's effort from scale 0.1 up, and less where evaluation would dominate."""
    if scale >= 0.1:
        return Effort(40, 20, 5)
    return Effort(20, 5, 5) if scale >= REHEARSAL else Effort(5, 2, 2)


@dataclass(frozen=True)
class Study:
    """One comparison of the paper."""

    title: str
    about: str  # its place in the paper, and choices that are ours
    agents: tuple[str, ...] = AGENTS
    tasks: tuple[str, ...] = TASKS
    seeds: tuple[int, ...] = SEEDS
    preset: str = "paper"
    iterations: int | None = None  # of every run; the paper's by default
    evaluations: int = 40  # per run, at most
    episodes: int = 20  # per evaluation, at most
    shared: Mapping[str, Any] = field(default_factory=dict)  # fields of every agent that has them
    cases: tuple[Mapping[str, Any], ...] = ({},)  # settings to compare


@dataclass(frozen=True)
class Extent:
    """Part of a study to run; the defaults are the paper's."""

    scale: float = 1.0  # 1 is the paper; less shortens runs, warm-up, delays and decays equally
    iterations: int | None = None  # cut every run here, all else as at its scale
    # methods; the study's by default
    agents: Annotated[tuple[str, ...], tyro.conf.arg(aliases=["--methods"])] = ()
    tasks: tuple[str, ...] = ()  # tasks without version; the study's by default
    seeds: int | None = None  # number of seeds; the study's by default, 2 below scale 0.01
    versions: str = "v4"  # of the environments: v4 is the paper's, v5 runs on a recent MuJoCo
    cases: tuple[int, ...] = ()  # settings of an ablation, counted from 1; all by default

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1:
            raise UserError(f"--scale is {self.scale}; expected more than 0, at most 1, the paper")
        if self.seeds is not None and self.seeds < 1:
            raise UserError(f"--seeds is {self.seeds}; expected at least 1")
        if self.iterations is not None and self.iterations < 1:
            raise UserError(f"--iterations is {self.iterations}; expected at least 1")


def runs(study: Study, extent: Extent) -> list[RunConfig]:
    """Return every run of a part of a study: two seeds of everything, then the other seeds."""
    agents = _pick("method of the study", extent.agents, study.agents, study.agents)
    named = [task.split("-v")[0] for task in extent.tasks]
    tasks = _pick("task of the paper", named, study.tasks, TASKS)
    seeds = _seeds(study, extent)
    return [
        configure(study, agent, f"{task}-{extent.versions}", case, seed, extent)
        for some_seeds in (seeds[:2], seeds[2:])
        for task in tasks
        for agent in agents
        for case in _cases(study, extent)
        for seed in some_seeds
    ]


def configure(
    study: Study, agent: str, env: str, case: Mapping[str, Any], seed: int, extent: Extent
) -> RunConfig:
    """Return one run: the study's, shortened by the extent's scale."""
    scale, effort = extent.scale, effort_at(extent.scale)
    evaluations = min(study.evaluations, effort.evaluations)
    whole = _whole_run(env, agent, study.preset, study.iterations)
    assert whole.iterations and whole.warmup and whole.batch_size
    batch = REHEARSAL_BATCH if scale < REHEARSAL else whole.batch_size
    length = max(evaluations, round(whole.iterations * scale))
    length = min(length, extent.iterations or length)
    run = dataclasses.replace(
        whole,
        seed=seed,
        out=None,
        iterations=length,
        batch_size=batch,
        warmup=max(batch, round(whole.warmup * scale)),
        eval_every=max(1, length // evaluations),
        eval_episodes=min(study.episodes, effort.episodes),
        checkpoint_every=min(5_000, length),
        log_every=max(1, min(100, length // 10)),
    )
    seen = run.num_envs * (run.warmup_steps + length)
    values = dict(whole.hyperparameters)
    values |= {k: v for k, v in {**study.shared, **case}.items() if k in values}
    values |= {name: max(1, round(values[name] * scale)) for name in COUNTED if name in values}
    if scale < REHEARSAL:
        most = {k: v for k, v in REHEARSAL_MOST.items() if k in values}
        values |= {name: min(values[name], limit) for name, limit in most.items()}
    capacity = min(run.capacity, seen)
    return dataclasses.replace(run, capacity=capacity, hyperparameters=values).resolved()


@cache
def _whole_run(env: str, agent: str, preset: str, iterations: int | None) -> RunConfig:
    return RunConfig(env, agent, preset=preset, iterations=iterations).resolved()


def _cases(study: Study, extent: Extent) -> Sequence[Mapping[str, Any]]:
    for number in extent.cases:
        if not 1 <= number <= len(study.cases):
            raise UserError(f"--cases {number}: the study has {len(study.cases)}, from 1")
    return [study.cases[number - 1] for number in extent.cases] or study.cases


def _seeds(study: Study, extent: Extent) -> Sequence[int]:
    number = extent.seeds or min(len(study.seeds), effort_at(extent.scale).seeds)
    first, second, *_ = study.seeds
    return [first + i * (second - first) for i in range(number)]


def _pick(
    kind: str, names: Sequence[str], default: Sequence[str], known: Sequence[str]
) -> Sequence[str]:
    for name in names:
        if name not in known:
            raise UserError(unknown(kind, name, known))
    return names or default
