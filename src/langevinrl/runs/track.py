"""The callback that hands a run's numbers to its trackers."""

from __future__ import annotations

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.logs.trackers import TrackedRun, Worker
from langevinrl.runs.callbacks import Callback, Record
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.storage.folder import RunFolder

PLACE = ("iterations", "env_steps", "updates", "seed")  # of a row of metrics: where, not what
CLOCK = ("time/iterations", "time/total_timesteps", "time/time_elapsed", "time/fps")
BESIDE_TRAINING = ("rollout/", "sampler/")  # tags that say themselves what they are of


class Track(Callback):
    """Logs what Record wrote, under Stable-Baselines3's tags, over environment steps.

    Of several seeds the mean; each seed's own numbers are in the run's folder.
    """

    def __init__(self, folder: RunFolder, record: Record, names: Sequence[str]) -> None:
        self.folder, self.record, self.names = folder, record, names
        self.workers: list[Worker] = []

    def on_start(self, run: Run) -> None:
        self.first = (total_steps(run), run.wall_seconds)
        tracked = TrackedRun(Path(self.folder.path).absolute(), flat_config(run), self.first[0])
        self.workers = [Worker(name, tracked) for name in self.names]

    def on_step(self, run: Run, info: StepInfo) -> None:
        rows, self.record.rows = self.record.rows, []
        if rows and self.workers:
            self._log(run, mean_values(rows) | self._clock(run))

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        if self.workers:
            self._log(run, evaluation_values(evaluation))

    def on_end(self, run: Run) -> None:
        for worker in self.workers:
            if not worker.close():
                tell(worker.name, "did not finish in time; what it had not sent is lost")
        self._drop_failed()

    def _log(self, run: Run, values: dict[str, float]) -> None:
        self._drop_failed()
        for worker in self.workers:
            worker.log(total_steps(run), values)

    def _drop_failed(self) -> None:
        for worker in [worker for worker in self.workers if worker.failure is not None]:
            error = worker.failure
            tell(worker.name, f"failed and is dropped ({type(error).__name__}: {error})")
            self.workers.remove(worker)

    def _clock(self, run: Run) -> dict[str, float]:
        """How far the run is, and how fast since it began or was taken up again."""
        first_step, first_second = self.first
        steps, seconds = total_steps(run) - first_step, run.wall_seconds - first_second
        rate = steps / max(seconds, 1e-9)
        values = (run.iteration, total_steps(run), run.wall_seconds, rate)
        return dict(zip(CLOCK, values, strict=True))


def total_steps(run: Run) -> int:
    """Environment steps taken per seed, warm-up included."""
    return run.vector_steps * run.config.num_envs


def mean_values(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Rows of metrics, one per seed, as tags: each the mean of the seeds that have it."""
    columns: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            if name not in PLACE:
                columns[tag_of(name)].append(value)
    return {tag: float(np.mean(values)) for tag, values in columns.items()}


def tag_of(name: str) -> str:
    """A metric's tag: what comes from updates is filed under train/."""
    return name if name.startswith(BESIDE_TRAINING) else f"train/{name}"


def evaluation_values(evaluation: Evaluation) -> dict[str, float]:
    """Over all episodes of all seeds."""
    return {
        "eval/mean_reward": evaluation.mean,
        "eval/std_reward": evaluation.std,
        "eval/mean_ep_length": float(np.mean([e.length for e in evaluation.episodes])),
    }


def flat_config(run: Run) -> dict[str, Any]:
    """The run's fields and the agent's side by side, as on the command line."""
    table = dataclasses.asdict(run.config)
    hyperparameters: dict[str, Any] = table.pop("hyperparameters")
    return table | hyperparameters


def tell(name: str, what: str) -> None:
    """To the error stream: a run that is asked to be quiet is, but not of what went wrong."""
    print(f"langevinrl: tracking by {name} {what}; the run goes on.", file=sys.stderr)
