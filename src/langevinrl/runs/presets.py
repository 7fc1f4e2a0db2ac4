"""Presets, and the evaluations a run has by default."""

from __future__ import annotations

from typing import Any

from langevinrl.errors import UserError, unknown

PAPER = "paper"  # the preset every agent has: its defaults
# The run's fields that an agent (`run_defaults`) or a preset may set, with the paper's values.
RUN_DEFAULTS: dict[str, Any] = {"warmup": 30_000, "batch_size": 256, "reward_norm": False}

# Evaluation in the paper and its released code.
PAPER_EVALUATIONS, PAPER_EPISODES = 40, 20
EVALUATIONS, LEAST_EPISODES = 20, 3  # by default
LEAST_EVERY = 250  # iterations between evaluations of a short run, which they would else dominate
EPISODE_STEPS = 1_000  # assumed where no limit is registered


def preset_values(agent: str, kind: type[Any], preset: str | None) -> dict[str, Any]:
    """Return the values of fields of the agent and the run that a preset sets, else the agent."""
    known = {PAPER: {}} | getattr(kind, "presets", {})
    name = PAPER if preset is None else str(preset)
    if name not in known:
        raise UserError(unknown(f"preset of {agent}", name, known))
    return dict(getattr(kind, "run_defaults", {}) | known[name])


def default_evaluation(
    preset: str | None, env: str, iterations: int, transitions: int
) -> tuple[int, int]:
    """Return the iterations between evaluations and the episodes in each.

    By default there are about 20 evaluations, at least 250 iterations apart. Their episodes take at
    most a tenth of the environment steps of training (`transitions`), but are at least 3 and at
    most 20. The preset `paper`, if given, has the paper's 40 evaluations of 20 episodes.
    """
    if preset == PAPER:
        return max(1, iterations // PAPER_EVALUATIONS), PAPER_EPISODES
    every = max(iterations // EVALUATIONS, min(iterations, LEAST_EVERY))
    steps = transitions / 10 / (iterations // every)
    episodes = int(steps / longest_episode(env))
    return every, min(max(episodes, LEAST_EPISODES), PAPER_EPISODES)


def longest_episode(env: str) -> int:
    """Return the registered step limit of an environment, or 1,000 if there is none."""
    import gymnasium as gym

    spec = gym.registry.get(env.rpartition(":")[2])
    return (spec.max_episode_steps if spec else None) or EPISODE_STEPS
