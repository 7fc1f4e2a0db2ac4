"""The one error meant for people."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can put right: what was wrong, what was expected, what is near."""
