"""What hangs on the loop.  A callback of your own fits the same four methods.

A run calls its callbacks in the order of its list, which `runs.train` makes:

1. Record        metrics.jsonl and evaluations.csv
2. Track         TensorBoard and the like, if asked for (`track`)
3. Progress      the line on the console
4. PlayEpisodes  evaluates, and tells every callback of the result (`on_evaluation`)
5. yours         in the order given; `langevinrl.callbacks` has some
6. StopOnSignal  in runs/signals.py
7. Save          last: it stores what the others wrote, at once if one of them asked to stop

`on_end` goes through the list backwards, also after an error.
"""

from __future__ import annotations

import warnings
from typing import Any

from langevinrl.envs.faults import EnvError
from langevinrl.logs.diagnose import pick_observations, rows_by_seed
from langevinrl.logs.progress import ProgressLine
from langevinrl.runs.evaluate import Episode, Evaluation, Evaluator
from langevinrl.runs.finite import require_finite_state
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.storage import checkpoint
from langevinrl.storage.folder import STATE, RunFolder, RunLog


class Callback:
    """Does nothing; override what you need.  True asks the run to stop after this iteration.

    class StopAt(Callback):
        def on_evaluation(self, run, evaluation):
            return evaluation.mean > 9000
    """

    def on_start(self, run: Run) -> bool | None:
        """The environments have been started, or put back."""

    def on_step(self, run: Run, info: StepInfo) -> bool | None:
        """A vector step, of warm-up or with its updates, is done."""

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> bool | None:
        """Episodes have been played."""

    def on_end(self, run: Run) -> None:
        """The run ends, by itself or by an error."""


def is_due(run: Run, info: StepInfo, period: int) -> bool:
    """At each multiple of `period` iterations, and at the run's last one."""
    last = info.iteration == run.config.iterations
    return not info.warming_up and (info.iteration % period == 0 or last)


class Record(Callback):
    """Writes metrics and evaluations to the run's folder."""

    def __init__(self, folder: RunFolder, positions: dict[str, int] | None = None) -> None:
        """`positions` are the lengths that a checkpoint knew the logs at."""
        self.folder, self.positions = folder, positions
        self.rows: list[dict[str, Any]] = []  # the last written, until someone takes them

    def on_start(self, run: Run) -> None:
        self.log = RunLog(self.folder, self.positions)

    def on_step(self, run: Run, info: StepInfo) -> None:
        if is_due(run, info, run.config.log_every):
            self.rows = self._rows(run, info)
            self.log.write_metrics(self.rows)

    def _rows(self, run: Run, info: StepInfo) -> list[dict[str, Any]]:
        """A row per seed: metrics of the update, training's episodes, how the agent samples."""
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
    """One line on the console, and what a person should know at the start."""

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
                "These environments cannot give their state: episodes restart with derived seeds."
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


class PlayEpisodes(Callback):
    """Plays episodes every `eval_every` iterations, in environments of its own."""

    def on_start(self, run: Run) -> None:
        config = run.config
        self.evaluator = Evaluator(
            run.agent,
            run.env,
            config.seed_list,
            config.eval_episodes,
            timeout=config.env_timeout,
        )

    def on_step(self, run: Run, info: StepInfo) -> None:
        if is_due(run, info, run.config.eval_every or 1):
            run.report(Evaluation(info.iteration, self._play(run, info)))

    def _play(self, run: Run, info: StepInfo) -> list[Episode]:
        """All episodes; a second time, in fresh environments, if one failed and may be made anew.

        Half an episode is no return, so that none is mended on the way as in training.
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
    """Leaves a checkpoint every `checkpoint_every` iterations, and when the run is to stop.

    A state that is not finite is not saved: it would take the place of one that is.
    """

    def __init__(self, folder: RunFolder, record: Record) -> None:
        self.folder, self.record = folder, record

    def on_step(self, run: Run, info: StepInfo) -> None:
        if run.stopping or is_due(run, info, run.config.checkpoint_every):
            run.require_finite_update()
            saved = run.checkpoint(self.record.log.positions())
            require_finite_state(saved.arrays[STATE], run.iteration, run.config.seed_list)
            keep = run.config.keep_checkpoints
            checkpoint.save(self.folder, run.iteration, saved, keep=keep)


def metric_rows(run: Run, info: StepInfo) -> list[dict[str, Any]]:
    """One row per seed."""
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
