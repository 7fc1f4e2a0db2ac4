"""The exact state of an environment as arrays and JSON: a resumed run equals an unbroken one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np


class Snapshot(NamedTuple):
    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]  # what JSON can hold: the generator, the clock, the time-limit counter


class Snapshots(gym.Wrapper[Any, Any, Any, Any]):
    """Gives any environment a `snapshot` to read and set; None if its state cannot be had.

    MuJoCo and classic control work as they are.  An environment of your own joins in by offering
    `state_dict() -> dict[str, array]` and `load_state_dict(dict)`.
    """

    @property
    def snapshot(self) -> Snapshot | None:
        arrays = _read(self.unwrapped)
        if arrays is None:
            return None
        limit = _time_limit(self)
        facts: dict[str, Any] = {"generator": _plain(self.unwrapped.np_random.bit_generator.state)}
        if limit is not None:
            facts["elapsed"] = limit._elapsed_steps
        return Snapshot(arrays, facts)

    @snapshot.setter
    def snapshot(self, saved: Snapshot) -> None:
        _write(self.unwrapped, saved.arrays)
        self.unwrapped.np_random.bit_generator.state = saved.facts["generator"]
        limit = _time_limit(self)
        if limit is not None:
            limit._elapsed_steps = saved.facts["elapsed"]


def _read(env: Any) -> dict[str, np.ndarray] | None:
    if hasattr(env, "state_dict"):
        return {name: np.array(value) for name, value in env.state_dict().items()}
    if _is_mujoco(env):
        # Every array, not only qpos and qvel: rewards and observations read positions and forces
        # that lag the last substep, so recomputing them would not give the same bytes.
        return {"time": np.float64(env.data.time).reshape(1)} | {
            n: a.copy() for n, a in _mujoco_arrays(env)
        }
    if _is_classic(env):
        return {"state": np.asarray(env.state, np.float64)}
    return None


def _write(env: Any, arrays: dict[str, np.ndarray]) -> None:
    if hasattr(env, "load_state_dict"):
        env.load_state_dict(arrays)
    elif _is_mujoco(env):
        for name, target in _mujoco_arrays(env):
            # Constraint scratch has the size of the moment and is rebuilt by the next step.
            if name in arrays and target.shape == arrays[name].shape:
                target[...] = arrays[name]
        env.data.time = float(arrays["time"][0])
    else:
        env.state = arrays["state"]


def _is_mujoco(env: Any) -> bool:
    return hasattr(env, "data") and type(env.data).__name__ == "MjData"


def _is_classic(env: Any) -> bool:
    return type(env).__module__.startswith("gymnasium.envs.classic_control")


def _mujoco_arrays(env: Any) -> Iterator[tuple[str, np.ndarray]]:
    for name in dir(env.data):
        value = None if name.startswith("_") else getattr(env.data, name, None)
        if isinstance(value, np.ndarray) and value.size:
            yield name, value


def _time_limit(env: Any) -> Any | None:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            return env
        env = env.env
    return None


def _plain(value: Any) -> Any:
    """A generator's state without NumPy scalars or arrays, as JSON wants it."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value
