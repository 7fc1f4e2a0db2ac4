"""Fields of a dataclass: name, default, and the comment next to the field."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

FIELD = re.compile(r"^    (\w+): [^#]+?(?:  # (?P<comment>.+))?$")

Row = tuple[str, str, str]


def comments_of(kind: type[Any]) -> dict[str, str]:
    """Return the comment of each field, next to it or on the lines above."""
    comments: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(kind).splitlines():
        found = FIELD.match(line)
        if line.startswith("    # "):
            above.append(line.removeprefix("    # "))
            continue
        if found:
            comments[found[1]] = found["comment"] or " ".join(above)
        above = []
    return comments


def describe_fields(kind: type[Any]) -> tuple[list[Row], list[Row]]:
    """Return rows of a class's own fields, and of those it inherits unchanged."""
    hints = get_type_hints(kind)
    own, shared = [], []
    sentences = {base: comments_of(base) for base in reversed(kind.__mro__[:-1])}
    for field in dataclasses.fields(kind):
        if field.name == "spec":
            continue
        owner = next(
            base for base in kind.__mro__ if field.name in vars(base).get("__annotations__", {})
        )
        row = (
            f"`{field.name}`",
            shown_default(field),
            with_choices(sentences[owner][field.name], hints[field.name]),
        )
        (own if owner is kind else shared).append(row)
    return own, shared


def shown_default(field: dataclasses.Field[Any]) -> str:
    """Return a default as one would type it."""
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return "required"
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"`{value:g}`"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1000:
        return f"`{value:_}`"
    return f"`{value}`"


def with_choices(sentence: str, hint: Any) -> str:
    """Return the sentence, with the allowed values if it does not name them all."""
    values = [str(value) for value in get_args(hint)] if get_origin(hint) is Literal else []
    if all(value in sentence for value in values):
        return sentence
    return f"{sentence}; one of " + ", ".join(f"`{value}`" for value in values)
