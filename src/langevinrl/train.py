"""The only training loop."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from langevinrl import checkpoint, runlog
from langevinrl.agents import Agent
from langevinrl.compiled import Compiled
from langevinrl.config import RunConfig
from langevinrl.envs.gym import EnvFactory, Lanes
from langevinrl.envs.snapshot import Snapshot
from langevinrl.errors import UserError
from langevinrl.evaluate import Evaluator
from langevinrl.replay import Replay
from langevinrl.report import last_evaluation
from langevinrl.types import Array, PyTree


class Moment(NamedTuple):
    """What a hook sees after an iteration; it copies what it keeps: memory is reused."""

    iteration: int
    state: PyTree
    metrics: dict[str, Array]


Hook = Callable[[Moment], None]


def every(period: int, hook: Hook, last: int) -> Hook:
    """`hook` at each multiple of `period`, and at the last iteration."""

    def sparse(moment: Moment) -> None:
        if moment.iteration % period == 0 or moment.iteration == last:
            hook(moment)

    return sparse


class Run:
    """One run in progress: the loop, and all that a checkpoint must hold."""

    def __init__(self, config: RunConfig, lanes: Lanes, agent: Agent) -> None:
        self.config, self.lanes, self.agent = config, lanes, agent
        seeds = config.seed_list
        self.replay = Replay(lanes.spec, config.capacity, seeds, agent.columns)
        self.compiled = Compiled(agent, seeds, config.num_envs, config.updates_per_iteration)
        self.step = 0  # vector steps taken, warm-up included
        self.wall_seconds = 0.0
        self.state = self.compiled.init()

    @classmethod
    def of(cls, config: RunConfig, env: str | EnvFactory) -> Run:
        """The run a configuration describes."""
        lanes = Lanes(
            env, config.seed_list, config.num_envs, config.action_bound, config.async_envs
        )
        return cls(config, lanes, config.make_agent(lanes.spec))

    @property
    def iteration(self) -> int:
        return max(0, self.step - self.config.warmup_steps)

    def advance(self) -> Moment:
        """One vector step and, past warm-up, its updates."""
        config, step, warm = self.config, self.step, self.step < self.config.warmup_steps
        if warm or config.random_actions:
            action = self.compiled.random_action(step)
        else:
            action = self.compiled.act(step, self.state, self.lanes.obs)
        self.replay.add(self.lanes.step(action))
        self.step += 1
        if warm:
            return Moment(0, self.state, {})
        batch = self.replay.sample(config.batch_size * config.updates_per_iteration)
        self.state, metrics, rewrite = self.compiled.update(step, self.state, batch)
        if rewrite is not None:
            self.replay.rewrite(batch.row, jax.tree.map(np.asarray, rewrite))  # type: ignore[arg-type]
        return Moment(self.iteration, self.state, metrics)

    def save(self, folder: Path, logs: dict[str, int]) -> None:
        snapshots = self.lanes.snapshot()
        envs = {"obs": self.lanes.obs}
        for i, snapshot in enumerate(snapshots):
            envs |= {f"{i}/{name}": a for name, a in (snapshot.arrays if snapshot else {}).items()}
        facts = {
            "step": self.step,
            "iteration": self.iteration,
            "wall_seconds": self.wall_seconds,
            "replay": self.replay.facts(),
            "envs": [snapshot.facts if snapshot else None for snapshot in snapshots],
            "logs": logs,
        }
        arrays = {
            "state": checkpoint.name_leaves(self.state),
            "replay": self.replay.arrays(),
            "envs": envs,
        }
        checkpoint.save(folder, self.iteration, checkpoint.Saved(arrays, facts))

    def restore(self, saved: checkpoint.Saved) -> bool:
        """Take up where a checkpoint left off; says whether the environments could follow."""
        arrays, facts = saved
        self.step, self.wall_seconds = facts["step"], facts["wall_seconds"]
        self.state = checkpoint.fill_leaves(self.state, arrays["state"])
        self.replay.restore(arrays["replay"], facts["replay"])
        snapshots = [
            None if lane is None else Snapshot(_lane(arrays["envs"], i), lane)
            for i, lane in enumerate(facts["envs"])
        ]
        return self.lanes.restore(snapshots, arrays["envs"]["obs"], restart=self.step)


def _lane(arrays: dict[str, np.ndarray], index: int) -> dict[str, np.ndarray]:
    prefix = f"{index}/"
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def run(config: RunConfig, *, env: EnvFactory | None = None, quiet: bool = False) -> Path:
    """Train from scratch into a new folder; returns it.  `env` replaces the named environment."""
    config = config.resolved()
    assert config.out is not None
    folder = Path(config.out)
    if (folder / "config.json").exists():
        raise UserError(
            f"{folder} already holds a run: continue it with `langevinrl resume {folder}`, "
            "or choose another --out"
        )
    job = Run.of(config, env or config.env)
    folder.mkdir(parents=True, exist_ok=True)
    config.write(folder / "config.json")
    (folder / "versions.json").write_text(json.dumps(runlog.versions(), indent=2) + "\n")
    job.lanes.reset()
    return _finish(job, env or config.env, folder, None, quiet)


def resume(
    folder: Path,
    iterations: int | None = None,
    *,
    env: EnvFactory | None = None,
    quiet: bool = False,
) -> Path:
    """Continue a stopped run from its last checkpoint, to `iterations` if given.

    A run that was killed before its first checkpoint starts anew; one whose checkpoints were taken
    away is left as it is.
    """
    config = read_config(folder)
    place = folder / "checkpoints"
    groups = ["state", "replay", "envs"]  # by name, so that a saved model is told from a run
    saved = checkpoint.load(place, groups) if checkpoint.exists(place) else None
    if saved is None:
        _require_early(folder, config)
    if iterations is not None:
        config = dataclasses.replace(config, iterations=iterations)
    done = saved.facts["iteration"] if saved else 0
    if done > (config.iterations or 0):
        raise UserError(f"{folder} is at iteration {done}, past --iterations {iterations}")
    job = Run.of(config, env or config.env)
    exact = job.restore(saved) if saved else bool(job.lanes.reset().size)
    config.write(folder / "config.json")
    if not exact and not quiet:
        print("These environments cannot give their state: episodes restart with derived seeds.")
    positions = saved.facts["logs"] if saved else None
    return _finish(job, env or config.env, folder, positions, quiet)


def _require_early(folder: Path, config: RunConfig) -> None:
    """Refuses to begin again over the logs of a run that must have had a checkpoint."""
    logged = last_evaluation(folder)
    if logged > config.checkpoint_every or logged >= (config.iterations or 0) > 0:
        raise UserError(
            f"{folder} was evaluated at iteration {logged}, but its checkpoints are gone, so it "
            "cannot go on. To make the run again beside it: "
            f"langevinrl train {folder / 'config.json'} --out OTHER"
        )


def read_config(folder: Path) -> RunConfig:
    if not (folder / "config.json").exists():
        raise UserError(f"{folder} is not a run folder: it has no config.json")
    return RunConfig.read(folder / "config.json")


class Recorder:
    """What a run leaves in its folder: metrics, evaluations, checkpoints; and its progress line."""

    def __init__(
        self,
        job: Run,
        env: str | EnvFactory,
        folder: Path,
        log_positions: dict[str, int] | None,
        quiet: bool,
    ) -> None:
        config = job.config
        self.job, self.config, self.folder = job, config, folder
        self.total = config.iterations or 0
        self.evaluator = Evaluator(job.agent, env, config.seed_list, config.eval_episodes)
        self.log = runlog.RunLog(folder, log_positions)
        label = f"{config.agent} {config.env}"
        self.progress = runlog.ProgressLine(label, self.total, job.iteration, quiet)
        size = f"{job.replay.num_bytes / 1e9:.2f} GB"
        self.progress.say(f"{folder}  seeds {config.seed_list}  replay {size} when full")
        self.began = time.monotonic() - job.wall_seconds

    @property
    def hooks(self) -> list[Hook]:
        assert self.config.eval_every is not None
        return [
            every(self.config.log_every, self.record, self.total),
            every(self.config.eval_every, self.evaluate, self.total),
            every(self.config.checkpoint_every, self.save, self.total),
        ]

    def record(self, moment: Moment) -> None:
        self.log.metrics(metric_rows(self.config, moment))
        self.progress.advance(moment.iteration)

    def evaluate(self, moment: Moment) -> None:
        episodes = self.evaluator.play(moment.state, moment.iteration)
        facts = {
            "agent": self.config.agent,
            "env": self.config.env,
            "iterations": moment.iteration,
            "env_steps": moment.iteration * self.config.num_envs,
            "wall_seconds": round(time.monotonic() - self.began, 2),
        }
        self.log.evaluations(
            facts | {"seed": e.seed, "episode": e.episode, "return": e.total, "length": e.length}
            for e in episodes
        )
        totals = np.array([episode.total for episode in episodes])
        self.progress.evaluation(moment.iteration, float(totals.mean()), float(totals.std()))

    def save(self, moment: Moment) -> None:
        require_finite(moment)
        self.job.wall_seconds = time.monotonic() - self.began
        self.job.save(self.folder / "checkpoints", self.log.positions())

    def close(self) -> None:
        self.progress.close()
        self.log.close()
        self.evaluator.close()


def _finish(
    job: Run, env: str | EnvFactory, folder: Path, positions: dict[str, int] | None, quiet: bool
) -> Path:
    """Loop to the end, or to a signal, and leave a checkpoint either way."""
    with (
        closing(job.lanes),
        closing(Recorder(job, env, folder, positions, quiet)) as recorder,
        interruptions() as stop,
    ):
        hooks, total = recorder.hooks, recorder.total
        while job.iteration < total:
            moment = job.advance()
            if moment.iteration == 0:
                recorder.progress.warmup(job.step, job.config.warmup_steps)
            else:
                for hook in hooks:
                    hook(moment)
            if stop and moment.iteration < total:
                recorder.save(moment)
                raise Stopped(moment.iteration, folder)
    return folder


class Stopped(KeyboardInterrupt):
    """A signal ended the run between iterations; everything is saved."""

    def __init__(self, iteration: int, folder: Path) -> None:
        super().__init__(
            f"Stopped at iteration {iteration}.  Go on with: langevinrl resume {folder}"
        )
        self.folder = folder


def metric_rows(config: RunConfig, moment: Moment) -> list[dict[str, Any]]:
    """One row per seed."""
    values = require_finite(moment)
    env_steps = moment.iteration * config.num_envs
    updates = moment.iteration * config.updates_per_iteration
    return [
        {"iterations": moment.iteration, "env_steps": env_steps, "updates": updates, "seed": seed}
        | {name: float(value[s]) for name, value in values.items()}
        for s, seed in enumerate(config.seed_list)
    ]


def require_finite(moment: Moment) -> dict[str, np.ndarray]:
    """The metrics on the host; stops the run, its checkpoint untouched, if one is not finite."""
    values = {name: np.asarray(value) for name, value in moment.metrics.items()}
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise UserError(
                f"{name} became {value} at iteration {moment.iteration}; the checkpoint is kept. "
                "A smaller learning rate or --reward-scale usually helps."
            )
    return values


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that the loop can stop between iterations.

    A second one does not wait: an environment or a compilation may hang.
    """
    received: list[int] = []

    def receive(number: int, _: Any) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    try:
        old = {s: signal.signal(s, receive) for s in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: leave signals to whoever is
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
