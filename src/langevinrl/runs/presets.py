"""Presets: named values for fields of an agent and of its run."""

from __future__ import annotations

from typing import Any

from langevinrl.errors import UserError, field, unknown

PAPER = "paper"  # the preset every agent has: its defaults
# The run's fields that an agent (`run_defaults`) or a preset may set, with the paper's values.
RUN_DEFAULTS: dict[str, Any] = {"warmup": 30_000, "batch_size": 256, "reward_norm": False}


# Evaluation in the paper and its released code.
PAPER_EVALUATIONS, PAPER_EPISODES = 40, 20
EVALUATIONS, LEAST_EPISODES = 20, 3  # by default
EPISODE_STEPS = 1_000  # assumed where no limit is registered


def preset_names(kind: type[Any]) -> list[str]:
    """List the presets of an agent; an agent need not have any but its defaults."""
    return [PAPER, *getattr(kind, "presets", {})]


def run_values(kind: type[Any], preset: str | None) -> dict[str, Any]:
    """Return the values that a preset, else the agent, else the paper gives the run's fields."""
    own = getattr(kind, "run_defaults", {}) | _preset(kind, preset)
    return {name: own.get(name, value) for name, value in RUN_DEFAULTS.items()}


def agent_values(kind: type[Any], preset: str | None) -> dict[str, Any]:
    """Return the values that a preset gives the agent's own fields."""
    return {n: value for n, value in _preset(kind, preset).items() if n not in RUN_DEFAULTS}


def default_evaluation(
    preset: str | None, env: str, iterations: int, transitions: int
) -> tuple[int, int]:
    """Return the iterations between evaluations and the episodes in each.

    By default there are about 20 evaluations.  Their episodes take at most a tenth of the
    environment steps of training (`transitions`), but are at least 3 and at most 20.  The preset
    `paper`, if given, has the paper's 40 evaluations of 20 episodes.
    """
    if preset == PAPER:
        return max(1, iterations // PAPER_EVALUATIONS), PAPER_EPISODES
    every = max(1, iterations // EVALUATIONS)
    steps = transitions / 10 / (iterations // every)
    episodes = int(steps / longest_episode(env))
    return every, min(max(episodes, LEAST_EPISODES), PAPER_EPISODES)


def longest_episode(env: str) -> int:
    """Return the registered step limit of an environment, or 1,000 if there is none."""
    import gymnasium as gym

    spec = gym.registry.get(env.rpartition(":")[2])
    return (spec.max_episode_steps if spec else None) or EPISODE_STEPS


def preset_mistakes(agent: str, kind: type[Any], preset: str | None, known: list[str]) -> list[str]:
    """Return a sentence for a preset that does not exist, or for each field it cannot set.

    `known` are the agent's own fields.
    """
    names = preset_names(kind)
    if preset is not None and preset not in names:
        return [_retired(agent, preset) or unknown(f"preset of {agent}", preset, names)]
    settable = [*known, *RUN_DEFAULTS]
    tables = {
        f"field in preset {preset!r}": (_preset(kind, preset), settable),
        f"field in run_defaults of {agent}": (getattr(kind, "run_defaults", {}), RUN_DEFAULTS),
    }
    return [
        unknown(what, name, allowed)
        for what, (table, allowed) in tables.items()
        for name in table
        if name not in allowed
    ]


def _preset(kind: type[Any], preset: str | None) -> dict[str, Any]:
    if preset in (None, PAPER):
        return {}
    if preset not in preset_names(kind):
        raise UserError(unknown("preset", str(preset), preset_names(kind)))
    return dict(kind.presets[preset])


def _retired(agent: str, preset: str) -> str:
    """Return what to write instead of a preset that existed before version 0.2, if it is one."""
    if preset not in ("fast", "fast-balance"):
        return ""
    instead = field("preset", "short")
    if agent == "nclql":
        more = f" with {field('n_step', 3)} and {field('spread', 0.1)}"
        instead = "the agent nclql-auto" + (more if preset == "fast-balance" else "")
    return f"preset {preset!r} of {agent} was removed in version 0.2; use {instead}"
