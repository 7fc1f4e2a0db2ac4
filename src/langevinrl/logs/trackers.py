"""Experiment trackers: TensorBoard, Weights & Biases and MLflow.

Each is an optional package, imported when it is used.  A tracker runs in its own thread: one that
fails or hangs does not stop the run.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from langevinrl.errors import UserError, unknown
from langevinrl.storage.files import read_json, write_text
from langevinrl.storage.folder import TRACKERS

PROJECT = "langevinrl"  # default; the tracker's own environment variable overrides it
PATIENCE = 30.0  # seconds for a tracker to finish after the run has ended


@dataclass(frozen=True)
class TrackedRun:
    """The description of a run that a tracker receives."""

    folder: Path
    config: dict[str, Any]  # every field, including the agent's
    step: int  # environment steps already taken: above 0 in a resumed run


class Tracker(ABC):
    """One open tracker."""

    package: ClassVar[str]  # what it imports; the extra of the tracker's name installs it

    @abstractmethod
    def __init__(self, run: TrackedRun) -> None: ...

    @abstractmethod
    def log(self, step: int, values: dict[str, float]) -> None:
        """Log numbers by tag, after `step` environment steps."""

    @abstractmethod
    def close(self) -> None: ...


class TensorBoard(Tracker):
    """Event files in the run's folder: tensorboard --logdir runs."""

    package = "tensorboardX"

    def __init__(self, run: TrackedRun) -> None:
        writer = importlib.import_module("tensorboardX").SummaryWriter
        purge = run.step or None  # hides steps after the checkpoint, which are taken again
        place, suffix = str(run.folder / "tensorboard"), f".{run.step}"
        # Files are named by the second: without a suffix a quick resume would replace the first.
        self.writer = writer(place, purge_step=purge, flush_secs=10, filename_suffix=suffix)

    def log(self, step: int, values: dict[str, float]) -> None:
        for tag, value in values.items():
            self.writer.add_scalar(tag, value, step)

    def close(self) -> None:
        self.writer.close()


class WandB(Tracker):
    """Weights & Biases; it reads WANDB_MODE, WANDB_PROJECT, WANDB_ENTITY and the rest."""

    package = "wandb"

    def __init__(self, run: TrackedRun) -> None:
        wandb = importlib.import_module("wandb")
        known = read_id(run, "wandb")
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT), name=run.folder.name,
            config=run.config, dir=os.environ.get("WANDB_DIR", str(run.folder)),
            id=known, resume="allow" if known else None, reinit="create_new",
        )  # fmt: skip
        write_id(run, "wandb", self.run.id)
        # W&B's own step may only increase, but a resumed run repeats steps.
        self.run.define_metric("*", step_metric="time/total_timesteps")

    def log(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values | {"time/total_timesteps": step})

    def close(self) -> None:
        self.run.finish()


class MLflow(Tracker):
    """MLflow; it reads MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME."""

    package = "mlflow"

    def __init__(self, run: TrackedRun) -> None:
        mlflow = importlib.import_module("mlflow")
        self.entities = importlib.import_module("mlflow.entities")
        self.client = mlflow.MlflowClient()
        self.id = read_id(run, "mlflow")
        if self.id is not None:
            self.client.update_run(self.id, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        found = self.client.get_experiment_by_name(name)
        place = found.experiment_id if found else self.client.create_experiment(name)
        self.id = self.client.create_run(place, run_name=run.folder.name).info.run_id
        write_id(run, "mlflow", self.id)
        params = [self.entities.Param(key, str(value)) for key, value in run.config.items()]
        self.client.log_batch(self.id, params=params)

    def log(self, step: int, values: dict[str, float]) -> None:
        now = time.time_ns() // 1_000_000
        metric = self.entities.Metric
        self.client.log_batch(self.id, [metric(k, v, now, step) for k, v in values.items()])

    def close(self) -> None:
        self.client.set_terminated(self.id)


KINDS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}


def require_trackers(names: Sequence[str]) -> None:
    """Raise for an unknown tracker or one whose package is not installed."""
    for name in names:
        if name not in KINDS:
            raise UserError(unknown("tracker", name, KINDS))
        package = KINDS[name].package
        if importlib.util.find_spec(package) is None:
            raise UserError(
                f"--track {name} needs {package}, which is not installed: "
                f"pip install 'langevinrl[{name}]'"
            )


def read_id(run: TrackedRun, name: str) -> str | None:
    """Return the tracker's id of a resumed run; None for a new run."""
    return _read_ids(run).get(name) if run.step else None


def write_id(run: TrackedRun, name: str, id_: str) -> None:
    """Store the tracker's id of this run in its folder."""
    write_text(run.folder / TRACKERS, json.dumps(_read_ids(run) | {name: id_}) + "\n")


def _read_ids(run: TrackedRun) -> dict[str, Any]:
    try:
        return dict(read_json(run.folder / TRACKERS, "tracker ids"))
    except (UserError, TypeError, ValueError):  # missing or damaged
        return {}


class Worker:
    """One tracker in its own thread, from opening to closing."""

    def __init__(self, name: str, run: TrackedRun) -> None:
        self.name = name
        self.failure: Exception | None = None
        self._jobs: queue.SimpleQueue[tuple[int, dict[str, float]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, args=(run,), daemon=True)
        self._thread.start()

    def log(self, step: int, values: dict[str, float]) -> None:
        self._jobs.put((step, values))

    def close(self) -> bool:
        """Wait until everything is written; return whether it finished in time."""
        self._jobs.put(None)
        self._thread.join(PATIENCE)
        return not self._thread.is_alive()

    def _work(self, run: TrackedRun) -> None:
        try:
            tracker = KINDS[self.name](run)
            while (job := self._jobs.get()) is not None:
                tracker.log(*job)
            tracker.close()
        except Exception as error:  # any failure: it must not stop the run
            self.failure = error
