"""Run configuration: fields, defaults, validation, JSON.  Imports JAX only to build an agent."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from langevinrl.errors import UserError, collect_errors, field, require_none, unknown
from langevinrl.registry import METHODS, Method
from langevinrl.runs import presets
from langevinrl.runs.checks import field_mistakes, plain
from langevinrl.runs.env_kwargs import EnvKwargs, require_json
from langevinrl.storage.files import create_text, read_json, write_text
from langevinrl.storage.trust import importing_names, require_trusted
from langevinrl.types import Spec

if TYPE_CHECKING:
    from langevinrl.agents import Agent

# Iterations the paper trains for on each of its nine tasks.
PAPER_ITERATIONS = {
    **dict.fromkeys(("HalfCheetah", "Walker2d", "Humanoid", "Hopper", "Ant", "Swimmer"), 1_000_000),
    **dict.fromkeys(("Pusher", "Reacher", "InvertedDoublePendulum"), 200_000),
}

# Metadata of the fields that do not affect learning.
NO_EFFECT = {"affects": "nothing"}  # on any number: two runs that differ in these alone are one
SCHEDULE = {"affects": "schedule"}  # on length, evaluation and logs: may change at a resume


@dataclass(frozen=True)
class RunConfig:
    """Configuration of a run.  Its JSON reproduces the run."""

    env: str  # Gymnasium id, module:Id-v0, or module:function returning an environment
    # name in the registry; on the command line it is the first word, not a flag
    agent: tyro.conf.Suppress[str] = "nclql"
    # named values for fields of the agent and the run, which given values override: short, for
    # comparing methods in minutes; or paper, the defaults with the paper's evaluations
    preset: str | None = dataclasses.field(default=None, metadata=NO_EFFECT)
    # the agent's own fields, which have flags of their own
    hyperparameters: tyro.conf.Suppress[dict[str, Any]] = dataclasses.field(default_factory=dict)
    # passed to the environment: key=value pairs or JSON
    env_kwargs: EnvKwargs = dataclasses.field(default_factory=dict)
    # vector steps after warm-up; by default the paper's, for its nine tasks
    iterations: int | None = dataclasses.field(default=None, metadata=SCHEDULE)
    seed: int = 0  # first seed
    seeds: int = 1  # number of seeds trained together: seed, seed + seed_step, ...
    seed_step: int = 1  # difference between seeds; the paper's are 100, 200, ...
    # run folder; by default runs/AGENT-ENV-SEED, with -2, -3 ... if that holds a run
    out: str | None = dataclasses.field(default=None, metadata=NO_EFFECT)
    num_envs: int = 5  # environments stepped together, per seed
    # step each environment in its own process; pays off when a step is slow
    async_envs: bool = dataclasses.field(default=False, metadata=SCHEDULE)
    # seconds an environment may take for a step or reset before it counts as failed; 0: no limit
    env_timeout: float = dataclasses.field(default=300.0, metadata=NO_EFFECT)
    # when an environment fails: stop, or rebuild it and continue without the failed step
    on_env_error: Literal["stop", "reset"] = dataclasses.field(default="stop", metadata=NO_EFFECT)
    # half-width of the agent's action box, which is scaled to the environment's own
    action_bound: float = 1.0
    random_actions: bool = False  # act at random throughout; the agent only learns (bandit study)
    # random transitions before the first update; 30000 unless the method or preset sets it
    warmup: int | None = None
    # transitions per update; 256 unless the method or preset sets it
    batch_size: int | None = None
    # divide rewards by the root mean square of those in the replay buffer after warm-up; off unless
    # the method or preset sets it
    reward_norm: Annotated[bool | None, tyro.conf.arg(constructor=bool)] = None
    capacity: int = 1_000_000  # transitions kept in the replay buffer, per seed
    updates_per_iteration: int = 1  # updates after each vector step
    n_step: int = 1  # rewards summed before bootstrapping; the paper's is 1
    # iterations between evaluations; by default a twentieth of the run
    eval_every: int | None = dataclasses.field(default=None, metadata=SCHEDULE)
    # episodes per evaluation, played side by side; by default 3 to 20, by the run's length
    eval_episodes: int | None = dataclasses.field(default=None, metadata=SCHEDULE)
    # iterations between checkpoints
    checkpoint_every: int = dataclasses.field(default=5_000, metadata=SCHEDULE)
    # number of checkpoints kept, in case the newest is damaged
    keep_checkpoints: int = dataclasses.field(default=2, metadata=NO_EFFECT)
    # iterations between lines of metrics.jsonl
    log_every: int = dataclasses.field(default=100, metadata=SCHEDULE)
    # also log to: tensorboard, wandb, mlflow
    track: tuple[str, ...] = dataclasses.field(default=(), metadata=NO_EFFECT)
    # keep compiled programs in the user's cache folder, so that the next start is fast
    compilation_cache: bool = dataclasses.field(default=True, metadata=NO_EFFECT)

    @property
    def seed_list(self) -> list[int]:
        return [self.seed + i * self.seed_step for i in range(self.seeds)]

    @property
    def warmup_steps(self) -> int:
        """Vector steps of random actions."""
        return math.ceil(_set(self.warmup) / self.num_envs)

    @property
    def rows_per_iteration(self) -> int:
        """Transitions drawn from the replay buffer for the updates of one iteration."""
        return _set(self.batch_size) * self.updates_per_iteration

    @property
    def length(self) -> int:
        """Number of iterations: as given, or as long as the paper trains on this task."""
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

    @property
    def evaluation(self) -> tuple[int, int]:
        """Iterations between evaluations and episodes in each, as given or by default."""
        every, episodes = self.default_evaluation(self.length)
        return self.eval_every or every, self.eval_episodes or episodes

    def resolved(self) -> RunConfig:
        """Validate the run and return it with every default filled in."""
        require_none(self.mistakes())
        run = self._normalised()
        every, episodes = run.evaluation
        # Characters that every file system accepts.
        agent, env = (re.sub(r"[^\w.-]+", "-", name).strip("-") for name in (run.agent, run.env))
        return dataclasses.replace(
            run,
            iterations=run.length,
            eval_every=every,
            eval_episodes=episodes,
            out=run.out or f"runs/{agent}-{env}-{run.seed}",
            hyperparameters=agent_fields(run.make_agent(Spec(1, 1))),
        )

    def default_evaluation(self, iterations: int) -> tuple[int, int]:
        """Return the default `eval_every` and `eval_episodes` of a run of this length."""
        transitions = _set(self.warmup) + iterations * self.num_envs
        return presets.default_evaluation(self.preset, self.env, iterations, transitions)

    def with_defaults(self) -> RunConfig:
        """Return the run with the preset's or the agent's values for fields that were not given."""
        missing = [name for name in presets.RUN_DEFAULTS if getattr(self, name) is None]
        values: dict[str, Any] = presets.RUN_DEFAULTS
        if missing and isinstance(self.agent, str):
            with contextlib.suppress(UserError):  # `mistakes` reports it
                kind = agent_class(self.agent)
                values = values | presets.preset_values(self.agent, kind, self.preset)
        return dataclasses.replace(self, **{name: values[name] for name in missing})

    def _normalised(self) -> RunConfig:
        """Return the run with defaults, and with values of types that JSON has."""
        fields = plain(vars(self.with_defaults()))
        if isinstance(self.track, str):  # a single tracker
            fields["track"] = (self.track,)
        return RunConfig(**fields)

    def mistakes(self, *, any_length: bool = False) -> list[str]:
        """Return a sentence for every mistake that can be found without the environment.

        `any_length` allows a run without `iterations` on a task that is not the paper's.
        """
        run = self._normalised()
        found = field_mistakes(RunConfig, vars(run))
        if not found:
            found = [*collect_errors(require_json, run.env_kwargs), *run._size_mistakes()]
            found += [] if any_length else collect_errors(lambda: run.length)
        if isinstance(run.agent, str) and isinstance(run.hyperparameters, dict):
            found += run._agent_mistakes()
        return found

    def _size_mistakes(self) -> list[str]:
        """Check fields that must fit each other."""
        found = []
        if self.env.startswith(":"):
            found.append(f"env is {self.env!r}; expected a Gymnasium id or module:function")
        warmup = field("warmup", self.warmup)
        if _set(self.warmup) < _set(self.batch_size):
            found.append(f"{warmup} is less than one batch of {self.batch_size}")
        if self.capacity < _set(self.warmup):
            found.append(f"{field('capacity', self.capacity)} is less than {warmup}")
        if self.capacity < self.n_step * self.num_envs:
            found.append(
                f"{field('capacity', self.capacity)} is less than {field('n_step', self.n_step)} "
                f"of {self.num_envs} environments"
            )
        if max(self.seed_list[-1], 0) > 2**32 - 1:
            found.append(
                f"{field('seeds', self.seeds)} from {field('seed', self.seed)} ends at "
                f"{self.seed_list[-1]}; the largest seed is {2**32 - 1}"
            )
        if any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in self.out or ""):
            found.append(f"{field('out')} is {self.out!r}; expected a path that can be printed")
        return found

    def make_agent(self, spec: Spec) -> Agent:
        """Build the agent for a task of these sizes."""
        require_none(self._agent_mistakes())
        kind = agent_class(self.agent)
        agent: Agent = kind(spec=spec, **self._agent_values(kind))
        return agent

    def _agent_values(self, kind: type[Any]) -> dict[str, Any]:
        """Return the agent's fields that the preset or the user sets."""
        given = presets.preset_values(self.agent, kind, self.preset)
        own = {name: given[name] for name in given if name not in presets.RUN_DEFAULTS}
        return own | plain(self.hyperparameters)

    def _agent_mistakes(self) -> list[str]:
        """Check the agent's name, its preset and its hyperparameters."""
        try:
            kind = agent_class(self.agent)
            given = self._agent_values(kind)
        except UserError as error:
            return [str(error)]
        known = [f.name for f in dataclasses.fields(kind) if f.name != "spec"]
        values = {name: value for name, value in given.items() if name in known}
        found = [unknown(f"field of {self.agent}", n, known) for n in given if n not in known]
        found += field_mistakes(kind, values)
        # Last, because an agent compares its fields with each other.
        return found or collect_errors(kind, spec=Spec(1, 1), **values)

    def imported(self) -> list[str]:
        """List the names of custom agents and environments that running it would import."""
        return importing_names(self.agent, self.env, self.env_kwargs)

    def write(self, path: Path, *, exclusive: bool = False) -> None:
        """Write the run as JSON, atomically; `exclusive` refuses to replace a file."""
        text = json.dumps(dataclasses.asdict(self), indent=2) + "\n"
        if not exclusive:
            write_text(path, text)
        elif not create_text(path, text):
            raise UserError(f"{path} is there already: another process has just made it")

    @classmethod
    def read(cls, path: Path, *, trust: bool = False, import_env: bool = True) -> RunConfig:
        """Read a configuration whose names may be imported (`storage.trust`).

        Without `import_env` the environment is not, because another replaces it.
        """
        config = cls.parse(path)
        names = config.imported() if import_env else importing_names(config.agent, "", {})
        require_trusted(path, names, trust)
        return config

    @classmethod
    def parse(cls, path: Path) -> RunConfig:
        """Read a configuration without trusting the names in it."""
        table = read_json(path, "a run configuration")
        if not isinstance(table, dict) or "env" not in table:
            raise UserError(f"{path} is not a run configuration: it names no env")
        known = [f.name for f in dataclasses.fields(cls)]
        own = {name: value for name, value in plain(table).items() if name in known}
        strange = [unknown("field", name, known) for name in table if name not in known]
        require_none(strange + field_mistakes(cls, own), f"{path}: ")
        return cls(**own | {"hyperparameters": plain(own.get("hyperparameters", {}))})


