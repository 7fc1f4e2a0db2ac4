"""RunConfig <-> JSON <-> the agent it describes.  Needs no JAX until an agent is made."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from langevinrl.agents.presets import fields_of, names_of
from langevinrl.errors import UserError, field, unknown
from langevinrl.registry import METHODS, Method
from langevinrl.runs.env_kwargs import EnvKwargs, require_json
from langevinrl.types import Spec

if TYPE_CHECKING:
    from langevinrl.agents import Agent

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

# Fields that decide nothing of what is learned: two runs that differ in these alone are one.
BESIDE_LEARNING = ("out", "track", "compilation_cache")

# What a field may hold if not the usual: whole numbers from 1, others from 0.
RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**32 - 1),  # the bits a key is made from
    "warmup": (0, math.inf),
    "gamma": (0, 1),
    "target_rate": (0, 1),
    "log_alpha": (-math.inf, math.inf),
    "spread": (0, 1),
}


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run; as JSON it reproduces it."""

    env: str  # Gymnasium id, module:Id-v0, or module:function returning an environment
    # its name in the registry; on the command line it is the first word, not a flag
    agent: tyro.conf.Suppress[str] = "nclql"
    # settings that the agent's fields start from: paper, or fast for runs of minutes
    preset: str = "paper"
    # the agent's own fields, which have flags of their own
    hyperparameters: tyro.conf.Suppress[dict[str, Any]] = dataclasses.field(default_factory=dict)
    # passed on to the environment: key=value pairs or JSON
    env_kwargs: EnvKwargs = dataclasses.field(default_factory=dict)
    # vector steps after warm-up; the paper's length if the task is one of its nine
    iterations: int | None = None
    seed: int = 0  # first seed
    seeds: int = 1  # how many seeds to train side by side: seed, seed + seed_step, ...
    seed_step: int = 1  # from one seed to the next; the paper's are 100, 200, ...
    # run folder; unless told runs/AGENT-ENV-SEED, and -2, -3 ... where that holds a run
    out: str | None = None
    num_envs: int = 5  # environments stepped together, per seed
    # step environments in processes of their own; pays off when a step is slow
    async_envs: bool = False
    # half-width of the box the agent acts in, stretched to the task's own
    action_bound: float = 1.0
    random_actions: bool = False  # act at random throughout; the agent only learns (bandit study)
    warmup: int = 30_000  # random transitions before the first update
    batch_size: int = 256  # transitions per update
    capacity: int = 1_000_000  # transitions kept in replay, per seed
    updates_per_iteration: int = 1  # updates after each vector step
    # iterations between evaluations; a fortieth of the run unless told
    eval_every: int | None = None
    eval_episodes: int = 20  # episodes per evaluation, played side by side
    checkpoint_every: int = 5_000  # iterations between checkpoints
    log_every: int = 100  # iterations between lines of metrics.jsonl
    # log to these too: tensorboard, wandb, trackio, mlflow
    track: tuple[str, ...] = ()
    # keep compiled programs in the user's cache folder, so that the next start is quick
    compilation_cache: bool = True

    @property
    def seed_list(self) -> list[int]:
        return [self.seed + i * self.seed_step for i in range(self.seeds)]

    @property
    def warmup_steps(self) -> int:
        """Vector steps of random actions."""
        return math.ceil(self.warmup / self.num_envs)

    def resolved(self) -> RunConfig:
        """The same run with every default spelled out, checked."""
        return RunConfig(**plain(vars(self)))._resolved()

    def _resolved(self) -> RunConfig:
        _check(RunConfig, vars(self))
        require_json(self.env_kwargs)
        hyperparameters = agent_fields(self.make_agent(Spec(1, 1)))
        iterations = self._length() if self.iterations is None else self.iterations
        self._check_sizes()
        every = default_eval_every(iterations) if self.eval_every is None else self.eval_every
        return dataclasses.replace(
            self,
            iterations=iterations,
            eval_every=every,
            out=self.out or self.default_folder(),
            hyperparameters=hyperparameters,
        )

    def default_folder(self) -> str:
        """Where the run goes unless told: runs/AGENT-ENV-SEED, in letters any disk takes."""
        agent, env = (re.sub(r"[^\w.-]+", "-", name).strip("-") for name in (self.agent, self.env))
        return f"runs/{agent}-{env}-{self.seed}"

    def _check_sizes(self) -> None:
        """Fields that must fit each other."""
        if self.action_bound == 0:
            raise UserError(f"{field('action_bound', 0)} leaves no room to act")
        warmup = field("warmup", self.warmup)
        if self.warmup < self.batch_size:
            raise UserError(f"{warmup} is less than one batch of {self.batch_size}")
        if self.capacity < self.warmup:
            raise UserError(f"{field('capacity', self.capacity)} is less than {warmup}")

    def _length(self) -> int:
        """How long the paper trains on this task."""
        task = self.env.split("-v")[0]
        if task in PAPER_ITERATIONS:
            return PAPER_ITERATIONS[task]
        near = difflib.get_close_matches(task, PAPER_ITERATIONS, n=1)
        hint = f" (did you mean {self.env.replace(task, near[0])}?)" if near else ""
        raise UserError(
            f"{self.env!r} is not one of the paper's nine tasks{hint}: "
            f"say how long with {field('iterations', 'N')}"
        )

    def make_agent(self, spec: Spec) -> Agent:
        """The agent for a task of these sizes."""
        kind = agent_class(self.agent)
        known = [f.name for f in dataclasses.fields(kind) if f.name != "spec"]
        for name in self.hyperparameters:
            if name not in known:
                raise UserError(unknown(f"field of {self.agent}", name, known))
        if self.preset not in names_of(self.agent):
            raise UserError(unknown(f"preset of {self.agent}", self.preset, names_of(self.agent)))
        values = fields_of(self.agent, self.preset) | plain(self.hyperparameters)
        _check(kind, values)  # first: an agent compares its fields with each other
        agent: Agent = kind(spec=spec, **values)
        return agent

    def write(self, path: Path) -> None:
        draft = path.with_suffix(".partial")  # so that a crash leaves the old one whole
        draft.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n")
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> RunConfig:
        try:
            table = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read a run configuration from {path}: {error}") from error
        if not isinstance(table, dict) or "env" not in table:
            raise UserError(f"{path} is not a run configuration: it names no env")
        known = [f.name for f in dataclasses.fields(cls)]
        for name in table:
            if name not in known:
                raise UserError(f"{path}: " + unknown("field", name, known))
        config = cls(**plain(table))
        _check(cls, vars(config))
        return dataclasses.replace(config, hyperparameters=plain(config.hyperparameters))


