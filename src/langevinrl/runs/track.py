"""The callback that passes a run's numbers to its trackers."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from langevinrl.logs.console import print_error
from langevinrl.logs.trackers import TrackedRun, Worker
from langevinrl.runs.callbacks import Callback, Record
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.storage.folder import RunFolder

PLACE = ("iterations", "env_steps", "updates", "seed")  # columns that are not metrics
OWN_TAGS = ("rollout/", "sampler/")  # prefixes of metrics that are not filed under train/


class Track(Callback):
    """Logs the metrics that Record wrote, under Stable-Baselines3's tags, over environment steps.

    With several seeds it logs the mean; the run folder has the numbers of each seed.
    """

    def __init__(self, folder: RunFolder, record: Record, names: Sequence[str]) -> None:
        self.folder, self.record, self.names = folder, record, names
        self.workers: list[Worker] = []

    def on_start(self, run: Run) -> None:
        self.first = (total_steps(run), run.wall_seconds)
        table = dataclasses.asdict(run.config)
        config = table | table.pop("hyperparameters")
        tracked = TrackedRun(Path(self.folder.path).absolute(), config, self.first[0])
        self.workers = [Worker(name, tracked) for name in self.names]

    def on_step(self, run: Run, info: StepInfo) -> None:
        rows, self.record.rows = self.record.rows, []
        if rows:
            self._log(run, mean_values(rows) | self._clock(run))

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        values = {
            "eval/mean_reward": evaluation.mean,
            "eval/std_reward": evaluation.std,
            "eval/mean_ep_length": float(np.mean([e.length for e in evaluation.episodes])),
        }
        self._log(run, values)

    def on_end(self, run: Run) -> None:
        for worker in self.workers:
            if not worker.close():
                _report(worker.name, "did not finish in time; what it had not sent is lost")
        self._drop_failed()

    def _log(self, run: Run, values: dict[str, float]) -> None:
        self._drop_failed()
        for worker in self.workers:
            worker.log(total_steps(run), values)

    def _drop_failed(self) -> None:
        for worker in [worker for worker in self.workers if worker.failure is not None]:
            error = worker.failure
            _report(worker.name, f"failed and is dropped ({type(error).__name__}: {error})")
            self.workers.remove(worker)

    def _clock(self, run: Run) -> dict[str, float]:
        """Return the progress of the run, and its rate since it was started or resumed."""
        first_step, first_second = self.first
        steps, seconds = total_steps(run) - first_step, run.wall_seconds - first_second
        return {
            "time/iterations": run.iteration,
            "time/total_timesteps": total_steps(run),
            "time/time_elapsed": run.wall_seconds,
            "time/fps": steps / max(seconds, 1e-9),
        }


def total_steps(run: Run) -> int:
    """Return the environment steps taken per seed, including warm-up."""
    return run.vector_steps * run.config.num_envs


def mean_values(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Average the metrics of several seeds by tag, each over the seeds that have it."""
    columns: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            if name not in PLACE:
                columns[name if name.startswith(OWN_TAGS) else f"train/{name}"].append(value)
    return {tag: float(np.mean(values)) for tag, values in columns.items()}


def _report(name: str, what: str) -> None:
    """Print to stderr, also in a quiet run."""
    print_error(f"tracking by {name} {what}; the run goes on.")
