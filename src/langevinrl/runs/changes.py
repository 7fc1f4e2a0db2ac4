"""Changes to a run's configuration between its checkpoint and a resume."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from langevinrl.errors import UserError, field
from langevinrl.runs.config import FIELDS_BESIDE_LEARNING, RunConfig, agent_fields
from langevinrl.types import Spec


def changed_fields(before: dict[str, Any] | None, now: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return the fields that affect learning and differ from the checkpoint, with both values."""
    if before is None:  # a checkpoint of format 0, or one made without a run
        return {}
    own = agent_fields(now.make_agent(Spec(1, 1)))
    present = json.loads(json.dumps(dataclasses.asdict(now) | own))
    past = before | before.get("hyperparameters", {})
    compared = present.keys() & past.keys() - FIELDS_BESIDE_LEARNING - {"hyperparameters"}
    return {n: (past[n], new) for n, new in present.items() if n in compared and past[n] != new}


def require_unchanged(before: dict[str, Any] | None, now: RunConfig, place: str) -> None:
    """Refuse a configuration that was edited since its checkpoint was saved."""
    changed = changed_fields(before, now)
    if changed:
        list_ = ", ".join(f"{n} was {old!r} and is {new!r}" for n, (old, new) in changed.items())
        raise UserError(
            f"{place} was changed since its checkpoint was saved: {list_}. Undo that, or go on as "
            f"a different run with langevinrl resume and {field('accept_changes')}"
        )
