"""Hyperparameter search with Optuna: several workers, one folder, one shared journal.

tune.json     base, space, seeds, objective
journal.log   Optuna's record of every trial; a file that many processes append to, also on network
              file systems, so that no database is needed
jobs/         a run folder each, named by the hash of its configuration
best.json     the best run, for `langevinrl train best.json`
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.storage.files import read_json, read_text, require_no_links, write_text
from langevinrl.storage.folder import JOB_STATE, JOBS
from langevinrl.storage.locks import is_locked
from langevinrl.sweeps.grid import job_id, require_names
from langevinrl.sweeps.queue import Job
from langevinrl.sweeps.slots import LOG, PAUSE, Slot, Workers, find_slots, needs_extra
from langevinrl.sweeps.space import Objective, Range, Search, read_search

if TYPE_CHECKING:
    import optuna

TUNE, JOURNAL, BEST = "tune.json", "journal.log", "best.json"
RUN = "run"  # attribute of a trial: the name of its run folder
STARTUP_TRIALS = 5  # before the median of the others may end a trial
GRACE = 60.0  # seconds that a process has to lock the folder of a new trial
MAX_FAILURES = 3  # in a row, before the search is given up


class TuneFolder:
    """A search on disk, shared by all processes that work on it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            require_no_links(self.path)
            table = read_json(self.path / TUNE, "a search")
            self.search = _search(table)
            self.objective, self.seconds = table["objective"], table["seconds"]
        except (OSError, UserError, LookupError, TypeError, AttributeError) as error:
            raise UserError(f"{self.path} is not the folder of a search: {error!r}") from error

    @classmethod
    def write(
        cls, path: Path, search: Search, objective: Objective, seconds: float | None
    ) -> TuneFolder:
        """Create the folder; an existing one must hold the same search."""
        table = dataclasses.asdict(search) | {"objective": objective, "seconds": seconds}
        text = json.dumps(table, indent=2) + "\n"
        if (path / TUNE).exists():
            if read_text(path / TUNE, "a search") != text:
                raise UserError(f"{path} holds another search: choose another --out")
        elif path.exists() and any(path.iterdir()):
            raise UserError(f"{path} is neither empty nor the folder of a search")
        else:
            path.mkdir(parents=True, exist_ok=True)
            write_text(path / TUNE, text)
        return cls(path)

    def study(self) -> optuna.Study:
        """Return the shared record of trials."""
        optuna = import_optuna()
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        file = str(self.path / JOURNAL)
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(file, JournalFileOpenLock(file))),
            sampler=optuna.samplers.TPESampler(multivariate=True),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS),
            study_name="langevinrl",
            direction="maximize",
            load_if_exists=True,
        )

    def job(self, config: RunConfig) -> Job:
        """Return the job of a configuration: the same configuration has the same folder."""
        id_ = job_id(config)
        return Job.below(self.path, id_, f"{config.agent}-{id_}", config)

    def requeue_interrupted(self) -> None:
        """Queue the parameters of trials again whose process is gone.

        Their runs go on from their checkpoints.
        """
        optuna = import_optuna()
        study = self.study()
        for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
            run = trial.user_attrs.get(RUN)
            is_held = _age(trial) < GRACE if run is None else is_locked(self.path / JOBS / run)
            if is_held:
                continue
            try:
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            except (ValueError, RuntimeError):  # another process was faster
                continue
            if trial.params:
                study.enqueue_trial(trial.params)

    def finished(self) -> list[Any]:
        """Return the trials that were completed or pruned."""
        state = import_optuna().trial.TrialState
        return self.study().get_trials(deepcopy=False, states=[state.COMPLETE, state.PRUNED])


def tune(
    search: Search | Path,
    out: Path,
    *,
    trials: int = 50,
    objective: Objective = "return",
    seconds: float | None = None,
    workers: int | None = None,
    quiet: bool = False,
    trust: bool = False,
) -> RunConfig:
    """Search until `trials` trials are finished, by all processes that work on the folder.

    objective: the last evaluation's mean return over all seeds, or its gain per second
    seconds: end each run after that long, so that fast settings are preferred
    trust: allow the import of agents and environments that a file names
    Returns the best run's configuration, which is also written to best.json.
    """
    if trials < 1 or (workers is not None and workers < 1):
        raise UserError(f"--trials is {trials}, --workers {workers}; expected at least 1")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UserError(f"--seconds is {seconds}; expected a finite time, more than 0")
    import_optuna()
    search = read_search(search, trust=trust) if isinstance(search, Path) else search
    folder = TuneFolder.write(out, search, objective, seconds)
    require_names(folder.path, [search.base, search.space], trust=True)  # ours, or just allowed
    console = Console(quiet=quiet, highlight=False, markup=False)
    _run_trials(folder, find_slots(trials, workers), trials, console)
    return show_best(folder, console)


def _run_trials(folder: TuneFolder, slots: list[Slot], trials: int, console: Console) -> None:
    """Run a process per trial, several at a time."""
    failures, shown = 0, -1
    with Workers(slots) as workers:
        while True:
            for _, code in workers.collect():
                failures = failures + 1 if code == 1 else 0
            if failures >= MAX_FAILURES:
                raise UserError(
                    f"{MAX_FAILURES} trials in a row failed; the last errors are in "
                    f"{folder.path / JOB_STATE}"
                )
            finished = folder.finished()
            if len(finished) != shown:
                shown = len(finished)
                console.print(f"{shown}/{trials} trials{_describe_best(finished)}")
            while workers.has_room and shown + len(workers.running) < trials:
                words = ["langevinrl.sweeps.trial", str(folder.path), "--trust"]
                workers.start(None, words, folder.path / LOG)
            if not workers.running:
                break
            time.sleep(PAUSE)
    workers.raise_if_stopped("The same command goes on.")


def show_best(folder: TuneFolder, console: Console) -> RunConfig:
    """Print the best trials, and write the best run to best.json."""
    from rich.table import Table

    finished = [trial for trial in folder.finished() if trial.value is not None]
    finished.sort(key=lambda trial: trial.value, reverse=True)
    if not finished:
        raise UserError(f"no trial of {folder.path} came to its end: give more --trials")
    search = folder.search
    table = Table(folder.objective, *search.space, box=None, padding=(0, 2, 0, 0))
    for trial in finished[:5]:
        chosen = search.decode(trial.params)
        table.add_row(f"{trial.value:.4g}", *(_short(chosen[name]) for name in search.space))
    console.print(table)
    best = search.config(search.decode(finished[0].params))
    dataclasses.replace(best, out=None).write(folder.path / BEST)
    path = shlex.quote(str(folder.path / BEST))
    console.print(f"Train with it: langevinrl train {path}", soft_wrap=True)
    return best


def import_optuna() -> Any:
    with needs_extra("tune"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _search(table: dict[str, Any]) -> Search:
    space = {
        name: Range(**values) if isinstance(values, dict) else tuple(values)
        for name, values in table["space"].items()
    }
    return Search(table["base"], space, tuple(table["seeds"]))


def _age(trial: Any) -> float:
    return time.time() - trial.datetime_start.timestamp() if trial.datetime_start else 0.0


def _describe_best(finished: list[Any]) -> str:
    values = [trial.value for trial in finished if trial.value is not None]
    return f", best {max(values):.4g}" if values else ""


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
