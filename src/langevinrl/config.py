"""RunConfig <-> JSON <-> the agent it describes."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from langevinrl.agents import REGISTER, Agent
from langevinrl.types import Spec, UserError

# Vector steps (= updates) the paper trains each of its nine tasks for.
PAPER_ITERATIONS = {
    "HalfCheetah": 1_000_000,
    "Walker2d": 1_000_000,
    "Humanoid": 1_000_000,
    "Hopper": 1_000_000,
    "Ant": 1_000_000,
    "Swimmer": 1_000_000,
    "Pusher": 200_000,
    "Reacher": 200_000,
    "InvertedDoublePendulum": 200_000,
}
EVALUATIONS = 40  # per run, as in the released code


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run; as JSON it reproduces it."""

    env: str  # Gymnasium id, module:Id-v0, or module:function returning an environment
    agent: Annotated[str, tyro.conf.Suppress] = "nclql"
    hyperparameters: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    iterations: int | None = (
        None  # vector steps after warm-up; the paper's length if the task is one of its nine
    )
    seed: int = 0  # first seed
    seeds: int = 1  # how many seeds to train side by side: seed, seed + 1, ...
    out: str | None = None  # run folder; runs/AGENT-ENV-SEED unless told
    num_envs: int = 5  # environments stepped together, per seed
    async_envs: bool = (
        False  # step environments in processes of their own; pays off when a step is slow
    )
    action_bound: float = (
        1.0  # half-width of the box the agent acts in, stretched to the task's own
    )
    random_actions: bool = False  # act at random throughout; the agent only learns (bandit study)
    warmup: int = 30_000  # random transitions before the first update
    batch_size: int = 256  # transitions per update
    capacity: int = 1_000_000  # transitions kept in replay, per seed
    updates_per_iteration: int = 1  # updates after each vector step
    eval_every: int | None = (
        None  # iterations between evaluations; a fortieth of the run unless told
    )
    eval_episodes: int = 20  # episodes per evaluation, played side by side
    checkpoint_every: int = 5_000  # iterations between checkpoints
    log_every: int = 100  # iterations between lines of metrics.jsonl

    @property
    def seed_list(self) -> list[int]:
        return list(range(self.seed, self.seed + self.seeds))

    @property
    def warmup_steps(self) -> int:
        """Vector steps of random actions."""
        return math.ceil(self.warmup / self.num_envs)

    def resolved(self) -> RunConfig:
        """The same run with every default spelled out, checked."""
        if self.agent not in REGISTER:
            raise UserError(unknown("agent", self.agent, REGISTER))
        paper_length = PAPER_ITERATIONS.get(self.env.split("-v")[0])
        iterations = paper_length if self.iterations is None else self.iterations
        if iterations is None:
            raise UserError(
                f"{self.env!r} is not one of the paper's nine tasks: say how long with --iterations"
            )
        eval_every = self.eval_every or max(1, iterations // EVALUATIONS)
        name = self.env.replace(":", "-").replace("/", "-")
        out = self.out or f"runs/{self.agent}-{name}-{self.seed}"
        hyperparameters = agent_fields(self.make_agent(Spec(1, 1)))
        config = dataclasses.replace(
            self,
            iterations=iterations,
            eval_every=eval_every,
            out=out,
            hyperparameters=hyperparameters,
        )
        _check(config)
        if config.warmup < config.batch_size:
            raise UserError(
                f"--warmup {config.warmup} is less than one batch of {config.batch_size}"
            )
        if config.capacity < config.warmup:
            raise UserError(f"--capacity {config.capacity} is less than --warmup {config.warmup}")
        return config

    def make_agent(self, spec: Spec) -> Agent:
        """The agent for a task of these sizes."""
        kind = REGISTER[self.agent]
        known = [f.name for f in dataclasses.fields(kind) if f.name != "spec"]
        for name in self.hyperparameters:
            if name not in known:
                raise UserError(unknown(f"field of {self.agent}", name, known))
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in self.hyperparameters.items()
        }
        agent = kind(spec=spec, **values)
        _check(agent)
        return agent  # type: ignore[return-value]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> RunConfig:
        try:
            table = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read a run configuration from {path}: {error}") from error
        known = [f.name for f in dataclasses.fields(cls)]
        for name in table:
            if name not in known:
                raise UserError(f"{path}: " + unknown("field", name, known))
        return cls(**table)


def agent_fields(agent: Any) -> dict[str, Any]:
    """An agent's hyperparameters by name: all its fields but the task's sizes."""
    return {f.name: getattr(agent, f.name) for f in dataclasses.fields(agent) if f.name != "spec"}


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One sentence for a name that is not there: what it was, what is near, what there is."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return (
        f"unknown {what} {name!r}{hint} Known: {', '.join(known)}"
        if hint
        else (f"unknown {what} {name!r}. Known: {', '.join(known)}")
    )


def _check(table: Any) -> None:
    """Every field has its declared type; counts and scales are not negative; numbers are finite."""
    hints = get_type_hints(type(table))
    for f in dataclasses.fields(table):
        value, hint = getattr(table, f.name), hints[f.name]
        if f.name in ("spec", "hyperparameters", "agent"):
            continue
        if not _fits(value, hint):
            wanted = str(getattr(hint, "__name__", hint)).replace("typing.", "")
            raise UserError(f"{f.name} is {value!r}; expected {wanted}")
        numbers = value if isinstance(value, tuple) else (value,)
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            least = 0 if f.name in ("seed", "warmup") or isinstance(number, float) else 1
            if not math.isfinite(number) or number < least:
                raise UserError(
                    f"{f.name} is {value!r}; expected a finite number of at least {least}"
                )


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
