"""The preset `short`: settings shared by all methods for comparisons that take minutes on a CPU.

The paper's settings are made for a million updates on a GPU; these for tens of thousands.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Presets: TypeAlias = dict[str, dict[str, Any]]  # values of agent and run fields by preset name

# Fields of the run. Rewards are divided by their root mean square, so one scale suits every task.
SHORT_RUN: dict[str, Any] = {"batch_size": 64, "warmup": 5_000, "reward_norm": True}
# Fields of the agent. With τ = 0.005 a reward needs about 20,000 updates to cross the horizon of
# γ = 0.99; with 0.05, 2,000.
SHORT_AGENT: dict[str, Any] = {"target_rate": 0.05, "hidden": (256, 256), "reward_scale": 2.0}


def short(**own: float) -> Presets:
    """Return an agent's presets: the shared values and its own, such as learning rates.

    Delays of the temperature are 1/25 of the paper's, as 40,000 updates are of its million.
    """
    return {"short": SHORT_RUN | SHORT_AGENT | own}


def short_with_actor(rate: float, **own: float) -> Presets:
    """Return an agent's presets with one learning rate for its critics and its actor."""
    return short(critic_learning_rate=rate, actor_learning_rate=rate, **own)
