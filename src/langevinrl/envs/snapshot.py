"""The exact state of an environment as arrays and JSON: a resumed run equals an unbroken one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from langevinrl.envs.flat import FlatWrapper

# Wrappers with no memory from step to step, but for the time limit's, which is kept.
FORGETFUL = (
    FlatWrapper,
    gym.wrappers.OrderEnforcing,
    gym.wrappers.PassiveEnvChecker,
    gym.wrappers.TimeLimit,
    gym.wrappers.TransformAction,
    gym.wrappers.TransformObservation,
    gym.wrappers.TransformReward,
)


class EnvState(NamedTuple):
    """Where one environment stands: what it holds in arrays, and what JSON can hold."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]  # the generator, the time-limit counters


class SnapshotWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Gives any environment an `env_state` to read and set; None if its state cannot be had.

    Gymnasium's MuJoCo and classic control work as they are.  An environment or wrapper of your own
    joins in by offering `state_dict() -> dict[str, array]` and `load_state_dict(dict)`; it then
    answers for all that it wraps, but for the generator and time limits.
    """

    @property
    def env_state(self) -> EnvState | None:
        arrays = _read(_keeper(self.env))
        if arrays is None:
            return None
        generator = _plain(self.unwrapped.np_random.bit_generator.state)
        elapsed = [limit._elapsed_steps for limit in _time_limits(self)]
        return EnvState(arrays, {"generator": generator, "elapsed": elapsed})

    @env_state.setter
    def env_state(self, saved: EnvState) -> None:
        _write(_keeper(self.env), saved.arrays)
        self.unwrapped.np_random.bit_generator.state = saved.metadata["generator"]
        for limit, elapsed in zip(_time_limits(self), saved.metadata["elapsed"], strict=True):
            limit._elapsed_steps = elapsed


def _keeper(env: Any) -> Any:
    """The layer that knows the state; None if a wrapper on the way may remember something."""
    while isinstance(env, gym.Wrapper) and not _offers(env):
        env = env.env if isinstance(env, FORGETFUL) else None
    return env


def _read(env: Any) -> dict[str, np.ndarray] | None:
    if _offers(env):
        return {name: np.array(value) for name, value in env.state_dict().items()}
    if _is_mujoco(env):
        # Every array, not only qpos and qvel: rewards and observations read positions and forces
        # that lag the last substep, so recomputing them would not give the same bytes.
        return {"time": np.float64(env.data.time).reshape(1)} | {
            n: a.copy() for n, a in _mujoco_arrays(env)
        }
    if _is_classic(env):
        return {"state": np.array(env.state)}
    return None


def _write(env: Any, arrays: dict[str, np.ndarray]) -> None:
    if _offers(env):
        env.load_state_dict(arrays)
    elif _is_mujoco(env):
        for name, target in _mujoco_arrays(env):
            # MuJoCo 3 has more scratch whose size is that of the moment, under many names.
            if name in arrays and target.shape == arrays[name].shape:
                target[...] = arrays[name]
        env.data.time = float(arrays["time"][0])
    else:
        env.state = arrays["state"]


def _offers(env: Any) -> bool:
    return hasattr(env, "state_dict") and hasattr(env, "load_state_dict")


def _is_mujoco(env: Any) -> bool:
    # Not any that simulates with MuJoCo: others may keep a goal or a task apart from its data.
    return type(env).__module__.startswith("gymnasium.envs.mujoco")


def _is_classic(env: Any) -> bool:
    return type(env).__module__.startswith("gymnasium.envs.classic_control")


def _mujoco_arrays(env: Any) -> Iterator[tuple[str, np.ndarray]]:
    for name in dir(env.data):
        value = None if name.startswith("_") else getattr(env.data, name, None)
        # Constraint scratch (efc_) has the size of the moment and is rebuilt by the next step.
        if isinstance(value, np.ndarray) and value.size and not name.startswith("efc_"):
            yield name, value


def _time_limits(env: Any) -> Iterator[Any]:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            yield env
        env = env.env


def _plain(value: Any) -> Any:
    """A generator's state without NumPy scalars or arrays, as JSON wants it."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value
