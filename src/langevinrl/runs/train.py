"""A new run, and a stopped one taken up again: what the command line and Model call."""

from __future__ import annotations

import dataclasses
import errno
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from langevinrl.envs.factory import EnvFactory, as_factory
from langevinrl.envs.faults import EnvError, OnError
from langevinrl.errors import Interrupted, UserError, collect_errors, field, require_none
from langevinrl.logs.trackers import require_trackers
from langevinrl.runs.callbacks import (
    Callback,
    PlayEpisodes,
    Progress,
    Record,
    Save,
)
from langevinrl.runs.changes import require_unchanged
from langevinrl.runs.checks import field_mistakes
from langevinrl.runs.config import RunConfig
from langevinrl.runs.finite import BadNumberError, write_report
from langevinrl.runs.loop import Run, StepInfo
from langevinrl.runs.metadata import require_metadata
from langevinrl.runs.saved import write_spaces
from langevinrl.runs.signals import heard, listening
from langevinrl.runs.track import Track
from langevinrl.storage import checkpoint
from langevinrl.storage.cache import use_cache
from langevinrl.storage.checkpoint import Checkpoint
from langevinrl.storage.files import reason_of
from langevinrl.storage.folder import ENVS, REPLAY, STATE, RunFolder
from langevinrl.storage.locks import Hold
from langevinrl.storage.places import hold_again, require_available, take
from langevinrl.storage.trust import importing_names, remember, require_outside, require_trusted
from langevinrl.storage.versions import versions

# What a disk says, of whichever file: full, over its quota, read-only, broken, gone.
DISK_ERRORS = (
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG, errno.ESTALE, errno.ENODEV,
)  # fmt: skip


class Stopped(Interrupted):
    """A signal ended the run between iterations; everything is saved."""

    def __init__(self, iteration: int, folder: Path, number: int = signal.SIGINT) -> None:
        super().__init__(
            f"Stopped at iteration {iteration}.  "
            f"Go on with: langevinrl resume {shlex.quote(str(folder))}",
            number,
        )
        self.folder = folder


class _LayOut(Callback):
    """Lays out the folder, once everything that could be refused has been built, and keeps it."""

    def __init__(self, folder: RunFolder, hold: Hold, new: bool, trusted: list[str]) -> None:
        """`new`: there must be no configuration yet; `trusted`: names this user stands by."""
        self.folder, self.hold, self.new, self.trusted = folder, hold, new, trusted

    def on_start(self, run: Run) -> None:
        # The configuration first: a run killed here is then resumed, not taken for a stranger's.
        run.config.write(self.folder.config, exclusive=self.new)
        remember(self.trusted)
        write_spaces(self.folder, run.envs.task)
        if self.folder.versions.exists():
            self.folder.record_resume(run.iteration, versions())
        else:
            self.folder.create(versions())

    def on_step(self, run: Run, info: StepInfo) -> None:
        self.hold.beat()


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
    require_none(_mistakes(config, env, look=not numbered and not overwrite))
    config = config.resolved()
    place = str(config.out)
    if config.compilation_cache:
        use_cache()
    run = Run(config, env=env)
    try:
        folder, hold = take(place, numbered=numbered, overwrite=overwrite)
    except BaseException:
        run.envs.close()
        raise
    run.config = dataclasses.replace(config, out=str(folder))
    lay_out = _LayOut(folder, hold, new=True, trusted=config.imported())
    return _finish(run, lay_out, None, callbacks, quiet)


def _mistakes(config: RunConfig, env: EnvFactory | None, look: bool) -> list[str]:
    """All that speaks against a run before anything is built; `look`: its folder must be free."""
    found = config.mistakes()
    if env is None and isinstance(config.env, str) and isinstance(config.env_kwargs, dict):
        strange = collect_errors(as_factory, config.env, config.env_kwargs)
        # One sentence for a name that is not there: the paper has no length for it either.
        found = [*strange, *(one for one in found if not (strange and repr(config.env) in one))]
    track = (config.track,) if isinstance(config.track, str) else config.track
    if isinstance(track, tuple | list):
        found += collect_errors(require_trackers, track)
    if look and isinstance(config.out, str | Path):
        found += collect_errors(require_available, RunFolder(config.out))
    return found


