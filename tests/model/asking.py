"""Calls of Model.predict: from a test, and as Stable-Baselines3 makes them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from langevinrl import Model

OBS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def act(model: Model, obs: Any = OBS, **how: Any) -> np.ndarray:
    action, state = model.predict(obs, **how)
    assert state is None
    return action


def evaluate_policy(model: Model, env: gym.Env[Any, Any], episodes: int) -> list[float]:
    """Call a model as Stable-Baselines3's evaluate_policy does, with one environment."""
    returns: list[float] = []
    obs, _ = env.reset(seed=0)
    states, starts, total = None, np.ones(1, bool), 0.0
    while len(returns) < episodes:
        alone = not isinstance(obs, dict)
        batch = obs[None] if alone else {name: value[None] for name, value in obs.items()}
        actions, states = model.predict(
            batch, state=states, episode_start=starts, deterministic=True
        )
        obs, reward, terminated, truncated, _ = env.step(actions[0])
        total, starts = total + float(reward), np.array([terminated or truncated])
        if starts[0]:
            returns.append(total)
            (obs, _), total = env.reset(), 0.0
    return returns
