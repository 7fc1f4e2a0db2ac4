"""One trial of a search: python -m langevinrl.sweeps.trial FOLDER."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from langevinrl.runs.callbacks import Callback
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.storage.checkpoint import keep_weights_only
from langevinrl.storage.files import read_json
from langevinrl.storage.folder import DONE, RunFolder
from langevinrl.storage.locks import FolderLock
from langevinrl.storage.trust import remember
from langevinrl.sweeps.grid import require_names
from langevinrl.sweeps.job import EXITS, Outcome, lock_job, train_job
from langevinrl.sweeps.queue import Job
from langevinrl.sweeps.slots import enter_slot
from langevinrl.sweeps.tune import RUN, TuneFolder

if TYPE_CHECKING:
    from optuna.trial import Trial


class ReportTrial(Callback):
    """Reports every evaluation to a trial; stops the run if it is pruned or out of time."""

    def __init__(self, trial: Trial, seconds: float | None) -> None:
        self.trial, self.seconds = trial, seconds
        self.evaluated = self.pruned = False

    def on_step(self, run: Run, info: StepInfo) -> bool:
        late = self.seconds is not None and run.wall_seconds > self.seconds
        return self.pruned or (late and self.evaluated)

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        self.evaluated = True
        self.trial.report(evaluation.mean, evaluation.iteration)
        self.pruned = bool(self.trial.should_prune())  # JSON does not take NumPy's bool


def run_trial(folder: TuneFolder, trial: Trial) -> Outcome:
    """Train or resume the run that the trial suggests."""
    import optuna

    config = folder.search.config(folder.search.suggest(trial))
    job = folder.job(config)
    remember(config.imported())  # so that its folder can be resumed
    lock = lock_job(job)
    if lock is None:  # another process trains the same configuration
        folder.study().tell(trial, state=optuna.trial.TrialState.FAIL)
        return "busy"
    trial.set_user_attr(RUN, job.folder.name)
    with lock:
        try:
            return _train(folder, trial, job, lock)
        except Exception as error:
            job.record_error(repr(error))
            folder.study().tell(trial, state=optuna.trial.TrialState.FAIL)
            return "failed"


def _train(folder: TuneFolder, trial: Trial, job: Job, lock: FolderLock) -> Outcome:
    import optuna

    if not job.done:
        report = ReportTrial(trial, folder.seconds)
        if train_job(job, lock, [report]) is None:
            return "stopped"
        score = read_score(job.folder, folder.objective)
        job.write(DONE, json.dumps({"score": score, "pruned": report.pruned}))
        keep_weights_only(RunFolder(job.folder))
    result = read_json(job.state / DONE, "a trial's result")
    pruned = optuna.trial.TrialState.PRUNED if result["pruned"] else None
    folder.study().tell(trial, None if pruned else result["score"], state=pruned)
    return "done"


def read_score(folder: Path, objective: str) -> float:
    """Return the mean return of the last evaluation, or its gain over the first per second."""
    rows = RunFolder(folder).read_evaluations()
    points: dict[int, list[float]] = {}
    for row in rows:
        points.setdefault(int(row["iterations"]), []).append(float(row["return"]))
    first, last = min(points), max(points)
    final = sum(points[last]) / len(points[last])
    if objective == "return":
        return final
    initial = sum(points[first]) / len(points[first])
    return (final - initial) / max(float(rows[-1]["wall_seconds"]), 1e-9)


def main(words: list[str] | None = None) -> None:
    """Run the process of one trial; its exit code is the outcome."""
    parser = argparse.ArgumentParser(prog="python -m langevinrl.sweeps.trial")
    parser.add_argument("folder")
    asked = enter_slot(parser, words)
    folder = TuneFolder(asked.folder)
    require_names(folder.path, [folder.search.base, folder.search.space], asked.trust)
    folder.requeue_interrupted()
    sys.exit(EXITS[run_trial(folder, folder.study().ask())])


if __name__ == "__main__":
    main()
