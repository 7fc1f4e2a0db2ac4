"""Models read from and written to folders: configuration, agent, weights and spaces."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax

from langevinrl.agents import Agent
from langevinrl.envs.factory import EnvLike, EnvSource
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.envs.vector import VectorEnv
from langevinrl.errors import UserError
from langevinrl.runs import compiled
from langevinrl.runs.changes import require_unchanged
from langevinrl.runs.config import RunConfig
from langevinrl.storage import checkpoint
from langevinrl.storage.folder import STATE, RunFolder
from langevinrl.storage.saved import read_weights, write_weights
from langevinrl.types import PyTree


class SavedModel(NamedTuple):
    """Everything that acting needs."""

    config: RunConfig
    agent: Agent
    state: PyTree  # (S, ...)
    spaces: TaskSpaces
    metadata: dict[str, Any]


def write_model(
    path: str | Path, config: RunConfig, spaces: TaskSpaces, state: PyTree, iteration: int
) -> Path:
    """Write a model without its replay to a new folder, or over a saved model.

    `config.out` remains the run's own folder, where learning can go on.
    """
    folder = RunFolder(path)
    write_weights(
        folder,
        state,
        iteration,
        config=dataclasses.asdict(config),
        spaces=spaces.to_json(),
        run=config.out or "",
    )
    config.write(folder.config)
    return folder.path


def read_model(path: str | Path, env: EnvSource | None = None, trust: bool = False) -> SavedModel:
    """Read the newest weights of a run folder or a saved model.

    env: an environment whose spaces replace the saved ones; without it none is built
    trust: allow the import of an agent that the folder names as `module:Class`
    """
    folder = RunFolder(path)
    folder.require_config()
    config = RunConfig.read(folder.config, trust=trust, import_env=False)
    saved = read_weights(folder)
    require_unchanged(saved.config, config, str(folder.config))
    spaces = _parse_spaces(saved.metadata.get("spaces"), folder)
    if env is not None:
        given = _measure_spaces(env.factory or env.name, config)
        _require_same_sizes(given, spaces, folder)
        spaces = given
    agent = config.make_agent(spaces.spec)
    template = jax.eval_shape(jax.vmap(agent.init), compiled.seed_keys(config.seed_list))
    state = checkpoint.fill_leaves(template, saved.arrays[STATE])
    return SavedModel(config, agent, state, spaces, saved.metadata)


def _parse_spaces(table: Any, folder: RunFolder) -> TaskSpaces:
    try:
        return TaskSpaces.from_json(table)
    except Exception as error:  # Gymnasium asserts, NumPy overflows, and others
        raise UserError(f"the checkpoint in {folder} has no valid spaces: {error!r}") from error


def _measure_spaces(env: EnvLike, config: RunConfig) -> TaskSpaces:
    """Return the spaces of an environment, by building it once."""
    envs = VectorEnv(env, [0], 1, config.action_bound)
    envs.close()
    return envs.task


def _require_same_sizes(given: TaskSpaces, saved: TaskSpaces, folder: RunFolder) -> None:
    ours, theirs = dataclasses.asdict(given.spec), dataclasses.asdict(saved.spec)
    if ours != theirs:
        raise UserError(f"env has the sizes {ours}; the model in {folder} was trained on {theirs}")
