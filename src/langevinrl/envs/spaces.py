"""Spaces of a task: flat observations, scaled actions, and a JSON form stored beside weights.

Needs neither the environment nor JAX.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from langevinrl.errors import UserError
from langevinrl.types import Spec

Json: TypeAlias = dict[str, Any]
Composed: TypeAlias = "spaces.Dict | spaces.Tuple[Any]"
MAX_SIZE = 2**27  # numbers in one observation or action
LEAVES = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


class TaskSpaces:
    """A task's observation space and action box, converted to and from flat arrays.

    task = TaskSpaces(env.observation_space, env.action_space)
    rows, single = task.flatten(obs)              # (B, O) float32
    action = task.stretch(np.zeros((1, task.spec.act_dim), np.float32))
    """

    def __init__(
        self, observation_space: spaces.Space[Any], action_space: spaces.Box, bound: float = 1.0
    ) -> None:
        """Agents act in [-bound, bound]."""
        self.observation_space, self.action_space = observation_space, action_space
        self.bound = bound
        sizes = int(spaces.flatdim(observation_space)), int(spaces.flatdim(action_space))
        self.spec = Spec(*sizes, bound)
        # Halved before the sum, which would overflow for the widest finite box.
        low, high = action_space.low.reshape(-1), action_space.high.reshape(-1)
        self.centre = high / 2 + low / 2
        self.scale = (high / 2 - low / 2) / bound
        self._low, self._high = low, high
        edges = self._affine(np.array([[-bound], [bound]], np.float32))
        self._rounds_out = bool((edges[0] < low).any() or (edges[1] > high).any())

    def flatten(self, obs: Any) -> tuple[np.ndarray, bool]:
        """Return one observation or a batch as rows (B, O) float32, and whether it was one.

        A batch of a Dict is a dict of batches, as vector environments return it.
        """
        single = _is_single(self.observation_space, obs, "obs")
        parts = _flat_parts(self.observation_space, obs, single, "obs")
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return rows, single

    def stretch(self, action: np.ndarray) -> np.ndarray:
        """Scale actions (B, A) in [-bound, bound] to the task's units, shape and dtype (B, ...).

        Nothing is clipped: an action beyond the bound is scaled beyond the task's box.
        """
        sent = self._affine(action)
        if self._rounds_out:  # rounding may exceed the bounds of an asymmetric box
            inside = np.abs(action) <= self.bound
            sent = np.where(inside, np.clip(sent, self._low, self._high), sent)
        return sent.reshape(len(action), *self.action_space.shape)

    def _affine(self, action: np.ndarray) -> np.ndarray:
        return (self.centre + self.scale * action).astype(self.centre.dtype)

    def to_json(self) -> Json:
        """Return a JSON form; infinite numbers become "inf" and "-inf"."""
        return {
            "observation": space_to_json(self.observation_space),
            "action": space_to_json(self.action_space),
            "bound": self.bound,
        }

    @classmethod
    def from_json(cls, table: Json) -> TaskSpaces:
        """Return the spaces that `to_json` wrote."""
        action, bound = require_box(space_from_json(table["action"]), "the task"), table["bound"]
        if isinstance(bound, bool) or not 0 < bound < np.inf:
            raise ValueError(f"bound is {bound!r}")
        return cls(space_from_json(table["observation"]), action, bound)


def require_box(space: spaces.Space[Any], name: str) -> spaces.Box:
    """Return the action space if it is a float Box with finite bounds; raise with advice if not."""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        raise UserError(
            f"{name!r} has discrete actions, {space}; every method here draws real-valued ones "
            "from a Box. Use a method for discrete actions, such as DQN, or the task's "
            "continuous version if it has one (LunarLander-v3: continuous=True)."
        )
    if not isinstance(space, spaces.Box):
        raise UserError(
            f"{name!r} has action space {space}; expected one Box with finite bounds. Join its "
            "parts in a wrapper that takes one flat Box."
        )
    if not np.issubdtype(space.dtype, np.floating):
        raise UserError(
            f"{name!r} acts in an integer box, {space}; every method here draws real-valued "
            "actions. If rounding is intended, wrap it: gymnasium.wrappers.TransformAction(env, "
            "lambda a: a.round().astype(int), a float32 Box of the same bounds)."
        )
    if not np.all(np.isfinite([space.low, space.high])):
        raise UserError(
            f"{name!r} acts in {space}; expected a Box with finite bounds. Give it bounds of "
            "your own: gymnasium.wrappers.TransformAction(env, lambda a: a, Box(-1, 1, shape)). "
            "A ClipAction wrapper opens any box to infinity: leave it out, or put RescaleAction "
            "in its place."
        )
    if np.any(space.low > space.high) or not space.low.size:
        raise UserError(f"{name!r} acts in {space}, which holds no action")
    return space


def require_observable(space: spaces.Space[Any], name: str) -> None:
    """Raise if observations have no flat form of a fixed size."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for _, part in children(space):
            require_observable(part, name)
    elif not isinstance(space, LEAVES):
        raise UserError(
            f"{name!r} observes {space}; expected Box, Discrete, MultiDiscrete, MultiBinary, or a "
            "Dict or Tuple of these. Turn it into a Box with gymnasium.wrappers."
            "TransformObservation."
        )


def children(space: Composed) -> list[tuple[Any, spaces.Space[Any]]]:
    """Return the keys and spaces of the parts, in the order of the flat form."""
    if isinstance(space, spaces.Dict):
        return list(space.spaces.items())
    return list(enumerate(space.spaces))


def _shape(space: spaces.Space[Any]) -> tuple[int, ...]:
    assert space.shape is not None  # true for all `LEAVES`
    return space.shape


