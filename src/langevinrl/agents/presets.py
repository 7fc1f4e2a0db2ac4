"""Settings by name, for each method that has other than the paper's: what `--preset` puts in.

`paper` is every field's own default.  `fast` is for runs of minutes: a quarter of NC-LQL's chain
and three times its rate; for SAC the reward as it is and a temperature that starts at 1.
"""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "nclql": {"fast": {"num_levels": 5, "steps_per_level": 1, "learning_rate": 3e-4}},
    "lql": {"fast": {"num_steps": 10, "step_size": 4e-4, "learning_rate": 3e-4}},
    "sac": {"fast": {"reward_scale": 1.0, "initial_alpha": 1.0}},
}


def names_of(agent: str) -> list[str]:
    """The presets of a method, the paper's first."""
    return ["paper", *PRESETS.get(agent, {})]


def fields_of(agent: str, preset: str) -> dict[str, Any]:
    """What a preset sets of the method's fields; nothing for the paper's."""
    return dict(PRESETS.get(agent, {}).get(preset, {}))
