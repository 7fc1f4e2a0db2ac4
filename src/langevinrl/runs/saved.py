"""A model on disk: configuration, spaces and weights.  A run folder is one, with more beside it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from langevinrl.agents import Agent
from langevinrl.envs.factory import EnvLike, EnvSource, as_factory
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.envs.vector import VectorEnv
from langevinrl.errors import UserError
from langevinrl.runs import compiled
from langevinrl.runs.changes import require_unchanged
from langevinrl.runs.config import RunConfig
from langevinrl.storage import checkpoint
from langevinrl.storage.checkpoint import CheckpointData
from langevinrl.storage.files import read_json, write_text
from langevinrl.storage.folder import STATE, RunFolder
from langevinrl.storage.trust import importing_names, require_trusted
from langevinrl.types import PyTree

NAME_IT = "Name the environment: Model.load(DIR, env=...)"


class SavedModel(NamedTuple):
    """What acting needs."""

    config: RunConfig
    agent: Agent
    state: PyTree  # (S, ...)
    spaces: TaskSpaces
    metadata: dict[str, Any]


def write_spaces(folder: RunFolder, spaces: TaskSpaces) -> None:
    """Beside the configuration, so that loading needs no environment."""
    write_text(folder.spaces, json.dumps(spaces.to_json(), indent=2) + "\n")


def write_model(
    path: str | Path, config: RunConfig, spaces: TaskSpaces, state: PyTree, iteration: int
) -> Path:
    """Weights and what they need, without replay: into a new folder, or over a saved model.

    `config.out` stays the run's own folder, where learning can go on.
    """
    folder = RunFolder(path)
    _require_model_place(folder)
    folder.path.mkdir(parents=True, exist_ok=True)
    metadata = {"iteration": iteration, "run": str(Path(config.out or "").absolute())}
    arrays = {STATE: checkpoint.name_leaves(state)}
    weights = CheckpointData(arrays, metadata, dataclasses.asdict(config))
    checkpoint.save(folder, iteration, weights)
    write_spaces(folder, spaces)
    config.write(folder.config)
    return folder.path


def _require_model_place(folder: RunFolder) -> None:
    if folder.path.suffix == ".zip":
        raise UserError(f"a model is saved as a folder: write save({str(folder.path)[:-4]!r})")
    if folder.path.exists() and not folder.path.is_dir():
        raise UserError(f"{folder} is a file; a model is saved as a folder")
    if folder.kind() in ("run", "sweep") or folder.evaluations.exists():
        raise UserError(
            f"{folder} already holds a run or a sweep, which saving would destroy; a run folder is "
            "its own saved model: Model.load reads it"
        )


def read_model(path: str | Path, env: EnvSource | None = None, trust: bool = False) -> SavedModel:
    """The newest weights of a run folder or a saved model; needs no environment if none is given.

    A given one must fit the weights, and its units are then the ones that count.  `trust` allows
    an agent of someone's own that the folder names, which acting imports.
    """
    folder = RunFolder(path)
    folder.require_config()
    config = RunConfig.parse(folder.config)
    require_trusted(folder.path, importing_names(config.agent, "", {}), trust)
    recorded = _read_spaces(folder)
    if env is not None:
        spaces = measure_spaces(env.factory or env.name, config)
        if recorded is not None:
            _require_same_sizes(spaces, recorded, folder)
    else:
        spaces = recorded or _rebuild_spaces(folder, config, trust)
    agent = config.make_agent(spaces.spec)
    saved = checkpoint.load(folder, groups=[STATE])
    require_unchanged(saved.config, config, str(folder.config))
    _require_iteration(saved.metadata, folder)
    template = jax.eval_shape(jax.vmap(agent.init), compiled.seed_keys(config.seed_list))
    state = checkpoint.fill_leaves(template, saved.arrays[STATE])
    return SavedModel(config, agent, state, spaces, saved.metadata)


def _require_iteration(metadata: dict[str, Any], folder: RunFolder) -> None:
    done = metadata.get("iteration")
    if not isinstance(done, int) or isinstance(done, bool) or done < 0:
        raise UserError(f"the checkpoint in {folder} says that {done!r} iterations were done")


def _read_spaces(folder: RunFolder) -> TaskSpaces | None:
    """What was written beside the configuration; None in folders of before that was done."""
    if not folder.spaces.exists():
        return None
    table = read_json(folder.spaces, "the task's spaces")
    try:
        return TaskSpaces.from_json(table)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{folder.spaces} is damaged: {error!r}") from error


def _rebuild_spaces(folder: RunFolder, config: RunConfig, trust: bool) -> TaskSpaces:
    require_trusted(folder.path, config.imported(), trust)
    try:
        return measure_spaces(as_factory(config.env, config.env_kwargs), config)
    except UserError as error:
        raise UserError(f"{error} {NAME_IT}") from error


def measure_spaces(env: EnvLike, config: RunConfig) -> TaskSpaces:
    """An environment's spaces, by building it once."""
    envs = VectorEnv(env, [0], 1, config.action_bound)
    envs.close()
    return envs.task


def _require_same_sizes(given: TaskSpaces, recorded: TaskSpaces, folder: RunFolder) -> None:
    ours, theirs = dataclasses.asdict(given.spec), dataclasses.asdict(recorded.spec)
    if ours != theirs:
        raise UserError(f"env has the sizes {ours}; the model in {folder} was trained on {theirs}")


def run_to_go_on(folder: RunFolder, state: PyTree, metadata: dict[str, Any]) -> RunFolder:
    """The run folder where a model's learning can go on exactly: its own, or the one it came from.

    A saved model has no replay; its run is found by the path it recorded and told by its weights.
    """
    if folder.kind() == "run":
        return folder
    said = f"{folder} holds weights without replay, so learning cannot go on from it exactly"
    if "run" not in metadata:
        raise UserError(f"{said}: its replay was dropped when its run was done")
    run = RunFolder(metadata["run"])
    if run.kind() != "run" or not run.saved_checkpoints():
        raise UserError(f"{said}, and the run it was saved from is not in {run} any more")
    if run.saved_iteration() != metadata["iteration"]:
        raise UserError(
            f"{said}: it is of iteration {metadata['iteration']}, and its run in {run} is at "
            f"{run.saved_iteration()}. Model.load({str(run.path)!r}) goes on from there"
        )
    theirs = checkpoint.load(run, [STATE]).arrays[STATE]
    ours = checkpoint.name_leaves(state)
    same = theirs.keys() == ours.keys() and all(np.array_equal(ours[k], theirs[k]) for k in ours)
    if not same:
        raise UserError(f"{said}, and {run} holds another run by now")
    return run