@listening()
def resume(
    path: str | Path,
    iterations: int | None = None,
    *,
    env: str | EnvFactory | None = None,
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
    eval_every: int | None = None,
    on_env_error: OnError | None = None,
    accept_changes: bool = False,
    trust: bool = False,
    take_over: bool = False,
) -> Path:
    """Continue a stopped run from its last checkpoint, to `iterations` if given.

    `eval_every` and `on_env_error` hold from here on; other fields are those the run was begun
    with, and a `config.json` that says otherwise is refused without `accept_changes`.  A run that
    was killed before its first checkpoint starts anew; one that lost its checkpoints is left alone.
    What the folder names is imported if this user's own `train` made it; of another's folder
    `trust` allows that, or `env` is used instead.  A folder where another process trains is
    refused; `take_over` is for a sweep that has given it up.
    """
    folder = RunFolder(path)
    config = read_config(folder, trust, env)
    trusted = config.imported() if env in (None, config.env) else []
    hold = hold_again(folder, take_over=take_over)
    try:
        saved = _last_checkpoint(folder, config, accept_changes)
        changes = {"eval_every": eval_every, "on_env_error": on_env_error}
        config = _lengthened(config, folder, saved, iterations, changes)
        if config.compilation_cache:
            use_cache()
        factory = as_factory(env, config.env_kwargs) if isinstance(env, str) else env
        positions = saved.metadata["logs"] if saved else None
        run = Run(config, env=factory, start=saved)
    except BaseException:
        hold.release()
        raise
    del saved  # the run lets go of it once it is put back: nobody else keeps a second replay
    return _finish(run, _LayOut(folder, hold, False, trusted), positions, callbacks, quiet)


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


def _lengthened(
    config: RunConfig,
    folder: RunFolder,
    saved: Checkpoint | None,
    iterations: int | None,
    changes: dict[str, Any],
) -> RunConfig:
    """The configuration to go on with: longer if asked, and of the folder, which may have moved."""
    changes = {"iterations": iterations, "out": str(folder), **changes}
    asked = {name: value for name, value in changes.items() if value is not None}
    config = dataclasses.replace(config, **asked)
    require_none(field_mistakes(RunConfig, asked))
    done = saved.metadata["iteration"] if saved else 0
    if done > (config.iterations or 0):
        asked_for = field("iterations", iterations)
        raise UserError(f"{folder} is at iteration {done}, past {asked_for}")
    return config


def read_config(
    folder: RunFolder, trust: bool = False, env: str | EnvFactory | None = None
) -> RunConfig:
    """The configuration of the run or model in a folder, whose names are fit to be followed.

    Where `env` is used instead of the environment it names, that one need not be.
    """
    folder.require_config()
    config = RunConfig.parse(folder.config)
    if env is None:
        require_trusted(folder.path, config.imported(), trust)
        return config
    if isinstance(env, str):
        require_outside(folder.path, env)
    require_trusted(folder.path, importing_names(config.agent, "", {}), trust)
    return config


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


def _explain(error: Exception, folder: RunFolder) -> UserError | None:
    """What the system refused a run, in a sentence; None if that is not what went wrong."""
    left = folder.describe_saved()
    if isinstance(error, OSError):
        inside = str(error.filename or "").startswith(str(folder))
        if inside or error.errno in DISK_ERRORS:
            return UserError(f"cannot write to {folder}: {reason_of(error)}. {left}.")
    elif isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        less = ", ".join(map(field, ("batch_size", "seeds", "hidden", "capacity")))
        return UserError(f"memory ran out. Less of {less} needs less. {left}.")
    return None


def _finish(
    run: Run,
    lay_out: _LayOut,
    log_positions: dict[str, int] | None,
    callbacks: Sequence[Callback],
    quiet: bool,
) -> Path:
    """Loop to the end, or to a stop, and leave a checkpoint either way."""
    folder = lay_out.folder
    record, signals = Record(folder, log_positions), heard()
    run.callbacks = [
        lay_out,
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
    except (BadNumberError, EnvError) as error:
        # What happened is known where it did; how far the run was and what is left of it, here.
        report = write_report(folder, error) if isinstance(error, BadNumberError) else ""
        step = f"It was at vector step {run.vector_steps}."
        error.args = (f"{error}{report} {step} {folder.describe_saved()}.",)
        raise
    except (OSError, MemoryError, jax.errors.JaxRuntimeError) as error:
        raise _explain(error, folder) or error from None
    finally:
        lay_out.hold.release()
    if signals.received and run.iteration < length:
        raise Stopped(run.iteration, folder.path, signals.received[0])
    return folder.path
