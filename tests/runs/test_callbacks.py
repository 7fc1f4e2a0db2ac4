"""Callbacks: their order, how they stop a run, and what happens after an error."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
import toys
from tiny import lql_config as config

from langevinrl.runs.callbacks import Callback
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.train import train
from langevinrl.storage import checkpoint
from langevinrl.storage.folder import RunFolder
from langevinrl.types import Batch


class Diary(Callback):
    """Records every call."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name, self.lines = name, lines

    def note(self, what: str) -> None:
        self.lines.append(f"{self.name} {what}")

    def on_start(self, run: Run) -> None:
        self.note("start")

    def on_step(self, run: Run, info: StepInfo) -> None:
        if not info.warming_up:
            self.note(f"step {info.iteration}")

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        self.note(f"evaluation {evaluation.iteration}")

    def on_end(self, run: Run) -> None:
        self.note("end")


def test_callbacks_are_called_in_order_and_ended_backwards(tmp_path: Path) -> None:
    lines: list[str] = []
    mine = [Diary("a", lines), Diary("b", lines)]
    train(config(tmp_path / "run", iterations=3), callbacks=mine, quiet=True)
    assert lines == [
        "a start", "b start",
        "a step 1", "b step 1",
        "a step 2", "b step 2",
        "a evaluation 3", "b evaluation 3",  # before on_step of the same iteration
        "a step 3", "b step 3",
        "b end", "a end",
    ]  # fmt: skip


class StopOnce(Callback):
    def __init__(self, event: str) -> None:
        self.event = event

    def on_start(self, run: Run) -> bool:
        return self.event == "start"

    def on_step(self, run: Run, info: StepInfo) -> bool:
        return self.event == "step" and info.iteration == 2

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> bool:
        return self.event == "evaluation" and np.isfinite(evaluation.mean)


@pytest.mark.parametrize(("event", "last"), [("start", None), ("step", 2), ("evaluation", 3)])
def test_each_method_may_stop_the_run_which_is_then_saved(
    event: str, last: int | None, tmp_path: Path
) -> None:
    folder = RunFolder(train(config(tmp_path / "run"), callbacks=[StopOnce(event)], quiet=True))
    if last is None:
        assert not folder.saved_checkpoints()
    else:
        assert checkpoint.load(folder).metadata["iteration"] == last


def test_after_an_error_all_callbacks_end_and_the_environments_close() -> None:
    lines: list[str] = []

    class Failing(Callback):
        def on_step(self, run: Run, info: StepInfo) -> None:
            raise ZeroDivisionError

    mine = [Diary("a", lines), Failing(), Diary("b", lines)]
    with (
        pytest.raises(ZeroDivisionError),
        Run(config().resolved(), env=toys.wide, callbacks=mine) as run,
    ):
        run.until(2)
    assert lines == ["a start", "b start", "b end", "a end"]
    assert run.envs.vector.closed


def test_hyperparameters_can_be_changed_during_a_run() -> None:
    gammas: list[float] = []
    with Run(config(n_step=2).resolved(), env=toys.wide) as run:
        sample = run.replay.sample

        def watched(size: int, *, n_step: int, gamma: float) -> Batch:
            gammas.append(gamma)
            return sample(size, n_step=n_step, gamma=gamma)

        run.replay.sample = watched  # type: ignore[assignment,method-assign]
        run.until(2)
        before = jax.tree.map(np.array, run.state)
        run.change_agent(learning_rate=0.0, gamma=0.5)
        run.until(4)
    jax.tree.map(np.testing.assert_array_equal, run.state.critic.params, before.critic.params)
    assert int(run.state.critic.opt_state[0].count[0]) == 4
    assert gammas == [0.99, 0.99, 0.5, 0.5]
