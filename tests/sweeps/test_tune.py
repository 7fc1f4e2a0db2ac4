"""A search by real processes: shared, cut and gone on with, pruned."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from sweeping import TINY, until

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig
from langevinrl.runs.evaluate import Episode, Evaluation
from langevinrl.storage.folder import RunFolder
from langevinrl.sweeps.space import Range, Search, read_search
from langevinrl.sweeps.trial import ReportTrial, read_score
from langevinrl.sweeps.tune import TuneFolder, tune

optuna: Any = pytest.importorskip("optuna")

SEARCH = Search(
    base=TINY,
    space={"inverse_temperature": Range(1.0, 500.0, log=True), "hidden": ((4,), (8,))},
    seeds=(0, 1),
)


def test_search_writes_its_best_run(tmp_path: Path) -> None:
    best = tune(SEARCH, tmp_path / "tune", trials=2, quiet=True)
    place = TuneFolder(tmp_path / "tune")
    finished = place.finished()
    assert len(finished) == 2 and best.seed_list == [0, 1]
    values = {trial.value for trial in finished}
    assert read_score(place.job(best).folder, "return") == max(values)
    written = RunConfig.read(tmp_path / "tune" / "best.json")
    assert written.hyperparameters == best.hyperparameters
    # The same command finds nothing left to do.
    assert tune(SEARCH, tmp_path / "tune", trials=2, quiet=True) == best
    assert len(place.finished()) == 2


def test_killed_trial_is_continued(tmp_path: Path) -> None:
    out = tmp_path / "tune"
    long = {**TINY, "iterations": 400, "eval_every": 400, "checkpoint_every": 20}
    search = Search(long, SEARCH.space, (0,))
    TuneFolder.write(out, search, "return", None)
    trial = subprocess.Popen([sys.executable, "-m", "langevinrl.sweeps.trial", str(out)])
    until(lambda: any(RunFolder(run).saved_iteration() >= 20 for run in out.glob("jobs/*")))
    trial.send_signal(signal.SIGKILL)
    trial.wait()
    (cut,) = out.glob("jobs/*")
    tune(search, out, trials=1, workers=1, quiet=True)
    (finished,) = TuneFolder(out).finished()
    assert finished.user_attrs["run"] == cut.name
    lines = RunFolder(cut).resumes.read_text().splitlines()
    assert len(lines) == 1 and json.loads(lines[0])["iteration"] >= 20


def test_the_score_is_the_last_return_or_its_gain_per_second(tmp_path: Path) -> None:
    (tmp_path / "evaluations.csv").write_text(
        "agent,env,seed,iterations,env_steps,episode,return,length,wall_seconds\n"
        "a,e,0,5,5,0,10,1,2\na,e,1,5,5,0,20,1,2\na,e,0,10,5,0,40,1,10\na,e,1,10,5,0,60,1,10\n"
    )
    assert read_score(tmp_path, "return") == 50
    assert read_score(tmp_path, "return-per-second") == (50 - 15) / 10


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[base]\nenv='Pendulum-v1'", r"no \[space\] table"),
        ("[base]\nenv='x'\n[space]\n", "names no field"),
        ("[base]\n[space]\ngamma=3", "expected a list of choices"),
        ("[base]\n[space]\ngamma={low=2,high=1}", "low < high"),
        ("[base]\n[space]\ngamma={low='a',high=1}", "expected two numbers"),
        ("seeds=3\n[base]\nenv='Pendulum-v1'\n[space]\ngamma=[0.5]", "different numbers"),
        ("[base]\n[space]\ngamma={low=0,high=1,log=true}", "0 < low < high"),
        ("[base]\nenv='Pendulum-v1'\niterations=9\n[space]\ngamma={low=0.5,high=2.0}", "gamma is"),
        ("[base]\nenv='Pendulum-v1'\niterations=9\n[space]\ngama=[0.5]", "did you mean gamma"),
        ("seeds=[1,2,9]\n[base]\nenv='Pendulum-v1'\niterations=9\n[space]\ngamma=[0.5]", "equal"),
    ],
)
def test_mistakes_in_a_search_are_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(UserError, match=words):
        read_search(tmp_path / "a.toml")


def test_another_search_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    TuneFolder.write(tmp_path / "tune", SEARCH, "return", None)
    with pytest.raises(UserError, match="holds another search"):
        TuneFolder.write(tmp_path / "tune", SEARCH, "return-per-second", None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(UserError, match="neither empty"):
        TuneFolder.write(tmp_path / "other", SEARCH, "return", None)


@pytest.mark.parametrize("text", ["", "3", "{}", '{"space": 3}', '{"base": {}, "space": {}}'])
def test_odd_folder_of_a_search_gives_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "tune.json").write_text(text)
    with pytest.raises(UserError, match="is not the folder of a search"):
        TuneFolder(tmp_path)


def test_missing_optuna_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError, match=r"pip install 'langevinrl\[tune\]'"):
        tune(SEARCH, tmp_path / "tune", trials=1)


def test_pruned_flag_can_be_written_as_json() -> None:
    """Once enough trials are done to compare with, the median pruner answers in NumPy's bool."""

    class Hopeless:
        def report(self, value: float, step: int) -> None:
            pass

        def should_prune(self) -> Any:
            return np.bool_(True)

    report = ReportTrial(cast(Any, Hopeless()), seconds=None)
    run = cast(Any, SimpleNamespace(wall_seconds=1.0))
    report.on_evaluation(run, Evaluation(5, [Episode(0, 0, -3.0, 7)]))
    assert json.loads(json.dumps(report.pruned)) is True
    assert report.on_step(run, cast(Any, None))
