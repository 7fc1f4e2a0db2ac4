"""The paper's studies as data and a command."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from langevinrl.errors import UserError, unknown

if TYPE_CHECKING:
    from langevinrl.studies.study import Study

# Studies of trained runs: the file of that name defines STUDY.
TRAINED = ("mujoco", "single-draw", "temperature", "levels", "splits", "short")
# The others train no sweep of runs.
STUDIES = (*TRAINED, "parameters", "time", "bandit")


def load_study(name: str) -> Study:
    """Return a study of trained runs by its name."""
    if name not in TRAINED:
        raise UserError(unknown("study", name, STUDIES))
    module = importlib.import_module(f"langevinrl.studies.{name.replace('-', '_')}")
    study: Study = module.STUDY
    return study
