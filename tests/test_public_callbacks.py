"""Public callbacks, and the forms that `callback=` accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langevinrl import Model, UserError, callbacks
from langevinrl.callbacks import as_callbacks
from langevinrl.runs.evaluate import Episode, Evaluation
from langevinrl.runs.loop import Run, StepInfo

SMALL: dict[str, Any] = {
    "hidden": [8], "num_steps": 3, "warmup": 20, "batch_size": 8, "num_envs": 2, "capacity": 100,
    "eval_every": 2, "eval_episodes": 2, "inverse_temperature": 10.0, "normalise": False,
}  # fmt: skip
OBS = np.ones((2, 3), np.float32)


def learn(out: Path, callback: Any, iterations: int = 6) -> Model:
    model = Model("lql", "toys:wide", out=out, **SMALL)
    return model.learn(iterations, callback=callback, progress_bar=False)


def test_stop_on_return(tmp_path: Path) -> None:
    assert learn(tmp_path / "low", callbacks.StopOnReturn(-1e9)).iteration == 2
    assert learn(tmp_path / "high", callbacks.StopOnReturn(1e9)).iteration == 6
    exact = Evaluation(0, [Episode(0, 0, 5.0, 1)])
    assert callbacks.StopOnReturn(5.0).on_evaluation(None, exact)  # type: ignore[arg-type]


def test_stop_on_time(tmp_path: Path) -> None:
    assert learn(tmp_path / "now", callbacks.StopOnTime(seconds=1e-9)).iteration <= 1
    assert learn(tmp_path / "later", callbacks.StopOnTime(hours=1, minutes=1)).iteration == 6
    with pytest.raises(UserError, match="needs a time"):
        callbacks.StopOnTime()


def test_evaluate_keeps_its_history_and_the_best_model(tmp_path: Path) -> None:
    own = callbacks.Evaluate(3, episodes=1, mode="noise-free", best=tmp_path / "best")
    model = learn(tmp_path / "run", own)
    assert [(e.iteration, e.mode, len(e.episodes)) for e in own.history] == [
        (3, "noise-free", 1), (6, "noise-free", 1),
    ]  # fmt: skip
    rows = (tmp_path / "run" / "evaluations.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * 2  # only the run's own
    leader = max(own.history, key=lambda evaluation: evaluation.mean)
    best = Model.load(tmp_path / "best")
    assert best.iteration == leader.iteration
    again = best.evaluate(episodes=1, seed=leader.iteration, mode="noise-free")
    assert again.mean == leader.mean
    if leader.iteration == 6:
        np.testing.assert_array_equal(best.predict(OBS)[0], model.predict(OBS)[0])


def test_checkpoint_saves_models_during_training(tmp_path: Path) -> None:
    model = learn(tmp_path / "run", callbacks.Checkpoint(4))
    kept = sorted((tmp_path / "run" / "models").iterdir())
    assert [path.name for path in kept] == ["000000004", "000000006"]
    early, last = (Model.load(path) for path in kept)
    np.testing.assert_array_equal(last.predict(OBS)[0], model.predict(OBS)[0])
    assert (early.predict(OBS)[0] != last.predict(OBS)[0]).any()
    learn(tmp_path / "other", callbacks.Checkpoint(6, into=tmp_path / "kept"))
    assert Model.load(tmp_path / "kept" / "000000006").iteration == 6


def test_a_function_stops_the_run_by_returning_true(tmp_path: Path) -> None:
    seen: list[int] = []

    def mine(run: Run, info: StepInfo) -> bool | None:
        assert run.config.agent == "lql"
        seen.append(info.iteration)
        return True if info.iteration == 3 else None

    assert learn(tmp_path / "run", [mine, callbacks.OnStep(mine, every=2)]).iteration == 3
    assert seen == [1, 2, 2, 3]


def test_accepted_and_refused_forms_of_callbacks() -> None:
    stop = callbacks.StopOnReturn(1.0)
    assert as_callbacks(None) == [] and as_callbacks(stop) == [stop]
    assert as_callbacks([stop, (stop, None)]) == [stop, stop]
    assert isinstance(as_callbacks(lambda run, info: None)[0], callbacks.OnStep)
    for wrong, message in [
        (callbacks.StopOnReturn, "expected an object of a class derived from langevinrl.Callback"),
        (lambda run: None, r"takes \(run\); expected \(run, info\)"),
        ("StopOnReturn", "expected an object of a class derived from langevinrl.Callback"),
    ]:
        with pytest.raises(UserError, match=message):
            as_callbacks(wrong)
    for make in (callbacks.Checkpoint, callbacks.Evaluate):
        with pytest.raises(UserError, match="every is 0"):
            make(0)
