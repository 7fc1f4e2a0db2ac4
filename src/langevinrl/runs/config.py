"""RunConfig <-> JSON <-> the agent it describes.  Needs no JAX until an agent is made."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from langevinrl.errors import UserError, field, require_none, said, unknown
from langevinrl.registry import METHODS, Method
from langevinrl.runs.checks import field_mistakes, plain
from langevinrl.runs.env_kwargs import EnvKwargs, require_json
from langevinrl.runs.presets import PAPER, Default, preset_names, preset_values, spell_out
from langevinrl.storage.files import read_json, write_text
from langevinrl.storage.trust import importing_names, require_trusted
from langevinrl.types import Spec

if TYPE_CHECKING:
    from langevinrl.agents import Agent

# Vector steps (= updates) the paper trains each of its nine tasks for.
PAPER_ITERATIONS = {
    **dict.fromkeys(("HalfCheetah", "Walker2d", "Humanoid", "Hopper", "Ant", "Swimmer"), 1_000_000),
    **dict.fromkeys(("Pusher", "Reacher", "InvertedDoublePendulum"), 200_000),
}
EVALUATIONS = 40  # per run, as in the released code

# Metadata of the fields that do not affect learning.
NO_EFFECT = {"affects": "nothing"}  # on any number: two runs that differ in these alone are one
SCHEDULE = {"affects": "schedule"}  # on length, evaluation and logs: may change at a resume


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run; as JSON it reproduces it."""

    env: str  # Gymnasium id, module:Id-v0, or module:function returning an environment
    # its name in the registry; on the command line it is the first word, not a flag
    agent: tyro.conf.Suppress[str] = "nclql"
    # named values of the agent's fields and the run's, under those given: paper, fast for runs of
    # minutes (nclql, lql, sac), fast-balance where an episode ends in a fall (nclql)
    preset: str = dataclasses.field(default=PAPER, metadata=NO_EFFECT)
    # the agent's own fields, which have flags of their own
    hyperparameters: tyro.conf.Suppress[dict[str, Any]] = dataclasses.field(default_factory=dict)
    # passed on to the environment: key=value pairs or JSON
    env_kwargs: EnvKwargs = dataclasses.field(default_factory=dict)
    # vector steps after warm-up; the paper's length if the task is one of its nine
    iterations: int | None = dataclasses.field(default=None, metadata=SCHEDULE)
    seed: int = 0  # first seed
    seeds: int = 1  # how many seeds to train side by side: seed, seed + seed_step, ...
    seed_step: int = 1  # from one seed to the next; the paper's are 100, 200, ...
    # run folder; unless told runs/AGENT-ENV-SEED, and -2, -3 ... where that holds a run
    out: str | None = dataclasses.field(default=None, metadata=NO_EFFECT)
    num_envs: int = Default(5)  # environments stepped together, per seed
    # step environments in processes of their own; pays off when a step is slow
    async_envs: bool = dataclasses.field(default=False, metadata=SCHEDULE)
    # seconds one environment may take for a step or a reset before it counts as failed; 0: for ever
    env_timeout: float = dataclasses.field(default=300.0, metadata=NO_EFFECT)
    # if an environment fails: stop, or make it anew and go on without the step that failed
    on_env_error: Literal["stop", "reset"] = dataclasses.field(default="stop", metadata=NO_EFFECT)
    # half-width of the box the agent acts in, stretched to the task's own
    action_bound: float = 1.0
    random_actions: bool = False  # act at random throughout; the agent only learns (bandit study)
    warmup: int = Default(30_000)  # random transitions before the first update
    batch_size: int = Default(256)  # transitions per update
    capacity: int = Default(1_000_000)  # transitions kept in replay, per seed
    updates_per_iteration: int = Default(1)  # updates after each vector step
    n_step: int = Default(1)  # rewards summed before the value is consulted; 1 is the paper's
    # iterations between evaluations; a fortieth of the run unless told
    eval_every: int | None = dataclasses.field(default=None, metadata=SCHEDULE)
    # episodes per evaluation, played side by side
    eval_episodes: int = dataclasses.field(default=20, metadata=SCHEDULE)
    # iterations between checkpoints
    checkpoint_every: int = dataclasses.field(default=5_000, metadata=SCHEDULE)
    # the last so many are kept, should the newest be damaged
    keep_checkpoints: int = dataclasses.field(default=2, metadata=NO_EFFECT)
    # iterations between lines of metrics.jsonl
    log_every: int = dataclasses.field(default=100, metadata=SCHEDULE)
    # log to these too: tensorboard, wandb, trackio, mlflow
    track: tuple[str, ...] = dataclasses.field(default=(), metadata=NO_EFFECT)
    # keep compiled programs in the user's cache folder, so that the next start is quick
    compilation_cache: bool = dataclasses.field(default=True, metadata=NO_EFFECT)

    @property
    def seed_list(self) -> list[int]:
        return [self.seed + i * self.seed_step for i in range(self.seeds)]

    @property
    def warmup_steps(self) -> int:
        """Vector steps of random actions."""
        return math.ceil(self.warmup / self.num_envs)

    def resolved(self) -> RunConfig:
        """The same run with every default spelled out, checked."""
        require_none(self.mistakes())
        return self._plain()._resolved()

    def with_preset(self) -> RunConfig:
        """The same run with its preset's values for what was not given of the run's own fields.

        A preset may set those marked `Default`; the agent's own follow when it is made.  In what is
        spelled out so, the preset's name is but a record.  An agent or a preset that there is not
        is left to `mistakes`.
        """
        values = {}
        if self.preset != PAPER and isinstance(self.agent, str):
            with contextlib.suppress(UserError):
                values = preset_values(agent_class(self.agent), self.preset)
        return RunConfig(**spell_out(vars(self), values))

    def _plain(self) -> RunConfig:
        """The same with values of JSON's own types, and its preset's."""
        fields = plain(vars(self.with_preset()))
        if isinstance(self.track, str):  # one alone, as people write it
            fields["track"] = (self.track,)
        return RunConfig(**fields)

    def mistakes(self) -> list[str]:
        """A sentence for all that is wrong with it, as far as can be told without its task."""
        own = self._plain()
        found = field_mistakes(RunConfig, vars(own))
        if not found:
            found = [*said(require_json, own.env_kwargs), *own._size_mistakes(), *said(own._length)]
        if isinstance(own.agent, str) and isinstance(own.hyperparameters, dict):
            found += own._agent_mistakes()
        return found

    def _resolved(self) -> RunConfig:
        hyperparameters = agent_fields(self.make_agent(Spec(1, 1)))
        iterations = self._length()
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

    def _size_mistakes(self) -> list[str]:
        """Of fields that must fit each other."""
        found = []
        if self.env.startswith(":"):
            found.append(f"env is {self.env!r}; expected a Gymnasium id or module:function")
        if self.action_bound == 0:
            found.append(f"{field('action_bound', 0)} leaves no room to act")
        warmup = field("warmup", self.warmup)
        if self.warmup < self.batch_size:
            found.append(f"{warmup} is less than one batch of {self.batch_size}")
        if self.capacity < self.warmup:
            found.append(f"{field('capacity', self.capacity)} is less than {warmup}")
        if self.capacity < self.n_step * self.num_envs:
            found.append(
                f"{field('capacity', self.capacity)} is less than {field('n_step', self.n_step)} "
                f"of {self.num_envs} environments"
            )
        if max(self.seed_list[-1], 0) > 2**32 - 1:
            found.append(
                f"{field('seeds', self.seeds)} from {field('seed', self.seed)} ends at "
                f"{self.seed_list[-1]}; the largest seed there is is {2**32 - 1}"
            )
        if any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in self.out or ""):
            found.append(f"{field('out')} is {self.out!r}; expected a path that can be printed")
        return found

    def _length(self) -> int:
        """How many iterations: as told, or as long as the paper trains on this task."""
        task = self.env.split("-v")[0]
        if self.iterations is not None:
            return self.iterations
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
        require_none(self._agent_mistakes())
        kind = agent_class(self.agent)
        values = self._preset_values(kind) | plain(self.hyperparameters)
        agent: Agent = kind(spec=spec, **values)
        return agent

    def _preset_values(self, kind: type[Any]) -> dict[str, Any]:
        """What the preset sets that is not a field of the run: of the agent, or a slip."""
        values = preset_values(kind, self.preset)
        return {name: value for name, value in values.items() if name not in PRESET_FIELDS}

    def _agent_mistakes(self) -> list[str]:
        """Of the agent's name, or of its hyperparameters."""
        try:
            kind = agent_class(self.agent)
        except UserError as error:
            return [str(error)]
        known = [f.name for f in dataclasses.fields(kind) if f.name != "spec"]
        strange = [name for name in self.hyperparameters if name not in known]
        if self.preset not in preset_names(kind):
            return [unknown(f"preset of {self.agent}", self.preset, preset_names(kind))]
        preset = self._preset_values(kind)
        given = preset | plain(self.hyperparameters)
        values = {name: value for name, value in given.items() if name in known}
        found = [unknown(f"field of {self.agent}", str(name), known) for name in strange]
        told, settable = f"field in preset {self.preset!r}", [*known, *PRESET_FIELDS]
        found += [unknown(told, name, settable) for name in preset if name not in known]
        found += field_mistakes(kind, values)
        # Last, if at all: an agent compares its fields with each other.
        return found or said(kind, spec=Spec(1, 1), **values)

    def imported(self) -> list[str]:
        """What running it would import by name: an agent or an environment of someone's own."""
        return importing_names(self.agent, self.env, self.env_kwargs)

    def write(self, path: Path, *, exclusive: bool = False) -> None:
        """As JSON, whole or not at all; `exclusive` refuses a path where there is one."""
        text = json.dumps(dataclasses.asdict(self), indent=2) + "\n"
        write_text(path, text, exclusive=exclusive)

    @classmethod
    def read(cls, path: Path, *, trust: bool = False) -> RunConfig:
        """The configuration in a file, whose names are fit to be followed (`storage.trust`)."""
        config = cls.parse(path)
        require_trusted(path, config.imported(), trust)
        return config

    @classmethod
    def parse(cls, path: Path) -> RunConfig:
        """The configuration in a file, to be looked at: its names may be a stranger's."""
        table = read_json(path, "a run configuration")
        if not isinstance(table, dict) or "env" not in table:
            raise UserError(f"{path} is not a run configuration: it names no env")
        known = [f.name for f in dataclasses.fields(cls)]
        own = {name: value for name, value in plain(table).items() if name in known}
        strange = [unknown("field", name, known) for name in table if name not in known]
        require_none(strange + field_mistakes(cls, own), f"{path}: ")
        config = cls(**own | {"hyperparameters": plain(own.get("hyperparameters", {}))})
        whole = config.hyperparameters and all(table.get(name) for name in OLDEST_FIELDS)
        return as_written(config) if whole else config


