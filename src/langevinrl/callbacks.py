"""Callbacks to hang on a run: Model.learn(callback=...), or train(config, callbacks=[...]).

A run calls its own callbacks and yours in a fixed order (`runs/callbacks.py`): logs, console,
evaluation, yours as given, signals, saving.  So yours see an evaluation as soon as it is played,
and what they wrote before a stop is saved.  One may read everything of `run` and `info`, ask for a
stop by returning True, and call `run.change_agent`.  It must not write to the weights, the replay
or the environments, and copies what it keeps of `info.state`: the next update reuses its memory.

    model.learn(iterations=20_000, callback=[StopOnReturn(9000), StopOnTime(hours=2)])
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from langevinrl.errors import UserError
from langevinrl.runs.callbacks import Callback, is_due
from langevinrl.runs.evaluate import Evaluation, Evaluator, Mode
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.saved import write_model
from langevinrl.runs.video import RecordVideo
from langevinrl.storage.folder import checkpoint_name

__all__ = [
    "Callback", "Checkpoint", "Evaluate", "OnStep", "RecordVideo", "StopOnReturn", "StopOnTime",
]  # fmt: skip

StepFunction: TypeAlias = Callable[[Run, StepInfo], bool | None]
CallbackLike: TypeAlias = Callback | StepFunction | Iterable[Callback | StepFunction] | None


class StopOnReturn(Callback):
    """Stops at the first evaluation whose mean return reaches `threshold`.

    Looks at the run's own evaluations, every `eval_every` iterations, over all seeds and episodes.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> bool:
        return evaluation.mean >= self.threshold


class StopOnTime(Callback):
    """Stops when this much time has passed since training was started or taken up again."""

    def __init__(self, *, hours: float = 0.0, minutes: float = 0.0, seconds: float = 0.0) -> None:
        self.seconds = 3600 * hours + 60 * minutes + seconds
        if not self.seconds > 0:
            raise UserError("StopOnTime needs a time: StopOnTime(hours=2), minutes= or seconds=")

    def on_start(self, run: Run) -> None:
        self.began = time.monotonic()

    def on_step(self, run: Run, info: StepInfo) -> bool:
        return time.monotonic() - self.began >= self.seconds


class Evaluate(Callback):
    """Plays episodes besides the run's own evaluations: more often, in another mode, or for a best.

    What was played is in `history`, and nowhere in the run's logs.  With `best`, a folder, the
    model of the highest mean so far is saved there, for Model.load.
    """

    def __init__(
        self,
        every: int,
        *,
        episodes: int = 20,
        mode: Mode = "keyed",
        best: str | Path | None = None,
    ) -> None:
        """`every` is in iterations; `mode` as in Model.predict."""
        _require_count("every", every)
        _require_count("episodes", episodes)
        self.every, self.episodes, self.mode, self.best = every, episodes, mode, best
        self.history: list[Evaluation] = []

    def on_start(self, run: Run) -> None:
        seeds = run.config.seed_list
        self.evaluator = Evaluator(run.agent, run.env, seeds, self.episodes, self.mode)

    def on_step(self, run: Run, info: StepInfo) -> None:
        if not is_due(run, info, self.every):
            return
        played = self.evaluator.play(info.state, info.iteration)
        evaluation = Evaluation(info.iteration, played, self.mode)
        leading = all(evaluation.mean > earlier.mean for earlier in self.history)
        self.history.append(evaluation)
        if self.best is not None and leading:
            write_model(self.best, run.config, run.envs.task, info.state, info.iteration)

    def on_end(self, run: Run) -> None:
        self.evaluator.close()


class Checkpoint(Callback):
    """Keeps the weights as they were every so often, each a saved model for Model.load.

    They go to `into`/000010000 and so on; into the folder `models` of the run unless told.  The
    run's own checkpoints, which resuming needs and which hold the replay too, are always the last
    few only (`keep_checkpoints`).
    """

    def __init__(self, every: int, into: str | Path | None = None) -> None:
        """`every` is in iterations."""
        _require_count("every", every)
        self.every, self.into = every, into

    def on_step(self, run: Run, info: StepInfo) -> None:
        if is_due(run, info, self.every):
            place = Path(self.into or Path(run.config.out or ".") / "models")
            target = place / checkpoint_name(info.iteration)
            write_model(target, run.config, run.envs.task, info.state, info.iteration)


class OnStep(Callback):
    """Calls a function of yours after every iteration, or every so many: f(run, info).

    If it returns True the run stops.  Warm-up is left out.
    """

    def __init__(self, function: StepFunction, every: int = 1) -> None:
        _require_count("every", every)
        self.function, self.every = function, every

    def on_step(self, run: Run, info: StepInfo) -> bool:
        return is_due(run, info, self.every) and self.function(run, info) is True


def as_callbacks(callback: Any) -> list[Callback]:
    """One callback, one function, or several of either, as a list of callbacks."""
    if callback is None:
        return []
    if isinstance(callback, list | tuple):
        return [one for each in callback for one in as_callbacks(each)]
    if isinstance(callback, Callback):
        return [callback]
    if hasattr(callback, "init_callback"):
        raise UserError(
            f"{type(callback).__name__} is a callback of Stable-Baselines3; here one is a "
            "langevinrl.Callback (see langevinrl.callbacks), or a function f(run, info)"
        )
    if isinstance(callback, type) and issubclass(callback, Callback):
        raise UserError(f"callback is the class {callback.__name__}; expected an object of it")
    if not callable(callback):
        raise UserError(f"callback is {callback!r}; expected a Callback or a function f(run, info)")
    _require_two_arguments(callback)
    return [OnStep(callback)]


def _require_two_arguments(function: Callable[..., Any]) -> None:
    """Refuses functions that cannot take (run, info), or mean Stable-Baselines3's two."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # one of C, which does not tell
        return
    names = [name.strip("_") for name in signature.parameters]
    try:
        signature.bind(None, None)
        fits = names[:2] != ["locals", "globals"]
    except TypeError:
        fits = False
    if not fits:
        raise UserError(
            f"the callback takes ({', '.join(signature.parameters)}); expected (run, info), where "
            "returning True stops the run"
        )


def _require_count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{name} is {value!r}; expected a whole number from 1")
