"""The exact state of an environment as arrays and JSON: a resumed run equals an unbroken one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from langevinrl.envs.memory import (
    Field,
    Memory,
    memory_of,
    model_arrays,
    mujoco_arrays,
    put_arrays,
    wrapper_fields,
)
from langevinrl.errors import UserError


class EnvState(NamedTuple):
    """Where one environment stands: what it holds in arrays, and what JSON can hold."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]  # the generators, the time-limit counters, plain numbers


class SnapshotWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Gives any environment an `env_state` to read and set; None if its state cannot be had.

    `envs.memory` knows where Gymnasium's environments and wrappers, Gymnasium-Robotics and the
    control suite of dm_control keep theirs.  An environment or wrapper of your own joins in by
    offering `state_dict() -> dict[str, array]` and `load_state_dict(dict)`; it then answers for
    all that it wraps, but for the generator and time limits.
    """

    @property
    def env_state(self) -> EnvState | None:
        layers = _layers(self.env)
        if layers is None:
            return None
        arrays, values = _read_fields(layers.fields)
        arrays |= _read(layers)
        metadata: dict[str, Any] = {
            "generator": _generator_state(self.unwrapped.np_random),
            "elapsed": [limit._elapsed_steps for limit in _time_limits(self)],
        }
        if values:
            metadata["values"] = values
        if layers.memory and layers.memory.generators:
            metadata["generators"] = list(map(_generator_state, layers.memory.generators))
        return EnvState(arrays, metadata)

    @env_state.setter
    def env_state(self, saved: EnvState) -> None:
        try:
            self._put_back(saved)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise UserError(f"the environment cannot be put back: {error!r}") from error

    def _put_back(self, saved: EnvState) -> None:
        layers = _layers(self.env)
        if layers is None:
            raise UserError("the checkpoint has a state of an environment that cannot take it")
        arrays = dict(saved.arrays)
        _write_fields(layers.fields, arrays, saved.metadata.get("values", {}))
        _write(layers, arrays)
        _set_generator(self.unwrapped.np_random, saved.metadata["generator"])
        others = layers.memory.generators if layers.memory else ()
        for generator, state in zip(others, saved.metadata.get("generators", []), strict=True):
            _set_generator(generator, state)
        for limit, elapsed in zip(_time_limits(self), saved.metadata["elapsed"], strict=True):
            limit._elapsed_steps = elapsed


class _Layers(NamedTuple):
    """All that remembers something, from the outermost wrapper to the environment itself."""

    fields: list[Field]
    keeper: Any  # what offers state_dict, or the environment itself
    memory: Memory | None  # where the environment keeps its state; None if `keeper` tells it


def _layers(env: Any) -> _Layers | None:
    """None if a layer may remember something that cannot be had."""
    fields: list[Field] = []
    depth = 0
    while isinstance(env, gym.Wrapper) and not _offers(env):
        known = wrapper_fields(env)
        if known is None:
            return None
        fields += [field._replace(label=f"wrapper {depth}/{field.label}") for field in known]
        env, depth = env.env, depth + 1
    if _offers(env):
        return _Layers(fields, env, None)
    memory = memory_of(env)
    return None if memory is None else _Layers(fields + memory.fields, env, memory)


def _offers(env: Any) -> bool:
    return hasattr(env, "state_dict") and hasattr(env, "load_state_dict")


def _read(layers: _Layers) -> dict[str, np.ndarray]:
    """What the environment itself holds in arrays."""
    if layers.memory is None:
        return {name: np.array(value) for name, value in layers.keeper.state_dict().items()}
    if layers.memory.data is None:
        return {}
    time = {"time": np.float64(layers.memory.data.time).reshape(1)}
    return time | {name: array.copy() for name, array in _simulation(layers.memory).items()}


def _write(layers: _Layers, arrays: dict[str, np.ndarray]) -> None:
    memory = layers.memory
    if memory is None:
        layers.keeper.load_state_dict(arrays)
    elif memory.data is None:
        put_arrays({}, arrays, passing=set())
    else:
        if "time" in arrays:
            memory.data.time = float(arrays.pop("time")[0])
        put_arrays(_simulation(memory), arrays, passing=set(dir(memory.data)))
        if memory.halfway:
            import mujoco

            mujoco.mj_step1(memory.model, memory.data)
            put_arrays(_simulation(memory), arrays, passing=set(dir(memory.data)))


def _simulation(memory: Memory) -> dict[str, np.ndarray]:
    """The arrays that MuJoCo works on, not copies of them."""
    arrays = dict(mujoco_arrays(memory.data, memory.model))
    return arrays | dict(model_arrays(memory.model)) if memory.redrawn else arrays


def _read_fields(fields: list[Field]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """NumPy's as arrays, Python's numbers as they are: mixed up, they would round otherwise."""
    arrays, values = {}, {}
    for label, owner, name in fields:
        value = getattr(owner, name)
        if isinstance(value, bool | int | float | None) and not isinstance(value, np.generic):
            values[label] = value
        else:
            arrays[label] = np.array(value)
    return arrays, values


def _write_fields(
    fields: list[Field], arrays: dict[str, np.ndarray], values: dict[str, Any]
) -> None:
    """Put them back, and take their arrays out of `arrays`."""
    for label, owner, name in fields:
        if label in values:
            setattr(owner, name, values[label])
        elif label in arrays:
            array = arrays.pop(label)
            if np.shape(getattr(owner, name)) != array.shape:
                raise UserError(f"the environment's saved {label} has the shape {array.shape}")
            setattr(owner, name, array.copy() if array.ndim else array[()])
        else:
            raise UserError(
                f"the environment's saved state lacks {label}: it was saved from another one"
            )


def _time_limits(env: Any) -> Iterator[Any]:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            yield env
        env = env.env


def _generator_state(generator: Any) -> Any:
    if isinstance(generator, np.random.RandomState):  # dm_control's
        return _plain(generator.get_state(legacy=False))
    return _plain(generator.bit_generator.state)


def _set_generator(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.RandomState):
        key = np.array(state["state"]["key"], np.uint32)
        generator.set_state(state | {"state": state["state"] | {"key": key}})
    else:
        generator.bit_generator.state = state


def _plain(value: Any) -> Any:
    """A generator's state without NumPy scalars or arrays, as JSON wants it."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value
