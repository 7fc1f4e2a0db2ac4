"""One trial of a tuning: python -m langevinrl.sweeps.trial FOLDER."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langevinrl.runs.callbacks import Callback
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.finish import Stopped
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.train import resume, train
from langevinrl.storage.checkpoint import keep_weights_only
from langevinrl.storage.folder import DONE, RunFolder
from langevinrl.storage.trust import remember, search_here
from langevinrl.sweeps import claims
from langevinrl.sweeps.grid import require_names
from langevinrl.sweeps.job import EXITS, Heartbeat
from langevinrl.sweeps.queue import Job, is_begun, write
from langevinrl.sweeps.slots import stay_on
from langevinrl.sweeps.tune import TuneFolder
from langevinrl.sweeps.watch import Watch

if TYPE_CHECKING:
    from optuna.trial import Trial


class Watched(Callback):
    """Tells a trial of every evaluation; ends it when it is hopeless, or its time is up."""

    def __init__(self, trial: Trial, seconds: float | None) -> None:
        self.trial, self.seconds = trial, seconds
        self.pruned = False
        self.history: list[tuple[float, float]] = []  # seconds, mean return over all seeds

    def on_step(self, run: Run, info: StepInfo) -> bool:
        late = self.seconds is not None and run.wall_seconds > self.seconds
        return self.pruned or (late and bool(self.history))

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        self.history.append((run.wall_seconds, evaluation.mean))
        self.trial.report(evaluation.mean, evaluation.iteration)
        self.pruned = bool(self.trial.should_prune())  # NumPy has a bool of its own, JSON not


def run_trial(place: TuneFolder, trial: Trial) -> str:
    """Train what the trial suggests, or go on with it; how it ended."""
    import optuna

    config = place.search.config(place.search.suggest(trial))
    job = place.job(config)
    remember(config.imported())  # so that its folder is resumed, if it names the same
    claim = claims.take(job.state)
    if claim is None:  # another process trains the very same
        place.study().tell(trial, state=optuna.trial.TrialState.FAIL)
        return "busy"
    trial.set_user_attr("job", job.id)
    beat = Heartbeat(job, claim)
    try:
        return _train(place, trial, job, beat)
    except Exception as error:
        job.record_error(repr(error))
        place.study().tell(trial, state=optuna.trial.TrialState.FAIL)
        return "failed"
    finally:
        beat.stop()
        claim.release()


def _train(place: TuneFolder, trial: Trial, job: Job, beat: Heartbeat) -> str:
    import optuna

    watched = Watched(trial, place.seconds)
    if not job.done:
        hung: list[Callback] = [watched, Watch(beat)]
        try:
            if is_begun(job):
                resume(job.folder, callbacks=hung, quiet=True, take_over=True)
            else:
                train(job.config, callbacks=hung, quiet=True)
        except Stopped:
            return "stopped"
        if beat.alone:  # saved, to be gone on with
            return "stopped"
        score = read_score(job.folder, place.objective)
        write(job.state / DONE, json.dumps({"score": score, "pruned": watched.pruned}) + "\n")
        keep_weights_only(RunFolder(job.folder))
    result = json.loads((job.state / DONE).read_text())
    pruned = optuna.trial.TrialState.PRUNED if result["pruned"] else None
    place.study().tell(trial, None if pruned else result["score"], state=pruned)
    return "done"


def read_score(folder: Path, objective: str) -> float:
    """The last evaluation's mean over seeds and episodes; or its gain on the first, per second."""
    rows = RunFolder(folder).read_evaluations()
    points: dict[int, list[float]] = {}
    for row in rows:
        points.setdefault(int(row["iterations"]), []).append(float(row["return"]))
    first, last = min(points), max(points)
    final = sum(points[last]) / len(points[last])
    if objective == "return":
        return final
    began = sum(points[first]) / len(points[first])
    return (final - began) / max(float(rows[-1]["wall_seconds"]), 1e-9)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m langevinrl.sweeps.trial")
    parser.add_argument("folder")
    parser.add_argument("--cores", default="", help="processors to stay on, as 0,1")
    parser.add_argument("--trust", action="store_true", help="import what the search names")
    asked = parser.parse_args(words)
    stay_on(asked.cores)
    if asked.trust:
        search_here()
    place = TuneFolder(asked.folder)
    require_names(place.path, [place.search.base, place.search.space], asked.trust)
    place.take_up_cut_trials()
    outcome: Any = run_trial(place, place.study().ask())
    sys.exit(EXITS[outcome])


if __name__ == "__main__":
    main()
