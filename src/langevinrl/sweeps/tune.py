"""Search for good hyperparameters with Optuna: several workers, one folder, one shared journal.

tune.json     base, space, seeds, objective
journal.log   Optuna's record of every trial; a file that many processes append to, network file
              systems included, so that no database is needed
jobs/         a run folder each, named by the hash of its configuration
best.json     the best run, as `langevinrl train best.json` takes it
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from langevinrl.errors import Interrupted, UserError, free_signals
from langevinrl.runs.config import RunConfig
from langevinrl.storage.files import read_json
from langevinrl.storage.folder import JOB_STATE, JOBS
from langevinrl.sweeps import claims
from langevinrl.sweeps.grid import job_id, require_names
from langevinrl.sweeps.queue import Job, write
from langevinrl.sweeps.slots import Slot, find_slots, start_process
from langevinrl.sweeps.space import Objective, Range, Search, read_search

if TYPE_CHECKING:
    import optuna

TUNE, JOURNAL, BEST, LOG = "tune.json", "journal.log", "best.json", "log.txt"
STARTUP_TRIALS = 5  # before the median of the others may end a trial
GRACE = 60.0  # seconds in which a process that asked for a trial has begun it
MOST_FAILURES = 3  # in a row, before the search is given up
PAUSE = 0.5  # seconds between looks


class TuneFolder:
    """A search on disk, shared by all who work on it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            table = read_json(self.path / TUNE, "a search")
        except UserError as error:
            raise UserError(f"{self.path} is not the folder of a search: {error}") from error
        self.search = _search(table)
        self.objective, self.seconds = table["objective"], table["seconds"]

    @classmethod
    def write(
        cls, path: Path, search: Search, objective: Objective, seconds: float | None
    ) -> TuneFolder:
        """Make the folder; one that is there must be of the same search."""
        table = dataclasses.asdict(search) | {"objective": objective, "seconds": seconds}
        text = json.dumps(table, indent=2) + "\n"
        if (path / TUNE).exists():
            if (path / TUNE).read_text() != text:
                raise UserError(f"{path} holds another search: choose another --out")
        elif path.exists() and any(path.iterdir()):
            raise UserError(f"{path} is neither empty nor the folder of a search")
        else:
            path.mkdir(parents=True, exist_ok=True)
            write(path / TUNE, text)
        return cls(path)

    def study(self) -> optuna.Study:
        """The shared record of trials."""
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
        """Where a choice is trained: the same choice, the same place."""
        id_ = job_id(config)
        folder = self.path / JOBS / f"{config.agent}-{id_}"
        place = self.path / JOB_STATE / id_
        return Job(id_, dataclasses.replace(config, out=str(folder)), folder, place)

    def take_up_cut_trials(self) -> None:
        """Give the choices of trials whose process is gone to the next that ask.

        Their runs go on from their checkpoints, as the same choice has the same folder.
        """
        optuna = import_optuna()
        study = self.study()
        for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
            place = self.path / JOB_STATE / trial.user_attrs.get("job", "none")
            young = trial.duration is None and _age(trial) < GRACE and "job" not in trial.user_attrs
            if young or claims.is_held(place):
                continue
            try:
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            except (ValueError, RuntimeError):  # another process was quicker
                continue
            if trial.params:
                study.enqueue_trial(trial.params)

    def finished(self) -> list[Any]:
        """Trials that count: trained to their end, or given up as hopeless."""
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
    """Search until `trials` trials are done, here and wherever else the folder is worked on.

    objective: the last evaluation's mean return over all seeds, or its gain per second
    seconds: end each run after that long, so that what is fast is preferred
    trust: import agents and environments of someone's own that a file names
    Returns the best run's configuration, also written to best.json.
    """
    if trials < 1 or (workers is not None and workers < 1):
        raise UserError(f"--trials is {trials}, --workers {workers}; expected at least 1")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UserError(f"--seconds is {seconds}; expected a finite time, more than 0")
    import_optuna()
    search = read_search(search, trust=trust) if isinstance(search, Path) else search
    place = TuneFolder.write(out, search, objective, seconds)
    require_names(place.path, [search.base, search.space], trust=True)  # ours, or just allowed
    console = Console(quiet=quiet, highlight=False, markup=False)
    _Workers(place, find_slots(trials, workers), trials, console).run()
    return show_best(place, console)


class _Workers:
    """A process per slot, a fresh one for each trial."""

    def __init__(self, place: TuneFolder, slots: list[Slot], trials: int, console: Console) -> None:
        self.place, self.slots, self.trials, self.console = place, slots, trials, console
        self.running: dict[int, Any] = {}
        self.stopping = False
        self.first: int = signal.SIGINT  # the signal that ended it
        self.failures = 0

    def run(self) -> None:
        names = free_signals()
        old = {name: signal.signal(name, self._on_signal) for name in names}
        done = -1
        try:
            while True:
                finished = self.place.finished()
                if len(finished) != done:
                    done = len(finished)
                    self.console.print(f"{done}/{self.trials} trials{_best_words(finished)}")
                if self._step(done) and not self.running:
                    break
                time.sleep(PAUSE)
        finally:
            for process in self.running.values():
                process.kill()
                process.wait()
            for name, handler in old.items():
                signal.signal(name, handler)
        if self.stopping:
            raise Interrupted("Stopped; every run is saved.  The same command goes on.", self.first)

    def _step(self, done: int) -> bool:
        """Collect ended processes and start others; whether no more are to be started."""
        for slot, process in list(self.running.items()):
            if process.poll() is not None:
                del self.running[slot]
                self.failures = self.failures + 1 if process.returncode == 1 else 0
        if self.failures >= MOST_FAILURES:
            raise UserError(
                f"{MOST_FAILURES} trials in a row failed; the last words are in "
                f"{self.place.path / JOB_STATE}"
            )
        enough = self.stopping or done >= self.trials
        for slot in range(len(self.slots)):
            if slot not in self.running and not enough and done + len(self.running) < self.trials:
                words = ["langevinrl.sweeps.trial", str(self.place.path), "--trust"]
                log = self.place.path / LOG
                self.running[slot] = start_process(words, self.slots[slot], log)
        return enough

    def _on_signal(self, number: int, _: Any) -> None:
        self.first = self.first if self.stopping else number
        for process in self.running.values():
            process.send_signal(signal.SIGKILL if self.stopping else signal.SIGTERM)
        self.stopping = True


def show_best(place: TuneFolder, console: Console) -> RunConfig:
    """The best run, written to best.json and told."""
    from rich.table import Table

    finished = [trial for trial in place.finished() if trial.value is not None]
    finished.sort(key=lambda trial: trial.value, reverse=True)
    if not finished:
        raise UserError(f"no trial of {place.path} came to its end: give more --trials")
    table = Table(place.objective, *place.search.space, box=None, padding=(0, 2, 0, 0))
    for trial in finished[:5]:
        chosen = place.search.decode(trial.params)
        table.add_row(f"{trial.value:.4g}", *(_short(chosen[name]) for name in place.search.space))
    console.print(table)
    best = place.search.config(place.search.decode(finished[0].params))
    dataclasses.replace(best, out=None).write(place.path / BEST)
    path = shlex.quote(str(place.path / BEST))
    console.print(f"Train with it: langevinrl train {path}", soft_wrap=True)
    return best


def import_optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise UserError(f"cannot tune ({error}): pip install 'langevinrl[tune]'") from error
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


def _best_words(finished: list[Any]) -> str:
    values = [trial.value for trial in finished if trial.value is not None]
    return f", best {max(values):.4g}" if values else ""


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
