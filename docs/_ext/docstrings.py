"""Plain-text docstrings, prepared for autodoc.

A paragraph that is Python becomes a code block, lines `argument: meaning` become a list of
arguments, asterisks outside code are escaped, and lists get the blank line they need.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from sphinx.application import Sphinx

ARGUMENT = re.compile(r"^`?(\w+)`?: (.+)$")


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Yield runs of lines; a blank line ends one, except within a class."""
    found: list[str] = []
    for line in lines:
        if line.strip() or (found and _is_code(found) and found[0].startswith("class ")):
            found.append(line)
        elif found:
            yield found
            found = []
    if found:
        yield found


def _is_code(lines: list[str]) -> bool:
    text = textwrap.dedent("\n".join(lines))
    if not re.search(r"[(=]|^class ", text) or text.rstrip().endswith("."):
        return False
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _arguments(lines: list[str], known: set[str]) -> list[str]:
    """Return the lines as fields if they list arguments of the function."""
    matches = [ARGUMENT.match(line) for line in lines]
    if not all(match and match[1] in known for match in matches):
        return []
    return [f":param {match[1]}: {match[2]}" for match in matches if match]


def _escape(line: str) -> str:
    """Escape asterisks outside backticks: `*shape` is no emphasis."""
    parts = line.split("`")
    return "`".join(p.replace("*", r"\*") if i % 2 == 0 else p for i, p in enumerate(parts))


def _lists(lines: Iterable[str]) -> Iterator[str]:
    """Add the blank line that reStructuredText needs before the first item of a list."""
    before = "- "
    for line in lines:
        if line.startswith("- ") and not before.startswith(("- ", "  ")):
            yield ""
        yield line
        before = line


def process(app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring's lines in place."""
    try:
        known = set(inspect.signature(item).parameters)
    except (TypeError, ValueError):
        known = set()
    written: list[str] = []
    for paragraph in paragraphs(list(lines)):
        if _is_code(paragraph):
            code = textwrap.indent(textwrap.dedent("\n".join(paragraph)), "   ").splitlines()
            written += [".. code-block:: python", "", *code]
        else:
            # Arguments may be followed directly by a sentence on the result.
            cut = len(paragraph)
            while cut and not _arguments(paragraph[:cut], known):
                cut -= 1
            rest = paragraph[cut:] if cut else paragraph
            fields = _arguments(paragraph[:cut], known)
            written += [*fields, *([""] if cut else []), *_lists(map(_escape, rest))]
        written.append("")
    lines[:] = written


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
