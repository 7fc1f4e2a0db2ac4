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


def pay(action: np.ndarray) -> float:
    """Highest, 1, for the action 0.5; -8 at the far end of the box and, as in MuJoCo, beyond."""
    return 1.0 - 4.0 * float((np.clip(action[0], -1.0, 1.0) - 0.5) ** 2)


class ActionReward(Probe):
    """Ends at once; the reward is highest for the action 0.5."""

    def step(self, action: np.ndarray) -> Any:
        return self.seen(), pay(action), True, False, {}


LOSS, EARLY, LATE, TIMED, CHOICE = range(5)


def room(place: float) -> np.ndarray:
    """What is seen in a room: one of five numbers is 1."""
    return np.eye(5, dtype=np.float32)[int(place)]


class Rooms(Probe):
    """Five probes in one task, told apart by what is seen, so that one run serves them all.

    LOSS pays -1 and ends; EARLY pays nothing and leads to LATE, which pays 1 and ends; TIMED pays
    1 and is only cut off; CHOICE pays by the action and ends.  Only EARLY leads elsewhere: a backup
    past an ending would count its own room twice, and one over a cut must look into the room that
    was cut, not into the one begun next.
    """

    observation_space = gym.spaces.Box(0.0, 1.0, (5,), np.float32)

    def seen(self) -> np.ndarray:
        return room(self.place)

    def begin(self) -> float:
        # CHOICE twice as often: there a value for every action is to be learned, not one number.
        return float(self.np_random.choice([LOSS, EARLY, TIMED, CHOICE, CHOICE]))

    def step(self, action: np.ndarray) -> Any:
        place = self.place
        if place == EARLY:
            self.place = float(LATE)
            return self.seen(), 0.0, False, False, {}
        reward = {LOSS: -1.0, CHOICE: pay(action)}.get(int(place), 1.0)
        return self.seen(), reward, place != TIMED, place == TIMED, {}
