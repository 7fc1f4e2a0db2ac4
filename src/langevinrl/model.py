"""Model: learn, predict, evaluate, save, load."""

from __future__ import annotations

import dataclasses
import math
import signal
import warnings
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.callbacks import Callback, CallbackLike, as_callbacks
from langevinrl.envs.factory import EnvFactory, EnvLike, EnvSource, as_factory, identify
from langevinrl.errors import UserError, require_none, unknown
from langevinrl.runs.checks import short
from langevinrl.runs.config import RunConfig, agent_class
from langevinrl.runs.evaluate import Evaluation, Evaluator
from langevinrl.runs.finish import Stopped
from langevinrl.runs.loop import Run
from langevinrl.runs.policy import Mode, Policy
from langevinrl.runs.saved import SavedModel, read_model, write_model
from langevinrl.runs.train import resume, train
from langevinrl.storage.cache import use_cache
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.saved import find_run
from langevinrl.storage.trust import require_outside, require_trusted


class _KeepRun(Callback):
    """Keeps the run, so that its weights need not be read from disk."""

    def on_start(self, run: Run) -> None:
        self.run = run


class Model:
    """An agent on a task.  Learning writes a run folder, and loading reads one.

    model = Model("nclql", "HalfCheetah-v5", seed=0, inverse_temperature=500.0)
    model.learn(iterations=20_000)
    action, _ = model.predict(obs)
    model.save("cheetah")
    """

    def __init__(
        self, agent: str, env: EnvLike, seed: int = 0, *, overwrite: bool = False, **fields: Any
    ) -> None:
        """Validate the configuration; nothing is built or written until `learn`.

        `agent` is a registered name or `module:Class`.  `env` is a Gymnasium id,
        `module:function`, a function that makes an environment, an environment or vector
        environment that Gymnasium can make again, or its EnvSpec; `env_kwargs={...}` are passed to
        whatever makes it.  `fields` are any of the run's or the agent's, by their names on the
        command line.  The run folder is `out`, or by default runs/AGENT-ENV-SEED with the first of
        -2, -3 ... that holds no run; `overwrite=True` deletes a run that is there.
        """
        hidden = ("env", "agent", "hyperparameters", "spec")
        kinds = (RunConfig, agent_class(agent))
        run_fields, own_fields = (
            [f.name for f in dataclasses.fields(kind) if f.name not in hidden] for kind in kinds
        )
        for name in fields:
            if name not in run_fields + own_fields:
                raise UserError(unknown("field", name, run_fields + own_fields))
        asked = {name: value for name, value in fields.items() if name in run_fields}
        own = {name: value for name, value in fields.items() if name in own_fields}
        self.source: EnvSource | None = identify(env, asked.pop("env_kwargs", {}))
        self.config = RunConfig(
            self.source.name,
            agent=agent,
            seed=seed,
            env_kwargs=self.source.kwargs,
            hyperparameters=own,
            **asked,
        ).with_defaults()
        require_none(self.config.mistakes(any_length=True))  # learn() may set the length
        self.overwrite = overwrite
        self.trust = True  # every name was given by the caller
        self.folder: Path | None = None
        self.saved: SavedModel | None = None

    def learn(
        self,
        iterations: int | None = None,
        *,
        total_timesteps: int | None = None,
        callback: CallbackLike = None,
        progress_bar: bool = True,
    ) -> Model:
        """Train for `iterations` more iterations, or `total_timesteps` more transitions.

        An iteration steps all `num_envs` environments once; warm-up counts in neither.  Without a
        number, train to the end of the run as configured (the paper's length).  A second call
        continues exactly where the first ended: learn(20) twice gives the weights of learn(40).

        `callback` is a callback, a list of them, or a function f(run, info) that stops the run by
        returning True (`langevinrl.callbacks`).  Ctrl-C stops after the current iteration: all is
        saved, and learn() returns the model with a warning.  Other signals save it too and raise.
        """
        more = self._count_iterations(iterations, total_timesteps)
        keep = _KeepRun()
        options = {"callbacks": [*as_callbacks(callback), keep], "quiet": not progress_bar}
        stopped: Stopped | None = None
        try:
            if self.saved is None:
                self.folder = self._start(more, options)
            else:
                self.folder = self._continue(self.saved, more, options)
        except Stopped as error:
            self.folder, stopped = error.folder, error
        self._adopt_run(keep.run)
        if stopped is not None and stopped.number != signal.SIGINT:
            raise stopped
        if stopped is not None:
            done = f"stopped at iteration {self.iteration}; learn() continues from there"
            warnings.warn(done, stacklevel=2)
        return self

    def predict(
        self,
        obs: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        *,
        mode: Mode | None = None,
        seed_index: int = 0,
    ) -> tuple[np.ndarray, None]:
        """Return actions for one observation or a batch, and None (there is no hidden state).

        `obs` is as the environment returns it, a Dict as a dict (a batch of it as a dict of
        batches); actions have the environment's own units, shape and dtype.  `state` and
        `episode_start` are ignored.

        An action is a sample of the policy, drawn by a chain from a random start with noise:
        - `deterministic=True` (mode `keyed`): start and noise are derived from the observation, so
          the same observation always gets the same action.  It is a sample of the policy, not its
          mean.  All evaluations use this mode by default.
        - `deterministic=False` (`sampled`): start and noise are new at each call, with exploration
          as in training.  The sequence is determined by the model's seed.
        - `mode="noise-free"`: the start is derived from the observation and the noise is zero, so
          the chain ascends to a mode of the policy.  For LQL, NC-LQL, NC-LQL auto, SAC and MFP.

        `seed_index` selects one of the seeds that were trained together.  The first call with a
        mode or a larger batch compiles the chain, which takes some seconds.
        """
        self._require_saved()
        chosen: Mode = mode or ("keyed" if deterministic else "sampled")
        return self._policy.act(obs, chosen, seed_index), None

    def evaluate(self, episodes: int = 20, seed: int = 0, mode: Mode = "keyed") -> Evaluation:
        """Play whole episodes with every trained seed; `mode` is as in `predict`.

        The result has `mean`, `std`, the `episodes` and the `mode`.
        """
        saved = self._require_saved()
        if not 1 <= episodes <= 100_000 or not 0 <= seed < 2**32:
            raise UserError(f"cannot play {short(episodes)} episodes from seed {short(seed)}")
        seeds = self.config.seed_list
        evaluator = Evaluator(saved.agent, self._environment(), seeds, episodes, mode)
        try:
            played = evaluator.play(saved.state, seed)
        finally:
            evaluator.close()
        return Evaluation(self.iteration, played, mode)

    def save(self, path: str | Path) -> None:
        """Save configuration, spaces and weights as a folder for `load`, without replay buffer.

        This replaces a model that was saved there before, but never a run.
        """
        saved = self._require_saved()
        run = saved.metadata.get("run") or self.folder
        config = dataclasses.replace(saved.config, out=str(run))
        write_model(path, config, saved.spaces, saved.state, self.iteration)

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: EnvLike | None = None,
        *,
        trust: bool = False,
        compile: bool = False,
    ) -> Model:
        """Load a model from a run folder or from a folder that `save` wrote.

        The environment is not built, because its spaces were saved.  To evaluate or learn, give
        `env` if it has no name that a file can hold, such as a lambda.  `compile=True` compiles
        `predict` for one observation now, which its first call does otherwise.

        Custom agents and environments that a folder names are imported only if you made the
        folder.  `trust=True` allows others; `env` replaces the environment.
        """
        model = cls.__new__(cls)
        model.folder, model.overwrite = Path(path), False
        model.source, model.trust = None, trust
        if isinstance(env, str):
            require_outside(model.folder, env)
        if env is not None:
            model.source = identify(env)._replace(factory=as_factory(env))
        model._adopt(read_model(model.folder, model.source, trust))
        if compile:
            model.predict(model.spaces.observation_space.sample())
        return model

    @property
    def iteration(self) -> int:
        """Iterations trained so far."""
        return int(self.saved.metadata["iteration"]) if self.saved else 0

    def __repr__(self) -> str:
        config = self.config
        return (
            f"Model({config.agent!r}, {config.env!r}, iterations trained: {self.iteration}, "
            f"seeds: {config.seed_list})"
        )

    def _count_iterations(self, iterations: int | None, timesteps: int | None) -> int | None:
        if iterations is not None and timesteps is not None:
            raise UserError("learn() takes iterations= or total_timesteps=, not both")
        name = "iterations" if timesteps is None else "total_timesteps"
        asked = iterations if timesteps is None else timesteps
        if asked is None:
            return None
        # A whole float is accepted because people write 1e6.
        number = isinstance(asked, Real) and not isinstance(asked, bool) and math.isfinite(asked)
        if not number or asked != int(asked) or asked < 1:
            raise UserError(f"{name} is {asked!r}; expected a whole number, at least 1")
        return int(asked) if timesteps is None else math.ceil(asked / self.config.num_envs)

    def _start(self, iterations: int | None, options: dict[str, Any]) -> Path:
        config = self.config
        if iterations is not None:
            config = dataclasses.replace(config, iterations=iterations)
        factory = self.source.factory if self.source else None
        return train(config, env=factory, overwrite=self.overwrite, **options)

    def _continue(self, saved: SavedModel, more: int | None, options: dict[str, Any]) -> Path:
        """Resume the run that the weights are from."""
        assert self.folder is not None
        folder = find_run(RunFolder(self.folder), saved.state, saved.metadata)
        length = saved.config.iterations or 0
        if more is None and self.iteration >= length:
            raise UserError(
                f"all {length} iterations of this run are done; say how many more: "
                "learn(iterations=N)"
            )
        total = length if more is None else self.iteration + more
        every, default = saved.config.eval_every, saved.config.default_evaluation
        if more is not None and every == default(length)[0]:  # not given by the user
            every = default(more)[0]
        factory = self._environment()  # refuses a name that makes no environment
        given, trust = factory if self.source else None, self.trust
        return resume(folder.path, total, env=given, eval_every=every, trust=trust, **options)

    def _environment(self) -> EnvFactory:
        """Return a function that makes the environment; refuse a name that makes none."""
        if self.source is not None:
            return self.source.factory or as_factory(self.source.name, self.source.kwargs)
        assert self.folder is not None
        require_trusted(self.folder, self.config.imported(), self.trust)
        try:
            return as_factory(self.config.env, self.config.env_kwargs)
        except UserError as error:
            hint = "Name the environment: Model.load(DIR, env=...)"
            raise UserError(f"{error} {hint}") from error

    def _require_saved(self) -> SavedModel:
        if self.saved is None:
            raise UserError(
                "this model has not learned yet: call learn() first, or Model.load(DIR)"
            )
        return self.saved

    def _adopt_run(self, run: Run) -> None:
        """Act and continue from where a run ended."""
        agent, metadata = run.config.make_agent(run.envs.spec), {"iteration": run.iteration}
        self._adopt(SavedModel(run.config, agent, run.state, run.envs.task, metadata))

    def _adopt(self, saved: SavedModel) -> None:
        """Act and continue from these weights."""
        self.saved = saved
        self.config, self.agent, self.state, self.spaces, self.metadata = saved
        if self.config.compilation_cache:
            use_cache()
        self._policy = Policy(saved.agent, saved.state, saved.spaces, saved.config.seed)