# Runs that differ only in the first are one job of a sweep; in the second, seeds of one curve.
FIELDS_WITHOUT_EFFECT = {f.name for f in dataclasses.fields(RunConfig) if f.metadata == NO_EFFECT}
FIELDS_BESIDE_LEARNING = {f.name for f in dataclasses.fields(RunConfig) if f.metadata}
# What the file of a resolved run has had from the first on, and one written by hand hardly has.
OLDEST_FIELDS = (
    "out", "eval_every", "num_envs", "warmup", "batch_size", "capacity", "updates_per_iteration",
)  # fmt: skip
# The run's fields that a preset may set.
PRESET_FIELDS = [f.name for f in dataclasses.fields(RunConfig) if isinstance(f.default, Default)]


def as_written(config: RunConfig) -> RunConfig:
    """A run that was spelled out: a field it lacks is newer than it, and was not its preset's."""
    own = config.hyperparameters
    if config.agent in METHODS and config.preset != PAPER:  # else a stranger's, or needs nothing
        own = agent_fields(agent_class(config.agent)(spec=Spec(1, 1))) | own
    return RunConfig(**spell_out(vars(config), {}) | {"hyperparameters": own})


def default_eval_every(iterations: int) -> int:
    """Iterations between evaluations unless told: a fortieth of the run."""
    return max(1, iterations // EVALUATIONS)


def agent_class(name: str) -> type[Any]:
    """The class of a registered agent, or of `module:Class` written elsewhere."""
    if name not in METHODS and ":" not in name:
        raise UserError(unknown("agent", name, [*METHODS, "module:Class"]))
    try:
        kind = METHODS[name].load() if name in METHODS else Method(name, "", "", "", "").load()
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"agent {name!r} cannot be loaded: {error}") from error
    if not (dataclasses.is_dataclass(kind) and hasattr(kind, "update")):
        raise UserError(f"{name!r} is no agent; docs/adding-an-agent.md says what one is")
    return kind


def agent_fields(agent: Any) -> dict[str, Any]:
    """An agent's hyperparameters by name: all its fields but the task's sizes."""
    return {f.name: getattr(agent, f.name) for f in dataclasses.fields(agent) if f.name != "spec"}
