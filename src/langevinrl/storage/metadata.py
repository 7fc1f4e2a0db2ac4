"""Checks of a checkpoint's metadata: types, ranges and sizes.  Needs no JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from langevinrl.errors import UserError


class RunSizes(Protocol):
    """Fields of a run's configuration that its checkpoints must match."""

    @property
    def seeds(self) -> int: ...
    @property
    def num_envs(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def warmup_steps(self) -> int: ...


def require_metadata(metadata: dict[str, Any], config: RunSizes) -> None:
    """Raise if a run of this configuration cannot have written the metadata."""
    num_envs, steps = config.seeds * config.num_envs, metadata.get("step", -1)
    done = max(0, steps - config.warmup_steps) if is_count(steps) else None
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "step": (is_count, "a whole number from 0"),
        "iteration": (
            lambda value: is_count(value) and value == done,
            f"{done}, which follows from step",
        ),
        "wall_seconds": (lambda value: is_number(value) and value >= 0, "a number of seconds"),
        "logs": (_is_table_of_digests, "sizes and digests of the logs"),
        "envs": (lambda value: _is_list_of(dict | None, value, num_envs), f"{num_envs} states"),
        "episodes": (lambda value: isinstance(value, dict | None), "a table"),
        "replay": (lambda value: _is_ring(value, config), f"a ring of {config.capacity} rows"),
    }
    for name, (fits, expected) in checks.items():
        if name not in metadata or not fits(metadata[name]):
            found = str(metadata.get(name, "missing"))[:80]
            raise UserError(f"the checkpoint's {name} is {found}; expected {expected}")


@contextmanager
def raise_as_corrupt() -> Iterator[None]:
    """Turn errors in restoring saved values into a UserError about the checkpoint."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(f"the checkpoint cannot be restored: {error!r}") from error


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number from 0 that a float can hold exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_ring(value: Any, config: RunSizes) -> bool:
    """Check a replay's size and position: until the ring is full, its next row is its size."""
    if not isinstance(value, dict):
        return False
    size, position = value.get("size", -1), value.get("position", -1)
    if not (is_count(size) and is_count(position) and size <= config.capacity):
        return False
    in_place = position < config.capacity if size == config.capacity else position == size
    return in_place and _is_list_of(dict, value.get("generators"), config.seeds)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that a float can hold."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) < 1e300


def _is_table_of_digests(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(pair, list) and len(pair) == 2 and is_count(pair[0]) and isinstance(pair[1], str)
        for pair in value.values()
    )


def _is_list_of(kind: Any, value: Any, length: int) -> bool:
    return (
        isinstance(value, list) and len(value) == length and all(isinstance(v, kind) for v in value)
    )
