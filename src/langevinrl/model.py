"""The front door for users: learn, predict, evaluate, save, load."""

from __future__ import annotations

import dataclasses
import math
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.callbacks import CallbackLike, as_callbacks
from langevinrl.envs.factory import EnvFactory, EnvLike, as_factory
from langevinrl.envs.source import EnvSource, identify
from langevinrl.errors import UserError, unknown
from langevinrl.runs.checks import short
from langevinrl.runs.config import RunConfig, agent_class, default_eval_every
from langevinrl.runs.evaluate import Evaluation, Evaluator, Mode
from langevinrl.runs.policy import Policy
from langevinrl.runs.saved import NAME_IT, SavedModel, read_model, run_to_go_on, write_model
from langevinrl.runs.train import Stopped, resume, train
from langevinrl.storage.cache import use_cache
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.trust import require_outside, require_trusted

LEARN_WORDS = ("iterations", "total_timesteps", "callback", "progress_bar")


class Model:
    """An agent on a task.  A run folder is its memory: learning writes one, loading reads one.

    model = Model("nclql", "HalfCheetah-v5", seed=0, inverse_temperature=500.0)
    model.learn(iterations=20_000)
    action, _ = model.predict(obs)
    model.save("cheetah")
    """

    def __init__(
        self, agent: str, env: EnvLike, seed: int = 0, *, overwrite: bool = False, **fields: Any
    ) -> None:
        """An agent by its name, or `module:Class`; an environment in any form.

        `env` is a Gymnasium id, `module:function`, a function that makes an environment, an
        environment or vector environment that Gymnasium can make again, or its EnvSpec;
        `env_kwargs={...}` go to whatever makes it.  `fields` are any of the run's or the agent's,
        by the names the command line uses.  The run folder is `out`, or runs/AGENT-ENV-SEED with
        the first of -2, -3 ... that holds no run; `overwrite=True` gives up the run that is there.
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
        self.overwrite = overwrite
        self.trust = True  # all that is named was named by whoever calls this
        self.folder: Path | None = None
        self.saved: SavedModel | None = None

    def learn(
        self,
        iterations: int | None = None,
        *,
        total_timesteps: int | None = None,
        callback: CallbackLike = None,
        progress_bar: bool = True,
        **others: Any,
    ) -> Model:
        """Train for `iterations` more iterations, or `total_timesteps` more transitions.

        An iteration steps all `num_envs` environments once, so that 1,000 transitions of five are
        200 iterations; the transitions of warm-up, before the first, count in neither.  Without a
        number: to the end of the run as configured (the paper's length).  A second call goes on
        exactly where the first ended: learn(20) twice gives the weights of learn(40).

        `callback` is one, a list of them, or a function f(run, info) that stops the run by
        returning True (`langevinrl.callbacks`).  Ctrl-C stops after the iteration at hand: all is
        saved, and the model is what it was then.
        """
        for name in others:
            raise UserError(unknown("argument of learn()", name, LEARN_WORDS))
        more = self._count_iterations(iterations, total_timesteps)
        options: dict[str, Any] = {"callbacks": as_callbacks(callback), "quiet": not progress_bar}
        try:
            if self.saved is None:
                self.folder = self._begin(more, options)
            else:
                self.folder = self._go_on(self.saved, more, options)
        except Stopped as stopped:
            self.folder = stopped.folder
            self._read()
            raise
        self._read()
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
        """Actions for one observation or a batch, and None: no method here has a hidden state.

        `obs` is what the environment hands out, a Dict as a dict (a batch of it as a dict of
        batches); actions are in the environment's own units, shape and dtype.  `state` and
        `episode_start` are there for tools that pass them, and are not looked at.

        What is random and what is fixed: the weights are fixed, and an action is drawn by a chain
        with a start and noise.  With `deterministic=True` (the mode `keyed`) both follow from the
        observation's bits: the same observation always gets the same action, which is still one
        draw of the policy, not its mean (NC-LQL's fast presets leave the noise out after the
        start); all evaluations are made so, unless told.  With `deterministic=False` (`sampled`)
        they are drawn afresh at each call, exploring as training does; the sequence follows from
        the model's seed.  With `mode="noise-free"` the start follows from the observation and the
        noise is zero, so that the chain climbs to a mode of the policy; LQL, NC-LQL, SAC (its mode)
        and MFP (whose jumps have no noise) offer that.

        `seed_index` chooses among seeds that were trained side by side.
        """
        policy = self._require_policy()
        chosen: Mode = mode or ("keyed" if deterministic else "sampled")
        return policy.act(obs, chosen, seed_index), None

    def evaluate(self, episodes: int = 20, seed: int = 0, mode: Mode = "keyed") -> Evaluation:
        """Play whole episodes with every trained seed; `mode` as in `predict`.

        The result has `mean`, `std`, the `episodes` and the `mode` they were played in.
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
        """What `load` needs and no more, as a folder: configuration, spaces, weights; no replay.

        A model that was saved there before is replaced; a run is not.
        """
        saved = self._require_saved()
        run = saved.metadata.get("run") or self.folder
        config = dataclasses.replace(saved.config, out=str(run))
        write_model(path, config, saved.spaces, saved.state, self.iteration)

    @classmethod
    def load(cls, path: str | Path, env: EnvLike | None = None, *, trust: bool = False) -> Model:
        """A model from a run folder, or from what `save` wrote: the policy, without the replay.

        The environment is not built: sizes, units and observation space were saved.  `env` names it
        where it could not be named in a file, as for a lambda, if the model shall play or learn.

        Of a folder that was not made by you, nothing is imported by name: an agent or environment
        of its author's own is refused.  `trust=True` allows it; so does `env`, for the environment.
        """
        model = cls.__new__(cls)
        model.folder, model.overwrite = Path(path), False
        model.source, model.trust = None, trust
        if isinstance(env, str):
            require_outside(model.folder, env)
        if env is not None:
            model.source = identify(env)._replace(factory=as_factory(env))
        model._read(model.source)
        return model

    @property
    def iteration(self) -> int:
        """Iterations trained so far."""
        return int(self.saved.metadata["iteration"]) if self.saved else 0

    def _count_iterations(self, iterations: int | None, timesteps: int | None) -> int | None:
        if iterations is not None and timesteps is not None:
            raise UserError("learn() takes iterations= or total_timesteps=, not both")
        name = "iterations" if timesteps is None else "total_timesteps"
        asked = iterations if timesteps is None else timesteps
        if asked is None:
            return None
        # A float will do if it is whole: people write 1e6.
        number = isinstance(asked, Real) and not isinstance(asked, bool) and math.isfinite(asked)
        if not number or asked != int(asked) or asked < 1:
            raise UserError(f"{name} is {asked!r}; expected a whole number, at least 1")
        return int(asked) if timesteps is None else math.ceil(asked / self.config.num_envs)

    def _begin(self, iterations: int | None, options: dict[str, Any]) -> Path:
        config = self.config
        if iterations is not None:
            config = dataclasses.replace(config, iterations=iterations)
        factory = self.source.factory if self.source else None
        return train(config, env=factory, overwrite=self.overwrite, **options)

    def _go_on(self, saved: SavedModel, more: int | None, options: dict[str, Any]) -> Path:
        """Resume the run that the weights are of."""
        assert self.folder is not None
        folder = run_to_go_on(RunFolder(self.folder), saved.state, saved.metadata)
        length = saved.config.iterations or 0
        if more is None and self.iteration >= length:
            raise UserError(
                f"all {length} iterations of this run are done; say how many more: "
                "learn(iterations=N)"
            )
        total = length if more is None else self.iteration + more
        every = saved.config.eval_every
        if more is not None and every == default_eval_every(length):  # not one the user asked for
            every = default_eval_every(more)
        factory = self._environment()  # which also refuses a name that makes none
        given, trust = factory if self.source else None, self.trust
        return resume(folder.path, total, env=given, eval_every=every, trust=trust, **options)

    def _environment(self) -> EnvFactory:
        """What plays and learns; refuses a name that makes none here."""
        if self.source is not None:
            return self.source.factory or as_factory(self.source.name, self.source.kwargs)
        assert self.folder is not None
        require_trusted(self.folder, self.config.imported(), self.trust)
        try:
            return as_factory(self.config.env, self.config.env_kwargs)
        except UserError as error:
            raise UserError(f"{error} {NAME_IT}") from error

    def _require_saved(self) -> SavedModel:
        if self.saved is None:
            raise UserError(
                "this model has not learned yet: call learn() first, or Model.load(DIR)"
            )
        return self.saved

    def _require_policy(self) -> Policy:
        self._require_saved()
        return self._policy

    def _read(self, env: EnvSource | None = None) -> None:
        """Take up what lies in the folder."""
        assert self.folder is not None
        self.saved = saved = read_model(self.folder, env, self.trust)
        self.config, self.agent, self.state, self.spaces, self.metadata = saved
        if self.config.compilation_cache:
            use_cache()
        self._policy = Policy(saved.agent, saved.state, saved.spaces, saved.config.seed)
