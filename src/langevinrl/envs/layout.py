"""The attributes in which known environments and wrappers keep their state.

Tests save and restore each family in the middle of an episode and compare bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from langevinrl.envs.flat import FlatWrapper

# Wrappers that apply a function to each step have no state, nor have their subclasses.
STATELESS = (
    gym.wrappers.TransformAction,
    gym.wrappers.TransformObservation,
    gym.wrappers.TransformReward,
)
# The state of other wrappers.  A subclass is unknown: it may keep more.
WRAPPERS: dict[type[Any], tuple[str, ...]] = {
    FlatWrapper: (),
    gym.wrappers.OrderEnforcing: (),
    gym.wrappers.PassiveEnvChecker: (),
    gym.wrappers.TimeLimit: (),  # its counter is saved separately
    gym.wrappers.NormalizeObservation: ("obs_rms.mean", "obs_rms.var", "obs_rms.count"),
    gym.wrappers.NormalizeReward: (
        "return_rms.mean", "return_rms.var", "return_rms.count", "discounted_reward",
    ),
    gym.wrappers.RecordEpisodeStatistics: ("episode_count", "episode_returns", "episode_lengths"),
    gym.wrappers.TimeAwareObservation: ("timesteps",),
}  # fmt: skip
# Prefixes of model arrays that some tasks change at reset, such as the position of a target.
MODEL_PREFIXES = ("body_", "geom_", "site_", "wrap_")


class Field(NamedTuple):
    """An attribute that is part of the state: `name` of `owner`."""

    label: str
    owner: Any
    name: str


class Layout(NamedTuple):
    """The places in which an environment and its wrappers keep their state."""

    fields: list[Field]
    keeper: Any = None  # an object with state_dict and load_state_dict
    arrays: Mapping[str, np.ndarray] = {}  # MuJoCo's own arrays, not copies
    generators: tuple[Any, ...] = ()  # besides the environment's own np_random
    rebuild: Callable[[], None] | None = None  # derives what `arrays` lack; may change them


def layout_of(env: Any) -> Layout | None:
    """Return the layout of an environment with its wrappers; None if any of them is unknown.

    An object with state_dict covers all that it wraps.
    """
    fields: list[Field] = []
    depth = 0
    while isinstance(env, gym.Wrapper) and not _has_state_dict(env):
        known = _wrapper_fields(env)
        if known is None:
            return None
        fields += [field._replace(label=f"wrapper {depth}/{field.label}") for field in known]
        env, depth = env.env, depth + 1
    layout = Layout([], env) if _has_state_dict(env) else _known_layout(env)
    return None if layout is None else layout._replace(fields=fields + layout.fields)


def _has_state_dict(env: Any) -> bool:
    return hasattr(env, "state_dict") and hasattr(env, "load_state_dict")


def _wrapper_fields(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> list[Field] | None:
    """Return the state of a wrapper; None if it is unknown."""
    if isinstance(wrapper, STATELESS):
        return []
    paths = WRAPPERS.get(type(wrapper))
    return None if paths is None else [_field(wrapper, path) for path in paths]


def _field(owner: Any, path: str) -> Field:
    *parts, name = path.split(".")
    for part in parts:
        owner = getattr(owner, part)
    return Field(path, owner, name)


def _known_layout(env: Any) -> Layout | None:
    """Return the layout of an environment without wrappers; None if it is unknown."""
    module = type(env).__module__
    if module.startswith("gymnasium.envs.mujoco"):
        # Only Gymnasium's: other MuJoCo environments may keep a goal outside of mjData.
        return _simulation(env.data, env.model, changes_model=False)
    if module.startswith("gymnasium.envs.classic_control"):
        return Layout([Field("state", env, "state")])
    if module.startswith("gymnasium_robotics.envs"):
        return _robotics(env, module.split(".")[2])
    if module == "shimmy.dm_control_compatibility":
        return _dm_control(env._env)
    return None


def _simulation(data: Any, model: Any, *own: Field, changes_model: bool = True) -> Layout:
    """Return the layout of a MuJoCo simulation and the environment's own fields."""
    arrays = dict(_data_arrays(data, model))
    if changes_model:
        arrays |= _model_arrays(model)
    return Layout([Field("time", data, "time"), *own], arrays=arrays)


def _robotics(env: Any, family: str) -> Layout | None:
    """Return the layout of Fetch, the Shadow hand, Adroit or a maze."""
    if family in ("fetch", "shadow_dexterous_hand"):
        return _simulation(env.data, env.model, Field("goal", env, "goal"))
    if family == "adroit_hand":
        own = [Field("tar_length", env, "tar_length")] if hasattr(env, "tar_length") else []
        return _simulation(env.data, env.model, *own)
    body = getattr(env, "ant_env", None) or getattr(env, "point_env", None)
    if family == "maze" and body is not None:
        own = [Field(name, env, name) for name in ("goal", "reset_pos")]
        own.append(Field("init_qpos", body, "init_qpos"))
        return _simulation(body.data, body.model, *own)._replace(generators=(body.np_random,))
    return None


def _dm_control(env: Any) -> Layout | None:
    """Return the layout of a control suite task; composer tasks keep more and are unknown."""
    task = env.task
    if not type(task).__module__.startswith("dm_control.suite."):
        return None
    own = [Field(f"env.{name}", env, name) for name in ("_step_count", "_reset_next_step")]
    plain = (bool, int, float, np.ndarray, np.generic)
    own += [Field(f"task.{k}", task, k) for k, v in vars(task).items() if isinstance(v, plain)]
    data, model = env.physics.data.ptr, env.physics.model.ptr

    def rebuild() -> None:
        """Compute the contacts that the next step uses: it begins with mj_step2."""
        import mujoco

        mujoco.mj_step1(model, data)

    return _simulation(data, model, *own)._replace(rebuild=rebuild)


def _data_arrays(data: Any, model: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield every array of mjData that has a fixed size.

    Positions and velocities are not enough: rewards and observations read values that lag the last
    substep, so that recomputing them would change bytes.  Contacts and constraints vary in size.
    They are empty in new data, and the next step or `mj_step1` rebuilds them.
    """
    new = type(data)(model)
    for name in dir(new):
        value = None if name.startswith("_") else getattr(new, name, None)
        # MuJoCo 2.3.7 has uninitialised constraint arrays in new data.
        if isinstance(value, np.ndarray) and value.size and not name.startswith("efc_"):
            yield name, getattr(data, name)


def _model_arrays(model: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of mjModel that tasks change."""
    for name in dir(model):
        value = getattr(model, name, None) if name.startswith(MODEL_PREFIXES) else None
        if isinstance(value, np.ndarray) and value.size and value.dtype.kind == "f":
            yield f"model/{name}", value