def _part(space: Composed, obs: Any, key: Any, where: str) -> Any:
    """Return one part of a Dict or Tuple observation."""
    wanted = Mapping if isinstance(space, spaces.Dict) else Sequence
    if not isinstance(obs, wanted) or isinstance(obs, str):
        keys = [key for key, _ in children(space)]
        raise UserError(f"{where} is {type(obs).__name__}; expected one with the parts {keys}")
    try:
        return obs[key]
    except (KeyError, IndexError):
        raise UserError(f"{where} lacks the part {key!r}") from None


def _is_single(space: spaces.Space[Any], obs: Any, where: str) -> bool:
    """Return whether this is one observation, not a batch, by the shape of its first part."""
    while isinstance(space, spaces.Dict | spaces.Tuple):
        key, inner = children(space)[0]
        obs, space, where = _part(space, obs, key, where), inner, f"{where}[{key!r}]"
    found, shape = np.shape(obs), _shape(space)
    if found != shape and found[1:] != shape:
        raise _wrong_shape(where, found, shape)
    return found == shape


def _wrong_shape(where: str, found: tuple[int, ...], shape: tuple[int, ...]) -> UserError:
    batch = f"(B, {', '.join(map(str, shape))})" if shape else "(B,)"
    return UserError(f"{where} has shape {found}; expected {shape}, or {batch} for a batch")


def _flat_parts(space: spaces.Space[Any], obs: Any, single: bool, where: str) -> list[np.ndarray]:
    """Return the flat parts of an observation, each (B, ...) float32."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        nested = [
            _flat_parts(part, _part(space, obs, key, where), single, f"{where}[{key!r}]")
            for key, part in children(space)
        ]
        return [rows for parts in nested for rows in parts]
    value = np.asarray(obs)
    shape = _shape(space)
    if value.shape[0 if single else 1 :] != shape:
        raise _wrong_shape(where, value.shape, shape)
    cast = value.astype(space.dtype)
    if np.issubdtype(value.dtype, np.floating) and np.issubdtype(cast.dtype, np.integer):
        if not np.array_equal(cast, value):
            raise UserError(
                f"{where} holds fractions, but its space {space} is of integers: they would be "
                "truncated. Declare a float32 space."
            )
    rows = cast.reshape(1 if single else len(value), -1)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return [_one_hot(space, rows, where)]
    return [rows.astype(np.float32)]


def _one_hot(
    space: spaces.Discrete | spaces.MultiDiscrete, rows: np.ndarray, where: str
) -> np.ndarray:
    """Return integers (B, K) as K one-hot blocks side by side."""
    choices = np.ravel(space.n if isinstance(space, spaces.Discrete) else space.nvec)
    rows = rows - np.ravel(space.start)
    if ((rows < 0) | (rows >= choices)).any():
        raise UserError(f"{where} holds a value outside of {space}")
    flat = np.zeros((len(rows), int(choices.sum())), np.float32)
    starts = np.concatenate([[0], choices.cumsum()[:-1]])
    np.put_along_axis(flat, rows + starts, 1.0, axis=1)
    return flat


def space_to_json(space: spaces.Space[Any]) -> Json:
    """Return a space as JSON."""
    table: Json = {"kind": type(space).__name__}
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return table | {"parts": [[key, space_to_json(part)] for key, part in children(space)]}
    if isinstance(space, spaces.Box):
        bounds = {"low": _bounds_to_json(space.low), "high": _bounds_to_json(space.high)}
        return table | {"shape": list(space.shape), "dtype": str(space.dtype)} | bounds
    if isinstance(space, spaces.MultiBinary):
        return table | {"shape": list(space.shape)}
    if isinstance(space, spaces.Discrete):
        return table | {"n": int(space.n), "start": int(space.start)}
    assert isinstance(space, spaces.MultiDiscrete), space
    return table | {"nvec": space.nvec.tolist(), "start": space.start.tolist()}


def space_from_json(table: Json) -> spaces.Space[Any]:
    """Return the space that `space_to_json` wrote."""
    kind = table["kind"]
    if kind in ("Dict", "Tuple"):
        parts = [(key, space_from_json(part)) for key, part in table["parts"]]
        return spaces.Dict(parts) if kind == "Dict" else spaces.Tuple([part for _, part in parts])
    if kind == "Box":
        shape, dtype = _shape_from_json(table["shape"]), np.dtype(table["dtype"])
        low, high = (_bounds_from_json(table[side], shape, dtype) for side in ("low", "high"))
        return spaces.Box(low, high, shape, dtype.type)
    if kind == "MultiBinary":
        shape = _shape_from_json(table["shape"])
        return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
    if kind == "Discrete":
        return spaces.Discrete(table["n"], start=table["start"])
    return spaces.MultiDiscrete(table["nvec"], start=table["start"])


def _shape_from_json(shape: Any) -> tuple[int, ...]:
    """Return a shape; raise ValueError if its arrays would not fit in memory."""
    if not all(type(size) is int and size >= 0 for size in shape) or math.prod(shape) > MAX_SIZE:
        raise ValueError(f"shape is {str(shape)[:80]}")
    return tuple(shape)


def _bounds_to_json(bounds: np.ndarray) -> Any:
    """Return one number if all are equal, else a flat list."""
    flat = [v if np.isfinite(v) else str(v) for v in bounds.reshape(-1).tolist()]
    return flat[0] if flat and all(v == flat[0] for v in flat) else flat


def _bounds_from_json(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    if not isinstance(value, list):
        return np.full(shape, float(value) if isinstance(value, str) else value, dtype)
    flat = [float(number) if isinstance(number, str) else number for number in value]
    return np.array(flat, dtype).reshape(shape)
