"""What a sweep hangs on each of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langevinrl.runs.callbacks import Callback
from langevinrl.runs.evaluate import Evaluation
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.sweeps.claims import LostClaimError

if TYPE_CHECKING:
    from langevinrl.sweeps.job import Heartbeat


class Watch(Callback):
    """Tells how far a run is; ends it at once if its claim is lost, saved if its sweep is gone."""

    def __init__(self, beat: Heartbeat) -> None:
        self.beat = beat

    def on_start(self, run: Run) -> None:
        self.beat.start_clock(run.iteration)

    def on_step(self, run: Run, info: StepInfo) -> bool:
        if self.beat.lost:
            raise LostClaimError  # without saving: another process writes to the folder
        self.beat.tell(info.iteration)
        return self.beat.alone

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        self.beat.tell(evaluation.iteration, evaluation.mean)
