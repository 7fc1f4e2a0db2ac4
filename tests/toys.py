"""Small environments with predictable numbers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import gymnasium as gym
import numpy as np


class Clock(gym.Env[np.ndarray, np.ndarray]):
    """Observes a random start, the step count and a random number; pays 1 + action.

    An episode ends after `length` steps.  The random number shows that the generator is restored.
    """

    def __init__(self, length: int | None = None, bound: float = 1.0) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = gym.spaces.Box(-bound, bound, (1,), np.float32)
        self.length, self.start, self.steps = length, 0.0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.start, self.steps = float(self.np_random.uniform()), 0
        return self.observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        ended = self.length is not None and self.steps >= self.length
        return self.observe(), 1.0 + float(action[0]), ended, False, {}

    def observe(self) -> np.ndarray:
        return np.array([self.start, self.steps, self.np_random.uniform()], np.float32)


class SavedClock(Clock):
    """A clock whose state can be saved."""

    def state_dict(self) -> dict[str, np.ndarray]:
        return {"start": np.array(self.start), "steps": np.array(self.steps)}

    def load_state_dict(self, arrays: dict[str, np.ndarray]) -> None:
        self.start, self.steps = float(arrays["start"]), int(arrays["steps"])


class Echo(gym.Env[Any, np.ndarray]):
    """Observes the action it received; any spaces."""

    def __init__(
        self, box: gym.Space[Any], observation_space: gym.Space[Any] | None = None
    ) -> None:
        self.action_space = box
        self.observation_space = observation_space or box

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        same = self.observation_space == self.action_space
        obs = action if same else self.observation_space.sample()
        return obs, float(np.sum(action)), False, False, {}


class Memory(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper with state: its reward is the sum of all rewards so far."""

    total = 0.0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.total += float(reward)
        return obs, self.total, terminated, truncated, info


class PointMass(gym.Env[np.ndarray, np.ndarray]):
    """Position and velocity in the plane, pushed by the action; pays for being near the origin."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = gym.spaces.Box(-1.5, 1.5, (2,), np.float32)
        self.state = np.zeros(4)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 4)
        return self.state.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        position, velocity = self.state[:2], 0.9 * self.state[2:] + 0.1 * np.asarray(action)
        self.state = np.concatenate([position + 0.1 * velocity, velocity])
        fallen = bool(np.abs(self.state[:2]).max() > 1.2)
        return self.state.astype(np.float32), 1 - float(self.state @ self.state), fallen, False, {}

    def state_dict(self) -> dict[str, np.ndarray]:
        return {"state": self.state}

    def load_state_dict(self, arrays: dict[str, np.ndarray]) -> None:
        self.state = np.array(arrays["state"])


class Stranger(gym.Env[Any, np.ndarray]):
    """An environment with a Dict observation, an asymmetric action box and early ends."""

    def __init__(self) -> None:
        parts = {
            "joint": gym.spaces.Box(-9, 9, (2,), np.float64),
            "grid": gym.spaces.Box(0, 5, (2, 2), np.int64),
        }
        self.observation_space = gym.spaces.Dict(parts)
        self.action_space = gym.spaces.Box(-3.0, 7.0, (2,), np.float32)
        self.joint = np.zeros(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.joint = self.np_random.uniform(-1, 1, 2)
        return self.observe(), {}

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.joint = 0.9 * self.joint + 0.1 * action
        ended = bool(self.np_random.uniform() < 0.05)
        return self.observe(), -float(self.joint @ self.joint), ended, False, {}

    def observe(self) -> dict[str, np.ndarray]:
        return {"joint": self.joint, "grid": np.array([[0, 1], [2, 5]])}


def stranger() -> gym.Env[Any, Any]:
    """A Stranger, truncated after twenty steps."""
    return gym.wrappers.TimeLimit(Stranger(), 20)


def golden() -> gym.Env[Any, Any]:
    """The task of the golden record: two actions, early ends, truncated after nine steps."""
    return gym.wrappers.TimeLimit(PointMass(), 9)


def ending() -> gym.Env[Any, Any]:
    """Terminates after five steps."""
    return SavedClock(length=5)


def timed() -> gym.Env[Any, Any]:
    """Never terminates; truncated after seven steps."""
    return gym.wrappers.TimeLimit(SavedClock(), 7)


def unsaved() -> gym.Env[Any, Any]:
    """Terminates after five steps; its state cannot be saved."""
    return Clock(length=5)


def wide() -> gym.Env[Any, Any]:
    """Acts in [-2, 2]; truncated after seven steps."""
    return gym.wrappers.TimeLimit(SavedClock(bound=2.0), 7)


class Breaking(SavedClock):
    """Fails at its thirtieth step, in the middle of an episode."""

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self.steps == 30:
            raise RuntimeError("the wheel came off")
        return super().step(action)


breaking = Breaking


def not_an_environment() -> int:
    return 3


gym.register("toys/Timed-v0", entry_point="toys:timed")


class Unsavable(SavedClock):
    """A clock with a bug in its state_dict."""

    def state_dict(self) -> dict[str, np.ndarray]:
        raise KeyError("gear")


class Launching(SavedClock):
    """A clock that starts a process and never ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.started = subprocess.Popen(["sleep", "600"]).pid


class Failing(SavedClock):
    """A clock that fails at its third step, if its start is `victim`."""

    def __init__(self, fault: str, victim: float) -> None:
        super().__init__()
        self.fault, self.victim = fault, victim

    def step(self, action: np.ndarray) -> Any:
        obs, reward, *rest = super().step(action)
        if self.steps != 3 or np.float32(self.start) != np.float32(self.victim):
            return obs, reward, *rest
        if self.fault == "raises":
            raise RuntimeError("the wheel came off")
        if self.fault == "calls sys.exit":
            sys.exit(0)
        if self.fault == "closes descriptors":
            os.closerange(3, 100)
        if self.fault == "exits":
            os._exit(7)
        if self.fault == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "hangs":
            time.sleep(60)
        if self.fault == "shrinks":
            obs = obs[:2]
        return obs, np.nan if self.fault == "is nan" else reward, *rest
