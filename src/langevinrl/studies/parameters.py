"""The parameter table: trainable parameters of each method on Humanoid, relative to NC-LQL."""

from __future__ import annotations

import jax

from langevinrl.analysis.paper import HUMANOID_PARAMETERS
from langevinrl.analysis.tables import Row
from langevinrl.learner import count_parameters
from langevinrl.registry import METHODS
from langevinrl.studies.study import AGENTS
from langevinrl.types import Spec

HUMANOID = Spec(376, 17)  # Humanoid-v4: observation and action sizes


def count_all(spec: Spec) -> dict[str, tuple[int, int]]:
    """Count the trainable parameters of every method at its defaults: (critics, policy).

    Target copies, temperatures and optimiser states do not count.
    """
    counts = {}
    for name, method in METHODS.items():
        state = jax.eval_shape(method.load()(spec).init, jax.random.key(0))
        critics = count_parameters(state.critic)
        counts[name] = critics, count_parameters(state) - critics
    return counts


def parameter_table(spec: Spec = HUMANOID) -> list[Row]:
    """Return a row per method of the paper, with its ratio to NC-LQL and the paper's ratio."""
    counts = count_all(spec)
    unit = sum(counts["nclql"])
    return [
        {
            "method": METHODS[name].label,
            "critics": critics,
            "policy": policy,
            "total": critics + policy,
            "ratio": f"{(critics + policy) / unit:.3f}",
            "paper": f"{HUMANOID_PARAMETERS[name]:.3f}" if name in HUMANOID_PARAMETERS else "",
        }
        for name, (critics, policy) in counts.items()
        if name in AGENTS
    ]
