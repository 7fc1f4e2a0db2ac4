"""The exact state of an environment as arrays and JSON, for checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from langevinrl.envs.layout import Field, Layout, layout_of, simulation_arrays, write_arrays
from langevinrl.errors import UserError


class EnvState(NamedTuple):
    """The state of one environment."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]  # JSON: generators, time-limit counters, plain numbers


class SnapshotWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Adds an `env_state` to read and set; None if the state of an environment is unknown.

    `envs.layout` lists the environments and wrappers of Gymnasium, Gymnasium-Robotics and
    dm_control whose state is known.  Any other environment or wrapper can offer
    `state_dict() -> dict[str, array]` and `load_state_dict(dict)`.  These then cover all that it
    wraps, except the generator and time limits.
    """

    @property
    def env_state(self) -> EnvState | None:
        layout = layout_of(self.env)
        if layout is None:
            return None
        arrays, values = _read_fields(layout.fields)
        arrays |= _read_arrays(layout)
        metadata: dict[str, Any] = {
            "generator": _generator_state(self.unwrapped.np_random),
            "elapsed": [limit._elapsed_steps for limit in _time_limits(self)],
        }
        if values:
            metadata["values"] = values
        if layout.generators:
            metadata["generators"] = list(map(_generator_state, layout.generators))
        return EnvState(arrays, metadata)

    @env_state.setter
    def env_state(self, saved: EnvState) -> None:
        try:
            self._restore(saved)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise UserError(f"the environment cannot be restored: {error!r}") from error

    def _restore(self, saved: EnvState) -> None:
        layout = layout_of(self.env)
        if layout is None:
            raise UserError("the checkpoint has a state of an environment that cannot take it")
        arrays = dict(saved.arrays)
        _write_fields(layout.fields, arrays, saved.metadata.get("values", {}))
        _write_arrays(layout, arrays)
        _set_generator(self.unwrapped.np_random, saved.metadata["generator"])
        others = saved.metadata.get("generators", [])
        for generator, state in zip(layout.generators, others, strict=True):
            _set_generator(generator, state)
        for limit, elapsed in zip(_time_limits(self), saved.metadata["elapsed"], strict=True):
            limit._elapsed_steps = elapsed


def _read_arrays(layout: Layout) -> dict[str, np.ndarray]:
    """Return copies of the environment's own arrays."""
    if layout.keeper is not None:
        return {name: np.array(value) for name, value in layout.keeper.state_dict().items()}
    if layout.data is None:
        return {}
    time = {"time": np.float64(layout.data.time).reshape(1)}
    return time | {name: array.copy() for name, array in simulation_arrays(layout).items()}


def _write_arrays(layout: Layout, arrays: dict[str, np.ndarray]) -> None:
    if layout.keeper is not None:
        layout.keeper.load_state_dict(arrays)
    elif layout.data is None:
        write_arrays({}, arrays)
    else:
        if "time" in arrays:
            layout.data.time = float(arrays.pop("time")[0])
        write_arrays(simulation_arrays(layout), arrays)
        if layout.between_steps:
            import mujoco

            mujoco.mj_step1(layout.model, layout.data)
            write_arrays(simulation_arrays(layout), arrays)


def _read_fields(fields: list[Field]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return NumPy values as arrays and Python numbers as they are, so that both round alike."""
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
    """Set the attributes, and remove their arrays from `arrays`."""
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
        return _as_json(generator.get_state(legacy=False))
    return _as_json(generator.bit_generator.state)


def _set_generator(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.RandomState):
        key = np.array(state["state"]["key"], np.uint32)
        generator.set_state(state | {"state": state["state"] | {"key": key}})
    else:
        generator.bit_generator.state = state


def _as_json(value: Any) -> Any:
    """Convert NumPy scalars and arrays in a generator's state to Python numbers and lists."""
    if isinstance(value, dict):
        return {name: _as_json(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value
