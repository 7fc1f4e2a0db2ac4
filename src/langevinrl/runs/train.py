"""Start a new run, or resume a stopped one."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from langevinrl.envs.factory import EnvFactory, as_factory
from langevinrl.envs.faults import OnError
from langevinrl.errors import UserError, collect_errors, field, require_none
from langevinrl.logs.trackers import require_trackers
from langevinrl.runs.callbacks import Callback
from langevinrl.runs.changes import require_unchanged
from langevinrl.runs.checks import field_mistakes
from langevinrl.runs.config import RunConfig
from langevinrl.runs.finish import PrepareFolder, finish
from langevinrl.runs.loop import Run
from langevinrl.runs.signals import listening
from langevinrl.storage import checkpoint
from langevinrl.storage.cache import use_cache
from langevinrl.storage.checkpoint import CheckpointData
from langevinrl.storage.folder import ENVS, REPLAY, STATE, RunFolder
from langevinrl.storage.locks import FolderLock
from langevinrl.storage.metadata import require_metadata
from langevinrl.storage.reserve import lock_run, require_available, reserve
from langevinrl.storage.run_log import require_same_logs
from langevinrl.storage.trust import require_outside


@listening()
def train(
    config: RunConfig,
    *,
    env: EnvFactory | None = None,
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
    overwrite: bool = False,
    lock: FolderLock | None = None,
) -> Path:
    """Train from scratch into a new folder and return it.

    train(RunConfig("Pendulum-v1", agent="nclql", iterations=5_000))

    `env` replaces the environment that the configuration names.  Without `out` the folder is
    runs/AGENT-ENV-SEED, or the next of -2, -3 ... that holds no run.  `overwrite` deletes a run
    that is there.  `lock` is one that the caller has on `out`.
    """
    numbered = config.out is None and not overwrite
    require_none(_mistakes(config, env, check_folder=not numbered and not overwrite))
    config = config.resolved()
    place = Path(str(config.out)).absolute()  # before an environment can change the directory
    run = _build(config, env)
    try:
        folder, held = reserve(str(place), numbered=numbered, overwrite=overwrite, lock=lock)
    except BaseException:
        run.envs.close()
        raise
    given = Path(str(config.out))
    folder.shown = str(given.with_name(folder.path.name) if numbered else given)
    run.config = dataclasses.replace(config, out=str(folder))
    prepare = PrepareFolder(folder, held, new=True, trusted=config.imported())
    with held if lock is None else nullcontext():
        return finish(run, prepare, None, callbacks, quiet)


def _build(
    config: RunConfig, env: str | EnvFactory | None, start: CheckpointData | None = None
) -> Run:
    """Build a run that uses the compilation cache, if its configuration allows it."""
    if config.compilation_cache:
        use_cache()
    factory = as_factory(env, config.env_kwargs) if isinstance(env, str) else env
    return Run(config, env=factory, start=start)


def _mistakes(config: RunConfig, env: EnvFactory | None, check_folder: bool) -> list[str]:
    """Collect every mistake that can be found before anything is built."""
    found = config.mistakes()
    if env is None and isinstance(config.env, str) and isinstance(config.env_kwargs, dict):
        strange = collect_errors(as_factory, config.env, config.env_kwargs)
        # One sentence for an unknown name: it is not among the paper's tasks either.
        found = [*strange, *(one for one in found if not (strange and repr(config.env) in one))]
    track = (config.track,) if isinstance(config.track, str) else config.track
    if isinstance(track, tuple | list):
        found += collect_errors(require_trackers, track)
    if check_folder and isinstance(config.out, str | Path):
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
    lock: FolderLock | None = None,
) -> Path:
    """Continue a stopped run from its last checkpoint, up to `iterations` if given.

    `eval_every` and `on_env_error` replace those of the run.  Other changes of `config.json` are
    refused without `accept_changes`.  A run that was killed before its first checkpoint starts
    again; one whose checkpoints were deleted is refused.  Custom agents and environments that the
    folder names are imported only if this user's own `train` wrote it; `trust` allows others, and
    `env` replaces the environment.  `lock` is one that the caller, such as a sweep, has on it.
    """
    folder = RunFolder(Path(path).absolute())  # before an environment can change the directory
    folder.shown = str(path)
    config = read_config(folder, trust, env)
    trusted = config.imported() if env in (None, config.env) else []
    held = lock_run(folder, lock)
    with held if lock is None else nullcontext():
        saved = _last_checkpoint(folder, config, accept_changes)
        changes = {"iterations": iterations, "eval_every": eval_every, "on_env_error": on_env_error}
        config = _resume_config(config, folder, saved, changes)
        logs = saved.metadata["logs"] if saved else None
        run = _build(config, env, saved)
        del saved  # the run drops it once restored, so that memory holds one replay, not two
        prepare = PrepareFolder(folder, held, new=False, trusted=trusted)
        return finish(run, prepare, logs, callbacks, quiet)


def _last_checkpoint(
    folder: RunFolder, config: RunConfig, accept_changes: bool
) -> CheckpointData | None:
    """Load the last checkpoint; None if the run was killed before its first."""
    if not folder.saved_checkpoints():
        _require_never_saved(folder, config)
        return None
    # All three groups by name: a saved model lacks some, which raises.
    saved = checkpoint.load(folder, [STATE, REPLAY, ENVS])
    if not accept_changes:
        require_unchanged(saved.config, config, str(folder.config))
    require_metadata(saved.metadata, config)
    if not accept_changes:
        require_same_logs(folder, saved.metadata["logs"])
    return saved


def _resume_config(
    config: RunConfig, folder: RunFolder, saved: CheckpointData | None, changes: dict[str, Any]
) -> RunConfig:
    """Return the configuration with the changes, and with the folder, which may have moved."""
    asked = {name: value for name, value in changes.items() if value is not None}
    config = dataclasses.replace(config, out=str(folder), **asked)
    require_none(field_mistakes(RunConfig, asked))
    done = saved.metadata["iteration"] if saved else 0
    if done > config.length:
        raise UserError(
            f"{folder} is at iteration {done}, past {field('iterations', config.length)}"
        )
    return config


def read_config(
    folder: RunFolder, trust: bool = False, env: str | EnvFactory | None = None
) -> RunConfig:
    """Read the configuration of a run or model whose names may be imported.

    If `env` replaces its environment, the environment's name need not be trusted.
    """
    folder.require_config()
    if isinstance(env, str):
        require_outside(folder.path, env)
    return RunConfig.read(folder.config, trust=trust, import_env=env is None)


def _require_never_saved(folder: RunFolder, config: RunConfig) -> None:
    """Refuse to start again over the logs of a run that has had a checkpoint."""
    logged = folder.last_evaluation()
    # The folder of checkpoints is made with the run, so if it is missing they were deleted.  A run
    # shorter than `checkpoint_every` may be killed in its only save, after its last evaluation.
    gone = not folder.checkpoints.exists() and logged >= (config.iterations or 0) > 0
    if gone or logged > config.checkpoint_every:
        raise UserError(
            f"{folder} was evaluated at iteration {logged}, but its checkpoints are gone, so it "
            "cannot be resumed. To run it again in another folder: "
            f"langevinrl train {shlex.quote(str(folder.config))} --out OTHER"
        )
