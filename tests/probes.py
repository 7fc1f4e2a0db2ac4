"""Environments so small that the right value is known, each showing one fault if it is there."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class Probe(gym.Env[np.ndarray, np.ndarray]):
    """One observation number, one action number; subclasses say what a step does."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    place = 0.0

    def seen(self) -> np.ndarray:
        return np.array([self.place], np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.place = self.begin()
        return self.seen(), {}

    def begin(self) -> float:
        return 0.0


class ConstantReward(Probe):
    """Ends at once with reward 1."""

    def step(self, action: np.ndarray) -> Any:
        return self.seen(), 1.0, True, False, {}


class ObservedReward(Probe):
    """Ends at once; the reward is the observation, -1 or 1."""

    def begin(self) -> float:
        return float(self.np_random.choice([-1.0, 1.0]))

    def step(self, action: np.ndarray) -> Any:
        return self.seen(), self.place, True, False, {}


class LateReward(Probe):
    """Two steps; only the second is rewarded."""

    def step(self, action: np.ndarray) -> Any:
        self.place += 1.0
        return self.seen(), float(self.place == 2.0), self.place == 2.0, False, {}


class ActionReward(Probe):
    """Ends at once; the reward is highest for the action 0.5."""

    def step(self, action: np.ndarray) -> Any:
        return self.seen(), 1.0 - 4.0 * float((action[0] - 0.5) ** 2), True, False, {}


class Ending(Probe):
    """Reward 1 a step; each episode truly ends after one."""

    def step(self, action: np.ndarray) -> Any:
        return self.seen(), 1.0, True, False, {}


class TimeOut(Probe):
    """Reward 1 a step; each episode is only cut off after one."""

    def step(self, action: np.ndarray) -> Any:
        return self.seen(), 1.0, False, True, {}
