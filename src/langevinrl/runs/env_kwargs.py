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
        if word.lstrip().startswith("{"):
            table |= _read_object(word)
        elif equals and name.isidentifier():
            table[name] = _read_value(value)
        else:
            raise ValueError(f"{word!r} is neither key=value nor a JSON object")
    return table


def _read_object(word: str) -> dict[str, Any]:
    try:
        return dict(json.loads(word))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{word!r} is not JSON: {error}") from error


def _read_value(text: str) -> Any:
    if text in PYTHON_WORDS:
        return PYTHON_WORDS[text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


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
