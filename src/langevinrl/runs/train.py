"""A new run, and a stopped one taken up again: what the command line and Model call."""

from __future__ import annotations

import dataclasses
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path

from langevinrl.envs.vector import EnvFactory
from langevinrl.errors import Interrupted, UserError, field
from langevinrl.runs import checkpoint
from langevinrl.runs.cache import use_cache
from langevinrl.runs.callbacks import (
    Callback,
    PlayEpisodes,
    Progress,
    Record,
    Save,
)
from langevinrl.runs.changes import require_unchanged
from langevinrl.runs.checkpoint import Checkpoint
from langevinrl.runs.config import RunConfig
from langevinrl.runs.finite import BadNumberError, write_report
from langevinrl.runs.folder import ENVS, REPLAY, STATE, RunFolder
from langevinrl.runs.loop import Run
from langevinrl.runs.metadata import require_metadata
from langevinrl.runs.places import Hold, require_available, take
from langevinrl.runs.saved import write_spaces
from langevinrl.runs.signals import heard, listening
from langevinrl.runs.track import Track
from langevinrl.runs.trackers import require_trackers
from langevinrl.runs.versions import versions


class Stopped(Interrupted):
    """A signal ended the run between iterations; everything is saved."""

    def __init__(self, iteration: int, folder: Path, number: int = signal.SIGINT) -> None:
        super().__init__(
            f"Stopped at iteration {iteration}.  "
            f"Go on with: langevinrl resume {shlex.quote(str(folder))}",
            number,
        )
        self.folder = folder


class _WriteConfig(Callback):
    """Lays out the folder, once everything that could be refused has been built."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def on_start(self, run: Run) -> None:
        # The configuration first: a run killed here is then resumed, not taken for a stranger's.
        run.config.write(self.folder.config)
        write_spaces(self.folder, run.envs.task)
        if self.folder.versions.exists():
            self.folder.record_resume(run.iteration, versions())
        else:
            self.folder.create(versions())


@listening()
def train(
    config: RunConfig,
    *,
    env: EnvFactory | None = None,
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
    overwrite: bool = False,
) -> Path:
    """Train from scratch into a new folder; returns it.  `env` replaces the named environment.

    train(RunConfig("Pendulum-v1", agent="nclql", iterations=5_000))

    Without `out` the folder is runs/AGENT-ENV-SEED, or the next of -2, -3 ... that holds no run.
    `overwrite` gives up the run that lies there.
    """
    numbered = config.out is None and not overwrite
    config = config.resolved()
    place = str(config.out)
    if not numbered and not overwrite:
        require_available(RunFolder(place))
    require_trackers(config.track)
    if config.compilation_cache:
        use_cache()
    run = Run(config, env=env)
    try:
        folder, hold = take(place, numbered=numbered, overwrite=overwrite)
    except BaseException:
        run.envs.close()
        raise
    run.config = dataclasses.replace(config, out=str(folder))
    return _finish(run, folder, hold, None, callbacks, quiet)


@listening()
def resume(
    path: str | Path,
    iterations: int | None = None,
    *,
    env: EnvFactory | None = None,
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
    eval_every: int | None = None,
    accept_changes: bool = False,
) -> Path:
    """Continue a stopped run from its last checkpoint, to `iterations` if given.

    `eval_every` changes how often it is evaluated from here on; other fields are those the run was
    begun with, and a `config.json` that says otherwise is refused without `accept_changes`.  A run
    that was killed before its first checkpoint starts anew; one whose checkpoints were taken away
    is left as it is.
    """
    folder = RunFolder(path)
    config = read_config(folder)
    saved = _last_checkpoint(folder, config, accept_changes)
    if iterations is not None:
        config = dataclasses.replace(config, iterations=iterations)
    if eval_every is not None:
        config = dataclasses.replace(config, eval_every=eval_every)
    done = saved.metadata["iteration"] if saved else 0
    if done > (config.iterations or 0):
        asked = field("iterations", iterations)
        raise UserError(f"{folder} is at iteration {done}, past {asked}")
    config = dataclasses.replace(config, out=str(folder))  # which may have been moved
    positions = saved.metadata["logs"] if saved else None
    if config.compilation_cache:
        use_cache()
    run = Run(config, env=env, start=saved)
    del saved  # the run lets go of it once it is put back: nobody else keeps a second replay
    # Not held where another process hangs in it: a sweep that has given that one up goes on here.
    return _finish(run, folder, Hold(folder), positions, callbacks, quiet)


def _last_checkpoint(
    folder: RunFolder, config: RunConfig, accept_changes: bool
) -> Checkpoint | None:
    """Where to go on; None for a run that was killed before its first."""
    if not folder.saved_checkpoints():
        _require_never_saved(folder, config)
        return None
    # By name, so that a saved model is told from a run.
    saved = checkpoint.load(folder, [STATE, REPLAY, ENVS])
    if not accept_changes:
        require_unchanged(saved.config, config, str(folder.config))
    require_metadata(saved.metadata, config)
    return saved


def read_config(folder: RunFolder) -> RunConfig:
    """The configuration of the run or model in a folder."""
    folder.require_config()
    return RunConfig.read(folder.config)


def _require_never_saved(folder: RunFolder, config: RunConfig) -> None:
    """Refuses to begin again over the logs of a run that has had a checkpoint."""
    logged = folder.last_evaluation()
    # The place for checkpoints is made with the folder: without it they were taken away.  A run
    # shorter than `checkpoint_every` may be killed in its one save, after its last evaluation.
    gone = not folder.checkpoints.exists() and logged >= (config.iterations or 0) > 0
    if gone or logged > config.checkpoint_every:
        raise UserError(
            f"{folder} was evaluated at iteration {logged}, but its checkpoints are gone, so it "
            "cannot go on. To make the run again beside it: "
            f"langevinrl train {shlex.quote(str(folder.config))} --out OTHER"
        )


def _finish(
    run: Run,
    folder: RunFolder,
    hold: Hold,
    log_positions: dict[str, int] | None,
    callbacks: Sequence[Callback],
    quiet: bool,
) -> Path:
    """Loop to the end, or to a stop, and leave a checkpoint either way."""
    record, signals = Record(folder, log_positions), heard()
    run.callbacks = [
        _WriteConfig(folder),
        record,
        Track(folder, record, run.config.track),
        Progress(folder, quiet),
        PlayEpisodes(),
        *callbacks,
        signals,
        Save(folder, record),
    ]
    length = run.config.iterations or 0
    try:
        with run:
            run.until(length)
    except BadNumberError as error:
        told = f"{error}{write_report(folder, error)}"
        raise BadNumberError(f"{told} {folder.describe_saved()}.", error.report) from None
    finally:
        hold.release()
    if signals.received and run.iteration < length:
        raise Stopped(run.iteration, folder.path, signals.received[0])
    return folder.path
