"""The paper as data and a command."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from langevinrl.errors import UserError, unknown

if TYPE_CHECKING:
    from langevinrl.studies.study import Study

# Studies of trained runs: a file each, whose STUDY reads as the paper's appendix.
TRAINED = {
    "mujoco": "mujoco",
    "single-draw": "single_draw",
    "temperature": "temperature",
    "levels": "levels",
    "splits": "splits",
}
# The others have a command of their own kind: a count, a timing, the bandit.
OTHERS = ("parameters", "time", "bandit")
STUDIES = (*TRAINED, *OTHERS)


def load_study(name: str) -> Study:
    """A study of trained runs, by its name."""
    if name not in TRAINED:
        raise UserError(unknown("study", name, STUDIES))
    study: Study = importlib.import_module(f"langevinrl.studies.{TRAINED[name]}").STUDY
    return study
