"""One job, by whoever has claimed it: python -m langevinrl.sweeps.job SWEEP ID."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langevinrl.errors import UserError
from langevinrl.storage.folder import DONE, PROGRAMS, PROGRESS
from langevinrl.storage.trust import (
    is_remembered,
    made_by_us,
    remember,
    require_trusted,
    search_here,
)
from langevinrl.sweeps import claims
from langevinrl.sweeps.claims import Claim, LostClaimError
from langevinrl.sweeps.queue import Job, SweepFolder, is_begun, write
from langevinrl.sweeps.slots import stay_on

Outcome: TypeAlias = Literal["done", "failed", "refused", "stopped", "busy"]
# What a job's process exits with: a refusal (a slip in the configuration) is not tried again.
EXITS: dict[Outcome, int] = {"done": 0, "failed": 1, "refused": 2, "busy": 75, "stopped": 130}
BEAT = 5.0  # seconds between signs of life


def run_job(
    sweep: str | Path,
    id_: str,
    keep_replay: bool = False,
    wait: bool = False,
    trust: bool = False,
) -> Outcome:
    """Do one job to its end, from its last checkpoint if it was begun; says how it ended.

    A job that is done, or that another process works on, is left alone; with `wait` it is taken up
    when that process is gone, as it may have died on another machine.  `trust` is the word of
    whoever started the sweep that its names may be imported.
    """
    folder = SweepFolder(sweep)
    job = folder.job(id_)
    try:
        require_trusted(folder.path, job.config.imported(), trust)
    except UserError as error:
        job.record_error(str(error))
        return "refused"
    remember(job.config.imported())  # so that its folder is resumed, if it names the same
    while not job.done:
        claim = claims.take(job.state)
        if claim is not None:
            return _hold(folder, job, claim, keep_replay)
        if not wait:
            return "busy"
        time.sleep(1.0)
    return "done"


def _hold(folder: SweepFolder, job: Job, claim: Claim, keep_replay: bool) -> Outcome:
    """Work on a claimed job, and give it back."""
    beat = Heartbeat(job, claim)
    try:
        return "done" if job.done else _work(folder, job, beat, keep_replay)
    except LostClaimError:
        return "busy"
    except UserError as error:
        slip = error.exit_code == UserError.exit_code
        job.record_error(str(error) if slip else traceback.format_exc())
        return "refused" if slip else "failed"
    except Exception:
        job.record_error(traceback.format_exc())
        return "failed"
    finally:
        beat.stop()
        claim.release()


def _work(folder: SweepFolder, job: Job, beat: Heartbeat, keep_replay: bool) -> Outcome:
    from langevinrl.runs.finish import Stopped
    from langevinrl.runs.train import resume, train
    from langevinrl.storage import checkpoint
    from langevinrl.storage.cache import use_cache
    from langevinrl.storage.folder import RunFolder
    from langevinrl.sweeps.watch import Watch

    if job.config.compilation_cache:  # seeds of one configuration are one program
        # A compiled program is code: those that lie in a sweep of someone else's are not run.
        use_cache(folder.path / PROGRAMS if is_remembered(made_by_us(folder.path)) else None)
    watch = Watch(beat)
    try:
        if is_begun(job):
            # Another process that hangs in it has lost its claim.
            resume(job.folder, callbacks=[watch], quiet=True, take_over=True)
        else:
            train(job.config, callbacks=[watch], quiet=True)
    except Stopped:
        return "stopped"
    reached = RunFolder(job.folder).saved_iteration()
    if reached < (job.config.iterations or 0):  # ended, saved, as its sweep was gone
        return "stopped"
    beat.tell(reached)
    write(job.state / DONE, json.dumps(beat.news | {"tries": len(job.errors) + 1}) + "\n")
    if not keep_replay:
        checkpoint.keep_weights_only(RunFolder(job.folder))
    return "done"


class Heartbeat:
    """A thread that keeps a claim fresh, writes how far the job is, and sees when to stop."""

    def __init__(self, job: Job, claim: Claim) -> None:
        self.job, self.claim = job, claim
        self.news: dict[str, Any] = {}  # what the next sign of life says
        self.lost = False  # another process holds the job now
        self.alone = False  # the process that started this one is gone
        self.parent = os.getppid()
        self.start_clock(0)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def start_clock(self, iteration: int) -> None:
        """Count time from here, so that the rate of a resumed run is its own."""
        self.began = time.monotonic()
        self.news |= {"first": iteration, "iteration": iteration}

    def tell(self, iteration: int, returns: float | None = None) -> None:
        """How far the run is."""
        seconds = round(time.monotonic() - self.began, 1)
        self.news |= {"iteration": iteration, "seconds": seconds}
        if returns is not None:
            self.news["return"] = round(returns, 2)

    def stop(self) -> None:
        self.ended.set()
        self.thread.join()

    def _run(self) -> None:
        while not self.ended.wait(BEAT):
            try:
                self.claim.beat()
                write(self.job.state / PROGRESS, json.dumps(self.news) + "\n")
            except LostClaimError:
                self.lost = True
                return
            except OSError:  # a file system that is away for a moment: the claim is still ours
                continue
            self.alone = os.getppid() != self.parent


def main(words: list[str] | None = None) -> None:
    """The process of one job; its exit code says how it ended."""
    parser = argparse.ArgumentParser(prog="python -m langevinrl.sweeps.job")
    parser.add_argument("sweep")
    parser.add_argument("id")
    parser.add_argument("--keep-replay", action="store_true")
    parser.add_argument("--cores", default="", help="processors to stay on, as 0,1")
    parser.add_argument("--trust", action="store_true", help="import what the sweep names")
    asked = parser.parse_args(words)
    stay_on(asked.cores)
    if asked.trust:
        search_here()
    sys.exit(EXITS[run_job(asked.sweep, asked.id, asked.keep_replay, trust=asked.trust)])


if __name__ == "__main__":
    main()
