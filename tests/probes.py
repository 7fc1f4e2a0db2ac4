"""Tiny environments with known values, each of which reveals one kind of bug."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class Probe(gym.Env[np.ndarray, np.ndarray]):
    """One observation number and one action number; subclasses define the step."""

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


def pay(action: np.ndarray) -> float:
    """Return a reward with its maximum, 1, at the action 0.5; actions are clipped, as in MuJoCo."""
    return 1.0 - 4.0 * float((np.clip(action[0], -1.0, 1.0) - 0.5) ** 2)


class ActionReward(Probe):
    """Ends after one step; the reward is highest for the action 0.5."""

    def step(self, action: np.ndarray) -> Any:
        return self.seen(), pay(action), True, False, {}


LOSS, EARLY, LATE, TIMED, CHOICE = range(5)


def room(place: float) -> np.ndarray:
    """Return the observation of a room: a one-hot vector."""
    return np.eye(5, dtype=np.float32)[int(place)]


class Rooms(Probe):
    """Five probes in one task, identified by the observation, so that one run tests all.

    LOSS pays -1 and ends; EARLY pays nothing and leads to LATE, which pays 1 and ends; TIMED pays
    1 and is truncated; CHOICE pays by the action and ends.  A backup past a termination would count
    its room twice.  A backup over a truncation must use the truncated room, not the next episode's.
    """

    observation_space = gym.spaces.Box(0.0, 1.0, (5,), np.float32)

    def seen(self) -> np.ndarray:
        return room(self.place)

    def begin(self) -> float:
        # CHOICE is drawn twice as often: its value depends on the action.
        return float(self.np_random.choice([LOSS, EARLY, TIMED, CHOICE, CHOICE]))

    def step(self, action: np.ndarray) -> Any:
        place = self.place
        if place == EARLY:
            self.place = float(LATE)
            return self.seen(), 0.0, False, False, {}
        reward = {LOSS: -1.0, CHOICE: pay(action)}.get(int(place), 1.0)
        return self.seen(), reward, place != TIMED, place == TIMED, {}
