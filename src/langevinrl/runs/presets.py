"""Presets: values under a name beside an agent, for its own fields and for its run's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langevinrl.errors import UserError, unknown

PAPER = "paper"  # the preset that every agent has: the defaults


class Default(int):
    """A whole number that nobody gave: a field's own default, which a preset may replace.

    In all else it is that number.  One that was given, also the very same, is a plain int: from a
    flag, a keyword or a file, and in whatever `dataclasses.replace` makes of it.  So nobody who
    makes a configuration has to keep a list of what was given, no field is None until it is
    resolved, and help and docs show the default where it stands.
    """


def preset_names(kind: type[Any]) -> list[str]:
    """The presets of an agent; an agent written elsewhere may have none but its defaults."""
    return [PAPER, *getattr(kind, "presets", {})]


def preset_values(kind: type[Any], preset: str) -> dict[str, Any]:
    """All that a preset of an agent sets, of the agent's fields and of the run's side by side."""
    if preset not in preset_names(kind):
        raise UserError(unknown("preset", preset, preset_names(kind)))
    return {} if preset == PAPER else dict(kind.presets[preset])


def spell_out(fields: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a run, all as if given: those that nobody gave by a preset's values."""
    return {
        name: values.get(name, int(field)) if isinstance(field, Default) else field
        for name, field in fields.items()
    }
