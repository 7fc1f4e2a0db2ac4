"""One job of a sweep: python -m langevinrl.sweeps.job SWEEP ID."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langevinrl.errors import UserError
from langevinrl.runs.callbacks import Callback
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.finish import Stopped
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.train import resume, train
from langevinrl.storage import cache, checkpoint, trust
from langevinrl.storage.folder import DONE, PROGRAMS, PROGRESS, RunFolder
from langevinrl.storage.locks import FolderLock, LostLockError, acquire
from langevinrl.sweeps.queue import Job, SweepFolder
from langevinrl.sweeps.slots import enter_slot

Outcome: TypeAlias = Literal["done", "failed", "refused", "stopped", "busy"]
# Exit codes of a job's process.  A refused job, such as a mistake in its fields, is not retried.
EXITS: dict[Outcome, int] = {"done": 0, "failed": 1, "refused": 2, "busy": 75, "stopped": 130}
PROGRESS_SECONDS = 5.0  # between writes of progress.json


def run_job(
    sweep: str | Path,
    id_: str,
    keep_replay: bool = False,
    wait: bool = False,
    trusted: bool = False,
) -> Outcome:
    """Train one job to its end, from its last checkpoint if there is one.

    A job that is done, or that another process works on, is left alone.
    wait: take it up once that process is gone, as it may have died on another machine
    trusted: allow the import of the names in the sweep
    """
    folder = SweepFolder(sweep)
    job = folder.job(id_)
    try:
        trust.require_trusted(folder.path, job.config.imported(), trusted)
    except UserError as error:
        job.record_error(str(error))
        return "refused"
    while not job.done:
        lock = lock_job(job)
        if lock is not None:
            with lock:
                return _attempt(folder, job, lock, keep_replay)
        if not wait:
            return "busy"
        time.sleep(1.0)
    return "done"


def lock_job(job: Job) -> FolderLock | None:
    """Lock the run folder of a job; return None if another process works on it."""
    job.folder.mkdir(parents=True, exist_ok=True)
    return acquire(job.folder)


def _attempt(folder: SweepFolder, job: Job, lock: FolderLock, keep_replay: bool) -> Outcome:
    """Work on a locked job and record what goes wrong."""
    try:
        return "done" if job.done else _work(folder, job, lock, keep_replay)
    except LostLockError:
        return "busy"
    except UserError as error:
        refused = error.exit_code == UserError.exit_code
        job.record_error(str(error) if refused else traceback.format_exc())
        return "refused" if refused else "failed"
    except Exception:
        job.record_error(traceback.format_exc())
        return "failed"


def _work(folder: SweepFolder, job: Job, lock: FolderLock, keep_replay: bool) -> Outcome:
    if job.config.compilation_cache:  # the seeds of a configuration share one program
        # A compiled program is code: those in a received sweep are not run.
        ours = trust.is_remembered(trust.made_by_us(folder.path))
        cache.use_cache(folder.path / PROGRAMS if ours else None)
    progress = train_job(job, lock)
    if progress is None:
        return "stopped"
    job.write(DONE, json.dumps(progress | {"tries": len(job.errors) + 1}))
    if not keep_replay:
        checkpoint.keep_weights_only(RunFolder(job.folder))
    return "done"


def train_job(
    job: Job, lock: FolderLock, callbacks: Sequence[Callback] = ()
) -> dict[str, Any] | None:
    """Start or resume the run of a job; return its progress, None if a signal stopped it.

    A run that one of the `callbacks` ended has come to its end.
    """
    watch = _Watch(job)
    try:
        if RunFolder(job.folder).config.exists():
            resume(job.folder, callbacks=[*callbacks, watch], quiet=True, lock=lock)
        else:
            train(job.config, callbacks=[*callbacks, watch], quiet=True, lock=lock)
    except Stopped:
        return None
    return None if watch.is_orphan else watch.progress


class _Watch(Callback):
    """Writes a job's progress, and stops its run if the sweep's process is gone."""

    def __init__(self, job: Job) -> None:
        self.job, self.parent, self.is_orphan = job, os.getppid(), False
        self.progress: dict[str, Any] = {}

    def on_start(self, run: Run) -> None:
        self.began = self.written = time.monotonic()
        self.progress = {"iteration": run.iteration}

    def on_step(self, run: Run, info: StepInfo) -> bool:
        now = time.monotonic()
        if "first" not in self.progress and not info.warming_up:
            # Warm-up and compilation are over: the speed is measured from here.
            self.progress |= {"first": info.iteration, "startup": round(now - self.began, 1)}
            self.began = now
        self.progress |= {"iteration": info.iteration, "seconds": round(now - self.began, 2)}
        if now - self.written > PROGRESS_SECONDS:
            self.written = now
            try:
                self.job.write(PROGRESS, json.dumps(self.progress))
            except (OSError, UserError):  # a file system that is away for a moment
                pass
        self.is_orphan = os.getppid() != self.parent
        return self.is_orphan

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        self.progress["return"] = round(evaluation.mean, 2)


def main(words: list[str] | None = None) -> None:
    """Run the process of one job; its exit code is the outcome."""
    parser = argparse.ArgumentParser(prog="python -m langevinrl.sweeps.job")
    parser.add_argument("sweep")
    parser.add_argument("id")
    parser.add_argument("--keep-replay", action="store_true")
    asked = enter_slot(parser, words)
    sys.exit(EXITS[run_job(asked.sweep, asked.id, asked.keep_replay, trusted=asked.trust)])


if __name__ == "__main__":
    main()
