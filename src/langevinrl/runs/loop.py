"""The training loop."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from langevinrl.agents import Agent
from langevinrl.envs.check import require_sound
from langevinrl.envs.factory import EnvFactory, as_factory
from langevinrl.envs.vector import VectorEnv
from langevinrl.logs.episodes import EpisodeStats
from langevinrl.replay.buffer import Replay
from langevinrl.replay.n_step import discount_of
from langevinrl.runs import compiled
from langevinrl.runs.config import RunConfig
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.finite import LastUpdate, require_finite_actions, require_finite_update
from langevinrl.storage import checkpoint
from langevinrl.storage.checkpoint import CheckpointData
from langevinrl.storage.folder import ENVS, REPLAY, STATE
from langevinrl.storage.metadata import raise_as_corrupt, require_metadata
from langevinrl.storage.run_log import LogDigests
from langevinrl.types import Array, PyTree, Spec

if TYPE_CHECKING:
    from langevinrl.runs.callbacks import Callback


class StepInfo(NamedTuple):
    """State of a run after a vector step; copy what you keep, because memory is reused."""

    warming_up: bool  # random actions, no updates yet
    iteration: int  # vector steps after warm-up; 0 during warm-up
    state: PyTree  # (S, ...)
    metrics: dict[str, Array]  # (S,) each; empty during warm-up


class Run:
    """A run in progress: the loop and everything a checkpoint holds.

    with Run(config, callbacks=[Evaluate(every=100)]) as run:
        run.until(1_000)

    Building a run validates the configuration and writes no file.  Entering it starts the
    environments, or restores them and the weights from a checkpoint; leaving it closes them, also
    after an error.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        env: EnvFactory | None = None,
        agent: Callable[[Spec], Agent] | None = None,
        callbacks: Sequence[Callback] = (),
        start: CheckpointData | None = None,
    ) -> None:
        """`env` and `agent` replace those of the configuration; `start` is where to resume."""
        self.config = config = config.with_defaults()
        self.env = env or as_factory(config.env, config.env_kwargs)
        self.callbacks, self.start = list(callbacks), start
        if start is None:
            require_sound(self.env)
        seeds = config.seed_list
        self.envs = self._build_envs()
        try:
            self.agent: Agent = (agent or config.make_agent)(self.envs.spec)
            discount_of(self.agent, config.n_step)  # refuses before anything is built
            self.replay = Replay(
                self.envs.spec,
                config.capacity,
                seeds,
                self.agent.columns,
                num_envs=config.num_envs,
                reward_norm=bool(config.reward_norm),
            )
        except BaseException:
            self.envs.close()
            raise
        self.episodes = EpisodeStats(self.envs.shape)
        self.seed_keys = compiled.seed_keys(seeds)
        self._compile()
        self.vector_steps = 0  # so far, including warm-up
        self.last_update: LastUpdate | None = None
        self.folder: Path | None = None  # absolute; set once a run writes one
        self.stopping = False  # a callback asked to stop
        self.exact = True  # the environments could be restored exactly
        self.began = time.monotonic()

    @property
    def iteration(self) -> int:
        """Vector steps done after warm-up."""
        return max(0, self.vector_steps - self.config.warmup_steps)

    @property
    def wall_seconds(self) -> float:
        """Time spent on this run, including the time before a resume."""
        return time.monotonic() - self.began

    def __enter__(self) -> Run:
        with ExitStack() as stack:
            stack.callback(self.envs.close)
            self.state = self.compiled.init(self.seed_keys)
            if self.start is None:
                self.envs.reset()
            else:
                self._restore(self.start)
                self.start = None  # frees its copy of the replay buffer
            for callback in self.callbacks:
                self._note_stop(callback.on_start(self))
                stack.callback(callback.on_end, self)
            self._tear_down = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._tear_down.__exit__(*error)

    def until(self, iteration: int) -> None:
        """Train until `iteration` iterations are done or a callback asks to stop."""
        while self.iteration < iteration and not self.stopping:
            info = self.advance()
            for callback in self.callbacks:
                self._note_stop(callback.on_step(self, info))

    def advance(self) -> StepInfo:
        """Take one vector step and, after warm-up, its updates."""
        config, step = self.config, self.vector_steps
        warming_up = step < config.warmup_steps
        if warming_up or config.random_actions:
            drawn = self.compiled.random_action(self.seed_keys, step)
        else:
            drawn = self.compiled.act(self.seed_keys, step, self.state, self.envs.obs)
        action = np.asarray(drawn)
        # The last update is complete because the action used its weights, so this does not wait.
        self.require_finite_update()
        require_finite_actions(action, self.iteration, config.seed_list)
        transition = self.envs.step(action)
        self.replay.add(transition)
        self.episodes.add(transition.reward, self.envs.ended, self.envs.cut)
        self.vector_steps += 1
        if warming_up:
            return StepInfo(True, 0, self.state, {})
        batch = self.replay.sample(
            config.rows_per_iteration,
            n_step=config.n_step,
            gamma=discount_of(self.agent, config.n_step),
        )
        updated = self.compiled.update(self.seed_keys, step, self.state, batch)
        self.state, metrics, rewrite = updated
        self.last_update = LastUpdate(self.iteration, metrics, batch)
        if rewrite is not None:
            columns = jax.tree.map(np.asarray, rewrite)
            for column in columns.values():
                require_finite_actions(column, self.iteration, config.seed_list)
            self.replay.rewrite(batch.row, columns)  # type: ignore[arg-type]  # a NumPy batch
        return StepInfo(False, self.iteration, self.state, metrics)

    def require_finite_update(self) -> dict[str, np.ndarray]:
        """Return the metrics of the last update; raise if one is not finite."""
        if self.last_update is None:
            return {}
        return require_finite_update(self.last_update, self.config.seed_list)

    def report(self, evaluation: Evaluation) -> None:
        """Pass an evaluation to every callback."""
        for callback in self.callbacks:
            self._note_stop(callback.on_evaluation(self, evaluation))

    def change_agent(self, **fields: Any) -> None:
        """Continue with other hyperparameters and the same weights, replay and environments.

        For schedules with few changes, such as a smaller learning rate near the end.  The fields
        must not change the shape of the state.
        """
        self.agent = dataclasses.replace(self.agent, **fields)  # type: ignore[type-var]  # agents are dataclasses
        self._compile()

    def checkpoint(self, logs: LogDigests) -> CheckpointData:
        """Return everything that resuming from here needs."""
        metadata = {
            "step": self.vector_steps,
            "iteration": self.iteration,
            "wall_seconds": self.wall_seconds,
            "replay": self.replay.metadata(),
            "envs": self.envs.metadata(),
            "episodes": self.episodes.metadata(),
            "logs": logs,
            "spaces": self.envs.task.to_json(),
        }
        arrays = {
            STATE: checkpoint.name_leaves(self.state),
            REPLAY: self.replay.arrays(),
            ENVS: self.envs.arrays(),
        }
        return CheckpointData(arrays, metadata, dataclasses.asdict(self.config))

    def _build_envs(self) -> VectorEnv:
        config = self.config
        return VectorEnv(
            self.env,
            config.seed_list,
            config.num_envs,
            config.action_bound,
            config.async_envs,
            config.env_timeout,
            config.on_env_error,
        )

    def _compile(self) -> None:
        self.compiled = compiled.compile_agent(
            self.agent, self.config.num_envs, self.config.updates_per_iteration
        )

    def _restore(self, saved: CheckpointData) -> None:
        arrays, metadata, _ = saved
        require_metadata(metadata, self.config)
        self.vector_steps = metadata["step"]
        self.began = time.monotonic() - metadata["wall_seconds"]
        self.state = checkpoint.fill_leaves(self.state, arrays[STATE])
        with raise_as_corrupt():
            self.replay.restore(arrays[REPLAY], metadata["replay"])
        self.exact = self.envs.restore(arrays[ENVS], metadata["envs"], restart=self.vector_steps)
        with raise_as_corrupt():
            self.episodes.restore(metadata["episodes"], self.exact)

    def _note_stop(self, wants_stop: bool | None) -> None:
        self.stopping = self.stopping or bool(wants_stop)
