"""The front door for users: learn, predict, save, load."""

from __future__ import annotations

import dataclasses
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from langevinrl.envs.vector import EnvFactory, VectorEnv, name_of
from langevinrl.errors import UserError, unknown
from langevinrl.registry import METHODS
from langevinrl.runs import checkpoint, compiled
from langevinrl.runs.cache import use_cache
from langevinrl.runs.checkpoint import Checkpoint
from langevinrl.runs.config import RunConfig
from langevinrl.runs.evaluate import Episode, Evaluator, observation_seed, policy
from langevinrl.runs.folder import STATE, RunFolder
from langevinrl.runs.train import Stopped, read_config, resume, train


class Model:
    """An agent on a task.  A run folder is its memory: learning writes one, loading reads one.

    model = Model("nclql", "Pendulum-v1", seed=0).learn(iterations=5_000)
    """

    def __init__(self, agent: str, env: str | EnvFactory, **fields: Any) -> None:
        """`fields` are any of the run's or the agent's, by the names the command line uses."""
        self.factory = None if isinstance(env, str) else env
        if agent not in METHODS:
            raise UserError(unknown("agent", agent, METHODS))
        hidden = ("env", "agent", "hyperparameters", "spec")
        kinds = (RunConfig, METHODS[agent].load())
        run_fields, own_fields = (
            [f.name for f in dataclasses.fields(kind) if f.name not in hidden] for kind in kinds
        )
        for name in fields:
            if name not in run_fields + own_fields:
                raise UserError(unknown("field", name, run_fields + own_fields))
        asked = {name: value for name, value in fields.items() if name in run_fields}
        own = {name: value for name, value in fields.items() if name in own_fields}
        self.config = RunConfig(name_of(env), agent=agent, hyperparameters=own, **asked)
        self.folder: Path | None = None

    def learn(self, iterations: int | None = None, quiet: bool = False) -> Model:
        """Train to `iterations`; a second call goes on from where the first one ended.

        Ctrl-C stops after the iteration at hand: all is saved, and the model is what it was then.
        """
        try:
            if self.folder is None:
                config = self.config
                if iterations is not None:
                    config = dataclasses.replace(config, iterations=iterations)
                self.folder = train(config, env=self.factory, quiet=quiet)
            else:
                resume(self.folder, iterations, env=self.factory, quiet=quiet)
        except Stopped as stopped:
            self.folder = stopped.folder
            self._read(RunFolder(self.folder))
            raise
        self._read(RunFolder(self.folder))
        return self

    def predict(self, obs: Any, seed_index: int = 0) -> np.ndarray:
        """The evaluation action for one observation (O,) or several (B, O), in the task's box."""
        self._need_weights()
        rows = np.atleast_2d(np.asarray(obs, np.float32))
        if rows.shape[1:] != (self.agent.spec.obs_dim,):
            size = self.agent.spec.obs_dim
            raise UserError(f"obs has shape {np.shape(obs)}; expected ({size},) or (B, {size})")
        if not 0 <= seed_index < self.config.seeds:
            raise UserError(f"seed_index is {seed_index}; trained seeds: {self.config.seeds}")
        state = jax.tree.map(lambda leaf: leaf[seed_index], self.state)
        drawn = self._policy(state, rows, observation_seed(rows))
        action = self.centre + self.stretch * np.asarray(drawn)
        return action[0] if np.ndim(obs) == 1 else action

    def evaluate(self, episodes: int = 20, seed: int = 0) -> list[Episode]:
        """Play whole episodes with every trained seed."""
        self._need_weights()
        if episodes < 1 or seed < 0:
            raise UserError(f"cannot play {episodes} episodes from seed {seed}")
        evaluator = Evaluator(self.agent, self._env, self.config.seed_list, episodes)
        try:
            return evaluator.play(self.state, seed)
        finally:
            evaluator.close()

    def save(self, path: str | Path) -> None:
        """What `load` needs and no more: the configuration and the weights, without replay."""
        source, target = self._need_weights(), RunFolder(path)
        if target.config.exists():
            raise UserError(f"{target} already holds a run or a model")
        target.path.mkdir(parents=True, exist_ok=True)
        weights = Checkpoint({STATE: checkpoint.name_leaves(self.state)}, self.metadata)
        checkpoint.save(target, self.metadata["iteration"], weights)
        shutil.copy(source.config, target.config)

    @classmethod
    def load(cls, path: str | Path, env: EnvFactory | None = None) -> Model:
        """A model from a run folder or from what `save` wrote."""
        model = cls.__new__(cls)
        model.folder, model.factory = Path(path), env
        model._read(RunFolder(path))
        return model

    @property
    def _env(self) -> str | EnvFactory:
        return self.factory or self.config.env

    def _need_weights(self) -> RunFolder:
        if self.folder is None:
            raise UserError(
                "this model has not learned yet: call learn() first, or Model.load(DIR)"
            )
        return RunFolder(self.folder)

    def _read(self, folder: RunFolder) -> None:
        self.config = read_config(folder)
        if self.config.compilation_cache:
            use_cache()
        envs = VectorEnv(self._env, [0], 1, self.config.action_bound)
        self.centre, self.stretch = envs.centre, envs.stretch
        self.agent = agent = self.config.make_agent(envs.spec)
        envs.close()
        saved = checkpoint.load(folder, groups=[STATE])
        keys = compiled.seed_keys(self.config.seed_list)
        template = jax.eval_shape(jax.vmap(agent.init), keys)
        self.state = checkpoint.fill_leaves(template, saved.arrays[STATE])
        self.metadata = saved.metadata
        self._policy = jax.jit(partial(policy, agent))
