"""The exact state of an environment as arrays and JSON, for checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from langevinrl.envs.layout import Layout, layout_of
from langevinrl.errors import UserError


class EnvState(NamedTuple):
    """The state of one environment."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]  # JSON: generators and time-limit counters


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
        metadata: dict[str, Any] = {
            "generator": _generator_state(self.unwrapped.np_random),
            "elapsed": [limit._elapsed_steps for limit in _time_limits(self)],
        }
        if layout.generators:
            metadata["generators"] = list(map(_generator_state, layout.generators))
        return EnvState(_read(layout), metadata)

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
        _write(layout, saved.arrays)
        _set_generator(self.unwrapped.np_random, saved.metadata["generator"])
        others = saved.metadata.get("generators", [])
        for generator, state in zip(layout.generators, others, strict=True):
            _set_generator(generator, state)
        for limit, elapsed in zip(_time_limits(self), saved.metadata["elapsed"], strict=True):
            limit._elapsed_steps = elapsed


def _read(layout: Layout) -> dict[str, np.ndarray]:
    """Return copies of all arrays and numbers of the state."""
    fields = {
        label: np.array(getattr(owner, name), ndmin=1) for label, owner, name in layout.fields
    }
    own = layout.keeper.state_dict() if layout.keeper is not None else layout.arrays
    return fields | {name: np.array(array) for name, array in own.items()}


def _write(layout: Layout, saved: dict[str, np.ndarray]) -> None:
    if layout.keeper is None:  # a state_dict may have other arrays at each save
        _require_alike(saved, _read(layout))
    rest = dict(saved)
    for label, owner, name in layout.fields:
        old = getattr(owner, name)
        new = np.array(rest.pop(label)).reshape(np.shape(old))
        # A Python number stays one: it rounds differently from a NumPy scalar.
        is_python = isinstance(old, bool | int | float) and not isinstance(old, np.generic)
        setattr(owner, name, new.item() if is_python else new[()])
    if layout.keeper is not None:
        layout.keeper.load_state_dict(rest)
    for name, array in layout.arrays.items():
        array[...] = rest[name]
    if layout.rebuild is not None:
        layout.rebuild()
        for name, array in layout.arrays.items():
            array[...] = rest[name]


def _require_alike(saved: dict[str, np.ndarray], present: dict[str, np.ndarray]) -> None:
    """Raise unless names and shapes agree."""
    odd, lost = sorted(saved.keys() - present.keys()), sorted(present.keys() - saved.keys())
    if odd or lost:
        difference = f"has {', '.join(odd[:3])}" if odd else f"lacks {', '.join(lost[:3])}"
        raise UserError(
            f"the environment's saved state {difference}, unlike this simulator: it was saved with "
            "another version of it (versions.json says which)"
        )
    for name, array in present.items():
        if array.shape != saved[name].shape:
            raise UserError(
                f"the environment's saved {name} has shape {saved[name].shape}; expected "
                f"{array.shape}: it was saved with another simulator or task"
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
