"""Where else a run is logged: TensorBoard, Weights & Biases, trackio, MLflow.

Each is a package that need not be there and is imported when it is asked for.  A tracker works in
a thread of its own: one that fails is told of once and dropped, one that hangs holds nothing up.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from langevinrl.errors import UserError, unknown
from langevinrl.storage.folder import TRACKERS

PROJECT = "langevinrl"  # what runs are filed under, unless the tracker's own variable says
PATIENCE = 30.0  # seconds that a tracker may take to finish when the run has ended


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker is told of a run."""

    folder: Path
    config: dict[str, Any]  # every field, the agent's among them
    step: int  # environment steps already taken; more than 0 if the run was taken up again


class Sink(Protocol):
    """One tracker, open."""

    def log(self, step: int, values: dict[str, float]) -> None:
        """Numbers by tag, after `step` environment steps."""
        ...

    def close(self) -> None: ...


class TensorBoard:
    """Event files in the run's folder: tensorboard --logdir runs."""

    def __init__(self, run: TrackedRun) -> None:
        writer = importlib.import_module("tensorboardX").SummaryWriter
        # What a crash left of steps that are now taken again is hidden by the purge.
        purge = run.step or None
        place, suffix = str(run.folder / "tensorboard"), f".{run.step}"
        # The suffix, as files are named by the second: a run resumed at once would lose the first.
        self.writer = writer(place, purge_step=purge, flush_secs=10, filename_suffix=suffix)

    def log(self, step: int, values: dict[str, float]) -> None:
        for tag, value in values.items():
            self.writer.add_scalar(tag, value, step)

    def close(self) -> None:
        self.writer.close()


class WandB:
    """Weights & Biases; WANDB_MODE, WANDB_PROJECT, WANDB_ENTITY and the rest are heeded."""

    def __init__(self, run: TrackedRun) -> None:
        wandb = importlib.import_module("wandb")
        known = read_id(run, "wandb")
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT), name=run.folder.name,
            config=run.config, dir=os.environ.get("WANDB_DIR", str(run.folder)),
            id=known, resume="allow" if known else None, reinit="create_new",
        )  # fmt: skip
        write_id(run, "wandb", self.run.id)
        # Its own step may only rise; steps that a resumed run takes again may be logged again.
        self.run.define_metric("*", step_metric="time/total_timesteps")

    def log(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values | {"time/total_timesteps": step})

    def close(self) -> None:
        self.run.finish()


class Trackio:
    """trackio, which speaks W&B's words; the run goes by its folder's name."""

    def __init__(self, run: TrackedRun) -> None:
        trackio = importlib.import_module("trackio")
        project = os.environ.get("TRACKIO_PROJECT", PROJECT)
        resume = "allow" if run.step else "never"
        self.run = trackio.init(project, name=run.folder.name, config=run.config, resume=resume)

    def log(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values, step=step)

    def close(self) -> None:
        self.run.finish()


class MLflow:
    """MLflow; MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME are heeded."""

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


@dataclass(frozen=True)
class Kind:
    """A tracker by name: how it is opened, the package it needs, the extra that brings it."""

    open: Callable[[TrackedRun], Sink]
    package: str
    extra: str


KINDS: dict[str, Kind] = {
    "tensorboard": Kind(TensorBoard, "tensorboardX", "tensorboard"),
    "wandb": Kind(WandB, "wandb", "wandb"),
    "trackio": Kind(Trackio, "trackio", "trackio"),
    "mlflow": Kind(MLflow, "mlflow", "mlflow"),
}


def require_trackers(names: Sequence[str]) -> None:
    """Refuses a name that is none, and a tracker whose package is not installed."""
    for name in names:
        if name not in KINDS:
            raise UserError(unknown("tracker", name, KINDS))
        if importlib.util.find_spec(KINDS[name].package) is None:
            raise UserError(
                f"--track {name} needs {KINDS[name].package}, which is not installed: "
                f"pip install 'langevinrl[{KINDS[name].extra}]'"
            )


def read_id(run: TrackedRun, name: str) -> str | None:
    """What a tracker called this run when it was first logged; None for one begun anew."""
    try:
        table = json.loads((run.folder / TRACKERS).read_text()) if run.step else {}
    except (OSError, ValueError):
        return None
    found: str | None = table.get(name)
    return found


def write_id(run: TrackedRun, name: str, id_: str) -> None:
    """Kept in the run's folder, so that a resumed run is logged where it was."""
    path = run.folder / TRACKERS
    try:
        table = json.loads(path.read_text())
    except (OSError, ValueError):
        table = {}
    path.write_text(json.dumps(table | {name: id_}) + "\n")


class Worker:
    """One tracker in a thread of its own, from opening to closing."""

    def __init__(self, name: str, run: TrackedRun) -> None:
        self.name = name
        self.failure: Exception | None = None
        self._jobs: queue.SimpleQueue[tuple[int, dict[str, float]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, args=(run,), daemon=True)
        self._thread.start()

    def log(self, step: int, values: dict[str, float]) -> None:
        if self.failure is None:
            self._jobs.put((step, values))

    def close(self) -> bool:
        """Wait until all is written; says whether it came to that in time."""
        self._jobs.put(None)
        self._thread.join(PATIENCE)
        return not self._thread.is_alive()

    def _work(self, run: TrackedRun) -> None:
        try:
            sink = KINDS[self.name].open(run)
            while (job := self._jobs.get()) is not None:
                sink.log(*job)
            sink.close()
        except Exception as error:  # whatever it is, it is no reason to stop a run
            self.failure = error
