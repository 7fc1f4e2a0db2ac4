"""Keyword arguments of the environment, on the command line and in JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeAlias

import tyro

from langevinrl.errors import UserError

PYTHON_WORDS = {"True": True, "False": False, "None": None}


def parse_kwargs(words: list[str]) -> dict[str, Any]:
    """Parse `["g=9.8", "name=low"]` or `['{"g": 9.8}']`; values are JSON, else text."""
    table: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            table[name] = PYTHON_WORDS.get(value, _read_json(value, value))
        elif isinstance(own := _read_json(word, None), dict):
            table |= own
        else:
            raise ValueError(f"{word!r} is neither key=value nor a JSON object")
    return table


def _read_json(text: str, default: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def write_kwargs(table: dict[str, Any]) -> list[str]:
    """Return the words that `parse_kwargs` parses to this table."""
    return [f"{name}={json.dumps(value)}" for name, value in table.items()]


def require_json(table: dict[str, Any]) -> None:
    """Refuse values that JSON cannot hold."""
    try:
        same = json.loads(json.dumps(table)) == table
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise UserError(
            f"env_kwargs is {table!r}; expected numbers, text, lists and dicts by name, which "
            "JSON can hold. For anything else pass a function that makes the environment."
        )


EnvKwargs: TypeAlias = Annotated[
    dict[str, Any],
    tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar="KEY=VALUE|JSON",
        instance_from_str=parse_kwargs,
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=write_kwargs,
    ),
]
