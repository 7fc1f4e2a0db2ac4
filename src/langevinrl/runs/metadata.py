"""What a checkpoint's metadata must be for a run to go on from it: types, ranges, sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from langevinrl.errors import UserError
from langevinrl.runs.config import RunConfig


def require_metadata(metadata: dict[str, Any], config: RunConfig) -> None:
    """Refuses what cannot have been written by a run of this configuration."""
    num_envs, steps = config.seeds * config.num_envs, metadata.get("step", -1)
    done = max(0, steps - config.warmup_steps) if _is_count(steps) else None
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "step": (_is_count, "a whole number from 0"),
        "iteration": (lambda value: _is_count(value) and value == done, f"{done}, as step says"),
        "wall_seconds": (_is_time, "a number of seconds"),
        "logs": (_is_table_of_counts, "the lengths of the logs"),
        "envs": (lambda value: _is_list_of(dict | None, value, num_envs), f"{num_envs} states"),
        "episodes": (lambda value: isinstance(value, dict | None), "a table"),
        "replay": (lambda value: _is_ring(value, config), f"a ring of {config.capacity} rows"),
    }
    for name, (fits, expected) in checks.items():
        if name not in metadata or not fits(metadata[name]):
            found = str(metadata.get(name, "not there"))[:80]
            raise UserError(f"the checkpoint's {name} is {found}; expected {expected}")


@contextmanager
def told_as_damage() -> Iterator[None]:
    """What goes wrong on putting saved values back is the checkpoint's fault, said in words."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(f"the checkpoint cannot be put back: {error!r}") from error


def _is_ring(value: Any, config: RunConfig) -> bool:
    """A ring that is not full has its next row behind its last: all rows below hold something."""
    if not isinstance(value, dict):
        return False
    size, position = value.get("size", -1), value.get("position", -1)
    if not (_is_count(size) and _is_count(position) and size <= config.capacity):
        return False
    in_place = position < config.capacity if size == config.capacity else position == size
    return in_place and _is_list_of(dict, value.get("generators"), config.seeds)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_time(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0


def _is_table_of_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _is_list_of(kind: Any, value: Any, length: int) -> bool:
    return (
        isinstance(value, list) and len(value) == length and all(isinstance(v, kind) for v in value)
    )
