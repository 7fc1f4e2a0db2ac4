"""Callbacks: the base class and those every run has.

A run calls its callbacks in this order, which `runs.train` sets:

1. PrepareFolder  configuration, spaces and versions (runs/finish.py)
2. Record         metrics.jsonl and evaluations.csv
3. Track          TensorBoard and other trackers, if asked for (runs/track.py)
4. Progress       the line on the console
5. Evaluate       plays episodes and passes the result to every callback (`on_evaluation`)
6. yours          in the order given; `langevinrl.callbacks` has some
7. StopOnSignal   (runs/signals.py)
8. Save           last, so that a checkpoint includes what the others wrote

`on_end` is called in reverse order, also after an error.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from langevinrl.envs.faults import EnvError
from langevinrl.errors import UserError
from langevinrl.logs.diagnose import pick_observations, rows_by_seed
from langevinrl.logs.progress import ProgressLine
from langevinrl.runs.evaluate import Episode, Evaluation, Evaluator
from langevinrl.runs.finite import require_finite_state
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.policy import Mode
from langevinrl.runs.saved import write_model
from langevinrl.storage import checkpoint
from langevinrl.storage.folder import STATE, RunFolder
from langevinrl.storage.run_log import LogDigests, RunLog


class Callback:
    """Base class of callbacks: override what you need.

    A method that returns True asks the run to stop after this iteration.

    class StopAt(Callback):
        def on_evaluation(self, run, evaluation):
            return evaluation.mean > 9000
    """

    def on_start(self, run: Run) -> bool | None:
        """Called once the environments have started or been restored."""

    def on_step(self, run: Run, info: StepInfo) -> bool | None:
        """Called after every vector step, during warm-up and with updates."""

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> bool | None:
        """Called after the run's own evaluations."""

    def on_end(self, run: Run) -> None:
        """Called when the run ends, also after an error."""


def is_due(run: Run, info: StepInfo, period: int) -> bool:
    """Return whether this is a multiple of `period` iterations, or the run's last iteration."""
    last = info.iteration == run.config.iterations
    return not info.warming_up and (info.iteration % period == 0 or last)


class Record(Callback):
    """Writes metrics and evaluations to the run's folder."""

    def __init__(self, folder: RunFolder, digests: LogDigests | None = None) -> None:
        """`digests` are those of the logs when the checkpoint was saved."""
        self.folder, self.digests = folder, digests
        self.rows: list[dict[str, Any]] = []  # the last written, until Track takes them

    def on_start(self, run: Run) -> None:
        self.log = RunLog(self.folder, self.digests)

    def on_step(self, run: Run, info: StepInfo) -> None:
        if is_due(run, info, run.config.log_every):
            self.rows = self._rows(run, info)
            self.log.write_metrics(self.rows)

    def _rows(self, run: Run, info: StepInfo) -> list[dict[str, Any]]:
        """Return a row per seed: metrics of the update, of training episodes and of the sampler."""
        rows = metric_rows(run, info)
        obs = pick_observations(run.replay.rings["obs"], run.replay.size)
        found = run.compiled.diagnose(run.seed_keys, run.vector_steps, info.state, obs)
        sampler = rows_by_seed(found)
        return [row | run.episodes.means(s) | sampler[s] for s, row in enumerate(rows)]

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        place = {
            "agent": run.config.agent,
            "env": run.config.env,
            "iterations": evaluation.iteration,
            "env_steps": evaluation.iteration * run.config.num_envs,
            "wall_seconds": round(run.wall_seconds, 2),
        }
        self.log.write_evaluations(
            place | {"seed": e.seed, "episode": e.episode, "return": e.total, "length": e.length}
            for e in evaluation.episodes
        )

    def on_end(self, run: Run) -> None:
        self.log.close()


