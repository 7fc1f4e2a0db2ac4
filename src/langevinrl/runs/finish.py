"""Train to the end of a run and close it, whatever ends it."""

from __future__ import annotations

import errno
import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path

import jax

from langevinrl.envs.faults import EnvError
from langevinrl.errors import Interrupted, UserError, field
from langevinrl.runs.callbacks import Callback, Evaluate, Progress, Record, Save
from langevinrl.runs.finite import BadNumberError, write_report
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.signals import current_signals
from langevinrl.runs.track import Track
from langevinrl.storage.files import reason_of
from langevinrl.storage.folder import RunFolder
from langevinrl.storage.locks import FolderLock
from langevinrl.storage.run_log import LogDigests
from langevinrl.storage.trust import remember
from langevinrl.storage.versions import versions

# Errors of the disk itself: full, over quota, read-only, broken, gone.
DISK_ERRORS = (
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG, errno.ESTALE, errno.ENODEV,
)  # fmt: skip


class Stopped(Interrupted):
    """A signal stopped the run between iterations; everything is saved."""

    def __init__(self, iteration: int, folder: Path, number: int = signal.SIGINT) -> None:
        # A program that starts langevinrl, such as make, may know a better command.
        resume = os.environ.get("LANGEVINRL_RESUME")
        resume = resume or f"langevinrl resume {shlex.quote(str(folder))}"
        super().__init__(f"Stopped at iteration {iteration}.  Go on with: {resume}", number)
        self.folder = folder


class PrepareFolder(Callback):
    """Writes the configuration to the folder, and stops the run if its lock is lost.

    It does so in `on_start`, when everything that could be refused has been built.
    """

    def __init__(self, folder: RunFolder, lock: FolderLock, new: bool, trusted: list[str]) -> None:
        """`new`: the folder must hold no configuration; `trusted`: names this user vouches for."""
        self.folder, self.lock, self.new, self.trusted = folder, lock, new, trusted

    def on_start(self, run: Run) -> None:
        run.folder = self.folder.path
        # The configuration comes first, so that a run killed here can be resumed.
        run.config.write(self.folder.config, exclusive=self.new)
        remember(self.trusted)
        if self.folder.versions.exists():
            self.folder.record_resume(run.iteration, versions())
        else:
            self.folder.create(versions())

    def on_step(self, run: Run, info: StepInfo) -> None:
        self.lock.require()


def _explain(error: Exception, folder: RunFolder) -> UserError | None:
    """Turn an error of the disk or of memory into a UserError; None for any other error."""
    left = folder.describe_saved()
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        return UserError(
            "a file that the run had open was closed, as by an environment that closes file "
            f"descriptors. {left}."
        )
    if isinstance(error, OSError):
        inside = str(error.filename or "").startswith(str(folder.path))
        if inside or error.errno in DISK_ERRORS:
            return UserError(f"cannot write to {folder}: {reason_of(error)}. {left}.")
    elif isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        less = ", ".join(map(field, ("batch_size", "seeds", "hidden", "capacity")))
        return UserError(f"memory ran out. Reduce one of {less}. {left}.")
    return None


def finish(
    run: Run,
    prepare: PrepareFolder,
    logs: LogDigests | None,
    callbacks: Sequence[Callback],
    quiet: bool,
) -> Path:
    """Train to the end, or until a signal, and save a checkpoint in both cases."""
    folder, config = prepare.folder, run.config
    every, episodes = config.evaluation
    record, signals = Record(folder, logs), current_signals()
    run.callbacks = [
        prepare,
        record,
        Track(folder, record, config.track),
        Progress(folder, quiet),
        Evaluate(every, episodes=episodes, log=True),
        *callbacks,
        signals,
        Save(folder, record),
    ]
    try:
        with run:
            run.until(config.length)
    except (BadNumberError, EnvError) as error:
        # The error says what happened; the run adds how far it was and what is saved.
        report = write_report(folder, error) if isinstance(error, BadNumberError) else ""
        step = f"It was at vector step {run.vector_steps}."
        error.args = (f"{error}{report} {step} {folder.describe_saved()}.",)
        raise
    except (OSError, MemoryError, jax.errors.JaxRuntimeError) as error:
        raise _explain(error, folder) or error from None
    shown = Path(str(folder))
    place = shown if shown.absolute() == folder.path else folder.path  # the directory was changed
    if signals.received and run.iteration < config.length:
        raise Stopped(run.iteration, place, signals.received[0])
    return place
