"""The one error meant for people, and how it names what is near."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can put right: what was wrong, what was expected, what is near."""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One sentence for a name that is not there: what it was, what is near, what there is."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    return f"unknown {what} {name!r}{hint} Known: {', '.join(known)}"