class Progress(Callback):
    """Shows one line on the console, and a summary at the start."""

    def __init__(self, folder: RunFolder, quiet: bool = False) -> None:
        self.folder, self.quiet = folder, quiet

    def on_start(self, run: Run) -> None:
        config, total = run.config, run.config.iterations or 0
        label = f"{config.agent} {config.env}"
        self.line = ProgressLine(label, total, run.iteration, self.quiet)
        size = f"{run.replay.num_bytes / 1e9:.2f} GB"
        self.line.say(f"{self.folder}  seeds {config.seed_list}  replay {size} when full")
        if not run.exact:
            self.line.say(
                "These environments cannot save their state: episodes restart with derived seeds."
            )

    def on_step(self, run: Run, info: StepInfo) -> None:
        if info.warming_up:
            self.line.warmup(run.vector_steps, run.config.warmup_steps)
        else:
            self.line.advance(info.iteration)

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        self.line.evaluation(evaluation.iteration, evaluation.mean, evaluation.std)

    def on_end(self, run: Run) -> None:
        self.line.close()


class Evaluate(Callback):
    """Plays episodes every `every` iterations, in environments of its own.

    The results are in `history`.  With `best`, a folder, the model with the highest mean so far is
    saved there, for Model.load.  A run has one with `log=True`, from `eval_every` and
    `eval_episodes`; add another to evaluate more often, in another mode, or to keep the best.
    """

    def __init__(
        self,
        every: int,
        *,
        episodes: int = 20,
        mode: Mode = "keyed",
        best: str | Path | None = None,
        log: bool = False,
    ) -> None:
        """`mode` is as in Model.predict; `log` passes results to all callbacks and the logs."""
        require_count("every", every)
        require_count("episodes", episodes)
        self.every, self.episodes, self.mode, self.best = every, episodes, mode, best
        self.log = log
        self.history: list[Evaluation] = []

    def on_start(self, run: Run) -> None:
        self.evaluator = Evaluator(
            run.agent,
            run.env,
            run.config.seed_list,
            self.episodes,
            self.mode,
            timeout=run.config.env_timeout,
        )

    def on_step(self, run: Run, info: StepInfo) -> None:
        if not is_due(run, info, self.every):
            return
        evaluation = Evaluation(info.iteration, self._play(run, info), self.mode)
        leading = all(evaluation.mean > earlier.mean for earlier in self.history)
        self.history.append(evaluation)
        if self.best is not None and leading:
            write_model(self.best, run.config, run.envs.task, info.state, info.iteration)
        if self.log:
            run.report(evaluation)

    def _play(self, run: Run, info: StepInfo) -> list[Episode]:
        """Play all episodes; with on_env_error="reset", once more in new environments on a failure.

        Unlike in training, a failed environment is not replaced midway: the return would be of
        half an episode.
        """
        try:
            return self.evaluator.play(info.state, info.iteration)
        except EnvError as error:
            if run.config.on_env_error == "stop":
                raise
            warnings.warn(f"{error} All episodes are played again.", stacklevel=2)
        self.evaluator.envs.close(terminate=True)
        self.on_start(run)
        return self.evaluator.play(info.state, info.iteration)

    def on_end(self, run: Run) -> None:
        self.evaluator.close()


class Save(Callback):
    """Saves a checkpoint every `checkpoint_every` iterations, and when the run stops.

    A state that is not finite is never saved, because it would replace a good one.
    """

    def __init__(self, folder: RunFolder, record: Record) -> None:
        self.folder, self.record = folder, record

    def on_step(self, run: Run, info: StepInfo) -> None:
        if run.stopping or is_due(run, info, run.config.checkpoint_every):
            run.require_finite_update()
            saved = run.checkpoint(self.record.log.digests())
            require_finite_state(saved.arrays[STATE], run.iteration, run.config.seed_list)
            keep = run.config.keep_checkpoints
            checkpoint.save(self.folder, run.iteration, saved, keep=keep)


def metric_rows(run: Run, info: StepInfo) -> list[dict[str, Any]]:
    """Return the metrics of the last update, one row per seed."""
    values, config = run.require_finite_update(), run.config
    place = {
        "iterations": info.iteration,
        "env_steps": info.iteration * config.num_envs,
        "updates": info.iteration * config.updates_per_iteration,
    }
    return [
        place | {"seed": seed} | {name: float(value[s]) for name, value in values.items()}
        for s, seed in enumerate(config.seed_list)
    ]


def require_count(name: str, value: int) -> None:
    """Refuse anything but a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{name} is {value!r}; expected a whole number from 1")