# Runs that differ only in the first are one job of a sweep; in the second, seeds of one curve.
FIELDS_WITHOUT_EFFECT = {f.name for f in dataclasses.fields(RunConfig) if f.metadata == NO_EFFECT}
FIELDS_BESIDE_LEARNING = {f.name for f in dataclasses.fields(RunConfig) if f.metadata}


def _set(value: int | None) -> int:
    """Return the value of a field that `with_defaults` has filled in."""
    assert value is not None, "a field has no value yet: call with_defaults() or resolved() first"
    return value


def agent_class(name: str) -> type[Any]:
    """Return the class of a registered agent, or of a custom one named `module:Class`."""
    if name not in METHODS and ":" not in name:
        raise UserError(unknown("agent", name, [*METHODS, "module:Class"]))
    try:
        kind = METHODS[name].load() if name in METHODS else Method(name, "", "", "", "").load()
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"agent {name!r} cannot be loaded: {error}") from error
    if not (dataclasses.is_dataclass(kind) and hasattr(kind, "update")):
        raise UserError(f"{name!r} is not an agent; docs/adding-an-agent.md says what one is")
    return kind


def agent_fields(agent: Any) -> dict[str, Any]:
    """Return an agent's hyperparameters by name: all its fields except the task's sizes."""
    return {f.name: getattr(agent, f.name) for f in dataclasses.fields(agent) if f.name != "spec"}
