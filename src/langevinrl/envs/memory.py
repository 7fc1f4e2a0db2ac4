"""Where environments and wrappers that are not ours keep what changes from step to step.

Each family was looked at: what a step or a reset changes in it is named here, and a test puts it
back and goes on byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from langevinrl.envs.flat import FlatWrapper
from langevinrl.errors import UserError

# Gymnasium's wrappers by what they remember; a subclass of one may remember more, but for those
# that pass on what a function makes of each step.
FUNCTIONS = (
    gym.wrappers.TransformAction,
    gym.wrappers.TransformObservation,
    gym.wrappers.TransformReward,
)
WRAPPERS: dict[type[Any], tuple[str, ...]] = {
    FlatWrapper: (),
    gym.wrappers.OrderEnforcing: (),
    gym.wrappers.PassiveEnvChecker: (),
    gym.wrappers.TimeLimit: (),  # its counter is kept apart
    gym.wrappers.NormalizeObservation: ("obs_rms.mean", "obs_rms.var", "obs_rms.count"),
    gym.wrappers.NormalizeReward: (
        "return_rms.mean", "return_rms.var", "return_rms.count", "discounted_reward",
    ),
    gym.wrappers.RecordEpisodeStatistics: ("episode_count", "episode_returns", "episode_lengths"),
    gym.wrappers.TimeAwareObservation: ("timesteps",),
}  # fmt: skip
# A model's own numbers, which some tasks draw at each reset: a target's place, say.
OF_MODEL = ("body_", "geom_", "site_", "wrap_")


class Field(NamedTuple):
    """An attribute that is part of the state: `name` of `owner`."""

    label: str
    owner: Any
    name: str


class Memory(NamedTuple):
    """Where one environment keeps its state."""

    fields: list[Field]
    data: Any = None  # MuJoCo's
    model: Any = None  # that it simulates
    redrawn: bool = False  # a reset changes the model, too
    generators: tuple[Any, ...] = ()  # beside the environment's own np_random
    halfway: bool = False  # between steps it has contacts that the next step goes on with


def wrapper_fields(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> list[Field] | None:
    """What a wrapper remembers; None if that is not known."""
    if isinstance(wrapper, FUNCTIONS):
        return []
    paths = WRAPPERS.get(type(wrapper))
    return None if paths is None else [_field(wrapper, path) for path in paths]


def _field(owner: Any, path: str) -> Field:
    *parts, name = path.split(".")
    for part in parts:
        owner = getattr(owner, part)
    return Field(path, owner, name)


def memory_of(env: Any) -> Memory | None:
    """Where a known kind of environment keeps its state; None if it is not known."""
    module = type(env).__module__
    if module.startswith("gymnasium.envs.mujoco"):
        # Not any that simulates with MuJoCo: others may keep a goal apart from its data.
        return Memory([], env.data, env.model)
    if module.startswith("gymnasium.envs.classic_control"):
        return Memory([Field("state", env, "state")])
    if module.startswith("gymnasium_robotics.envs"):
        return _robotics(env, module.split(".")[2])
    if module == "shimmy.dm_control_compatibility":
        return _dm_control(env._env)
    return None


def _robotics(env: Any, family: str) -> Memory | None:
    """Fetch, the Shadow hand, Adroit and the mazes."""
    if family in ("fetch", "shadow_dexterous_hand"):
        return Memory([Field("goal", env, "goal")], env.data, env.model, True)
    if family == "adroit_hand":
        changed = [Field("tar_length", env, "tar_length")] if hasattr(env, "tar_length") else []
        return Memory(changed, env.data, env.model, True)
    body = getattr(env, "ant_env", None) or getattr(env, "point_env", None)
    if family == "maze" and body is not None:
        changed = [Field(name, env, name) for name in ("goal", "reset_pos")]
        changed.append(Field("init_qpos", body, "init_qpos"))
        return Memory(changed, body.data, body.model, True, (body.np_random,))
    return None


def _dm_control(env: Any) -> Memory | None:
    """The control suite; not its composer, whose tasks keep more."""
    task = env.task
    if not type(task).__module__.startswith("dm_control.suite."):
        return None
    changed = [Field(f"env.{name}", env, name) for name in ("_step_count", "_reset_next_step")]
    plain = (bool, int, float, np.ndarray, np.generic)
    changed += [Field(f"task.{k}", task, k) for k, v in vars(task).items() if isinstance(v, plain)]
    return Memory(changed, env.physics.data.ptr, env.physics.model.ptr, True, halfway=True)


def mujoco_arrays(data: Any, model: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Every array of the simulation whose size does not depend on the moment.

    Not only positions and velocities: rewards and observations read what lags the last substep, so
    that computing it again would not give the same bytes.  Contacts and constraints come and go
    with the moment, have no size in data that are fresh, and are rebuilt from the rest by the next
    step, or by `mj_step1`.
    """
    fresh = type(data)(model)
    for name in dir(fresh):
        value = None if name.startswith("_") else getattr(fresh, name, None)
        # MuJoCo 2.3.7 has scratch of constraints in fresh data too: memory nobody has written to.
        if isinstance(value, np.ndarray) and value.size and not name.startswith("efc_"):
            yield name, getattr(data, name)


def model_arrays(model: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The numbers of a model that tasks change."""
    for name in dir(model):
        value = getattr(model, name, None) if name.startswith(OF_MODEL) else None
        if isinstance(value, np.ndarray) and value.size and value.dtype.kind == "f":
            yield f"model/{name}", value


def put_arrays(
    targets: dict[str, np.ndarray], arrays: dict[str, np.ndarray], passing: set[str]
) -> None:
    """Write saved arrays over those of a simulation; all of them, and no other.

    `passing` are known names that were once saved though the next step makes them anew.
    """
    odd = sorted(arrays.keys() - targets.keys() - passing)
    lost = sorted(targets.keys() - arrays.keys())
    if odd or lost:
        said = f"has {', '.join(odd[:3])}" if odd else f"lacks {', '.join(lost[:3])}"
        raise UserError(
            f"the environment's saved state {said}, unlike this simulator: it was saved with "
            "another version of it (versions.json says which)"
        )
    for name, target in targets.items():
        if target.shape != arrays[name].shape:
            raise UserError(
                f"the environment's saved {name} has shape {arrays[name].shape}; expected "
                f"{target.shape}: it was saved with another simulator or task"
            )
        target[...] = arrays[name]
