"""Checks of field values against their declared types and ranges.  Needs no JAX."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

MOST_INT = 2**31 - 1  # the compiled programs count in 32 bits
MOST_FLOAT, LEAST_FLOAT = 1e38, 1e-37  # beyond these a 32-bit number is infinite or zero
WIDEST = 65_536  # units of a layer; a typing error such as 2**31 would take all memory

# Ranges other than the default, which is from 1 for whole numbers and from 0 for others.
RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**32 - 1),  # a JAX key is made from 32 bits
    "seeds": (1, 10_000),
    "warmup": (0, MOST_INT),
    "num_envs": (1, 100_000),
    "eval_episodes": (1, 100_000),
    "updates_per_iteration": (1, 100_000),
    "batch_size": (1, 2**24),
    "n_step": (1, 1_000),
    "gamma": (0, 1),
    "target_rate": (0, 1),
    "spread": (0, 1),
    "slow_rate": (0, 1),
    "statistics_rate": (0, 1),
    "hidden": (1, WIDEST),
    "embedding_size": (2, WIDEST),
    **dict.fromkeys(("best_of", "policy_best_of", "num_uniform", "num_noises"), (1, WIDEST)),
    "num_entropy_actions": (1, WIDEST),
    "num_gaussians": (1, 64),  # each adds to the program: hundreds compile for minutes
    "schedule_scale": (1e-3, 1),  # scales noise rates up to 0.999, which must stay below 1
    **dict.fromkeys(("num_levels", "steps_per_level", "num_steps", "flow_steps"), (1, WIDEST)),
    "num_ascent_steps": (1, WIDEST),
    "action_bound": (LEAST_FLOAT, MOST_FLOAT),
    "initial_alpha": (LEAST_FLOAT, MOST_FLOAT),  # its logarithm is learned
}
EVEN = ("embedding_size",)  # half sines, half cosines


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to the types that are compared and stored."""
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """Convert NumPy numbers to Python's, paths to text, and lists and arrays to tuples."""
    if getattr(value, "ndim", None) == 0:
        return value.item()
    if isinstance(value, dict):
        return {k: v.item() if getattr(v, "ndim", None) == 0 else v for k, v in value.items()}
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def field_mistakes(kind: type[Any], values: Mapping[str, Any]) -> list[str]:
    """Return a sentence for every value that a field of `kind` cannot hold."""
    hints = get_type_hints(kind)
    found = (_mistake(name, value, hints[name]) for name, value in values.items())
    return [sentence for sentence in found if sentence]


def _mistake(name: str, value: Any, hint: Any) -> str:
    """Return a sentence about an invalid value, or ""."""
    if not _fits(value, hint):
        return f"{name} is {short(value)}; expected {_describe(hint)}"
    if value == () and get_args(hint)[:1] == (int,):
        return f"{name} has no numbers; expected at least one"
    whole = hint is not float
    least, most = RANGES.get(name, (1, MOST_INT) if whole else (0, MOST_FLOAT))
    for number in value if isinstance(value, tuple) else (value,):
        if not isinstance(number, int | float) or isinstance(number, bool):
            continue
        if not least <= number <= most:  # also true for NaN
            limit = f"at most {most}" if number > most else f"at least {least}"
            return f"{name} is {short(value)}; expected a finite number {limit}"
        if name in EVEN and number % 2:
            return f"{name} is {short(value)}; expected an even number: half sines, half cosines"
        if 0 < abs(number) < LEAST_FLOAT:
            return f"{name} is {short(value)}; expected a larger number: this is 0 in 32 bits"
    return ""


def short(value: Any) -> str:
    """Return the repr of a value, shortened if it is long."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"a number of {int(math.log10(abs(value))) + 1} digits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]} ... ({len(text)} characters)"


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _describe(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