def default_eval_every(iterations: int) -> int:
    """Iterations between evaluations unless told: a fortieth of the run."""
    return max(1, iterations // EVALUATIONS)


def agent_class(name: str) -> type[Any]:
    """The class of a registered agent, or of `module:Class` written elsewhere."""
    if name not in METHODS and ":" not in name:
        raise UserError(unknown("agent", name, [*METHODS, "module:Class"]))
    try:
        kind = METHODS[name].load() if name in METHODS else Method(name, "", "", "", "").load()
    except (ImportError, AttributeError) as error:
        raise UserError(f"agent {name!r} cannot be loaded: {error}") from error
    if not (dataclasses.is_dataclass(kind) and hasattr(kind, "update")):
        raise UserError(f"{name!r} is no agent; docs/adding-an-agent.md says what one is")
    return kind


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as they are compared and stored, whatever they were given as."""
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's, paths as text, lists (JSON has no others) as tuples."""
    if getattr(value, "ndim", None) == 0:
        return value.item()
    if isinstance(value, dict):
        return {k: v.item() if getattr(v, "ndim", None) == 0 else v for k, v in value.items()}
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def agent_fields(agent: Any) -> dict[str, Any]:
    """An agent's hyperparameters by name: all its fields but the task's sizes."""
    return {f.name: getattr(agent, f.name) for f in dataclasses.fields(agent) if f.name != "spec"}


def _check(kind: type[Any], values: dict[str, Any]) -> None:
    """Every field's value has its declared type, and its numbers are finite and in range."""
    hints = get_type_hints(kind)
    for name, value in values.items():
        hint = hints[name]
        if not _fits(value, hint):
            raise UserError(f"{name} is {value!r}; expected {_describe(hint)}")
        if value == () and get_args(hint)[:1] == (int,):
            raise UserError(f"{name} has no numbers; expected at least one")
        least, most = RANGES.get(name, (0 if hint is float else 1, math.inf))
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            if not (math.isfinite(number) and least <= number <= most):
                limits = f"at least {least}" if most == math.inf else f"from {least} to {most}"
                raise UserError(f"{name} is {value!r}; expected a finite number {limits}")


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
    return isinstance(value, origin or hint)


def _describe(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
