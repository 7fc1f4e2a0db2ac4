"""Callbacks for Model.learn(callback=...) and train(config, callbacks=[...]).

A run calls its own callbacks and yours in a fixed order (`runs/callbacks.py`): logs, console,
evaluation, yours as given, signals, checkpoints.  Yours therefore see an evaluation as soon as it
is played, and what they write before a stop is saved.  A callback may read everything in `run` and
`info`, ask to stop by returning True, and call `run.change_agent`.  It must not change the weights,
the replay buffer or the environments, and it must copy what it keeps of `info.state`, because the
next update reuses its memory.

    model.learn(iterations=20_000, callback=[StopOnReturn(9000), StopOnTime(hours=2)])
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from langevinrl.errors import UserError
from langevinrl.runs.callbacks import Callback, Evaluate, is_due, require_count
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.saved import write_model
from langevinrl.runs.video import RecordVideo
from langevinrl.storage.files import require_inside
from langevinrl.storage.folder import checkpoint_name

__all__ = [
    "Callback", "Checkpoint", "Evaluate", "OnStep", "RecordVideo", "StopOnReturn", "StopOnTime",
]  # fmt: skip

StepFunction: TypeAlias = Callable[[Run, StepInfo], bool | None]
CallbackLike: TypeAlias = Callback | StepFunction | Iterable[Callback | StepFunction] | None


class StopOnReturn(Callback):
    """Stops at the first evaluation whose mean return reaches `threshold`.

    It uses the run's own evaluations, every `eval_every` iterations, over all seeds and episodes.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> bool:
        return evaluation.mean >= self.threshold


class StopOnTime(Callback):
    """Stops when this much time has passed since training was started or resumed."""

    def __init__(self, *, hours: float = 0.0, minutes: float = 0.0, seconds: float = 0.0) -> None:
        self.seconds = 3600 * hours + 60 * minutes + seconds
        if not self.seconds > 0:
            raise UserError("StopOnTime needs a time: StopOnTime(hours=2), minutes= or seconds=")

    def on_start(self, run: Run) -> None:
        self.began = time.monotonic()

    def on_step(self, run: Run, info: StepInfo) -> bool:
        return time.monotonic() - self.began >= self.seconds


class Checkpoint(Callback):
    """Saves a model for Model.load every `every` iterations.

    They go to `into`/000010000 and so on; `into` is by default the folder `models` of the run.  The
    run's own checkpoints, which include the replay buffer and serve to resume, are separate: only
    the last few are kept (`keep_checkpoints`).
    """

    def __init__(self, every: int, into: str | Path | None = None) -> None:
        """`every` is in iterations."""
        require_count("every", every)
        self.every, self.into = every, into

    def on_step(self, run: Run, info: StepInfo) -> None:
        if is_due(run, info, self.every):
            folder, name = run.folder or Path(), checkpoint_name(info.iteration)
            inside = require_inside(folder, folder / "models" / name)
            target = Path(self.into) / name if self.into else inside
            write_model(target, run.config, run.envs.task, info.state, info.iteration)


class OnStep(Callback):
    """Calls f(run, info) every `every` iterations, not during warm-up.

    The run stops if f returns True.
    """

    def __init__(self, function: StepFunction, every: int = 1) -> None:
        require_count("every", every)
        self.function, self.every = function, every

    def on_step(self, run: Run, info: StepInfo) -> bool:
        return is_due(run, info, self.every) and self.function(run, info) is True


def as_callbacks(callback: Any) -> list[Callback]:
    """Turn a callback, a function, or a list of either into a list of callbacks."""
    if callback is None:
        return []
    if isinstance(callback, list | tuple):
        return [one for each in callback for one in as_callbacks(each)]
    if isinstance(callback, Callback):
        return [callback]
    if isinstance(callback, type) or not callable(callback):
        raise UserError(
            f"callback is {callback!r}; expected an object of a class derived from "
            "langevinrl.Callback, or a function f(run, info)"
        )
    signature = inspect.signature(callback)
    try:
        signature.bind(None, None)
    except TypeError:
        raise UserError(
            f"the callback takes {signature}; expected (run, info), where returning True stops the "
            "run"
        ) from None
    return [OnStep(callback)]
