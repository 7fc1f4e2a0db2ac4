"""Tests of the checks before training: faults are reported, sound tasks pass."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import toys
from gymnasium import spaces

from langevinrl.envs.check import check_env, require_sound
from langevinrl.envs.factory import EnvFactory
from langevinrl.envs.standardise import standardise
from langevinrl.envs.vector import VectorEnv
from langevinrl.errors import UserError

SOUND = [toys.golden, toys.ending, toys.timed, toys.wide, "Pendulum-v1", "Hopper-v4", "Reacher-v4"]


@pytest.mark.parametrize("env", SOUND, ids=lambda env: getattr(env, "__name__", env))
def test_sound_tasks_have_no_findings(env: Any) -> None:
    assert check_env(env) == []


class Faulty(toys.PointMass):
    """A sound task with one fault."""

    def __init__(self, **faults: Any) -> None:
        super().__init__()
        self.faults = faults
        self.fail_in("make")
        self.count = 0
        if "space" in faults:
            self.observation_space = faults["space"]
        if "box" in faults:
            self.action_space = faults["box"]

    def fail_in(self, where: str) -> None:
        if self.faults.get("raises") == where:
            raise KeyError("wheel")

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.fail_in("reset")
        obs, info = super().reset(seed=seed)
        self.count = 0
        if self.faults.get("unseeded"):
            self.state = np.random.default_rng().uniform(-1, 1, 4)
            obs = self.state.astype(np.float32)
        if self.faults.get("old_reset"):
            return self.fault(obs)
        return self.fault(obs), info

    def step(self, action: np.ndarray) -> Any:
        obs, reward, *rest = super().step(action)
        self.count += 1
        if self.count >= 3:
            obs, reward = self.faults.get("obs", obs), self.faults.get("reward", reward)
        if self.faults.get("old_step"):
            return obs, reward, rest[0], rest[2]
        return self.fault(obs), reward, *rest

    def fault(self, obs: np.ndarray) -> Any:
        change = self.faults.get("change")
        return change(obs) if change else obs


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"reward": np.nan}, "reward of nan"),
    ({"reward": np.inf}, "reward of inf"),
    ({"reward": None}, "reward that is not a number"),
    ({"reward": np.zeros(2)}, r"reward of shape \(2,\)"),
    ({"obs": np.full(4, np.nan, np.float32)}, "number 0 is nan"),
    ({"obs": np.zeros(5, np.float32)}, r"shape \(5,\)"),
    ({"change": lambda obs: obs[:2]}, r"shape \(2,\); expected \(4,\)"),
    ({"space": spaces.Box(-9, 9, (4,), np.int64)}, "is of integers"),
    ({"change": lambda obs: {"a": obs}, "space": spaces.Dict(b=toys.PointMass().observation_space)},
     r"obs keys: \['a'\], space keys: \['b'\]"),
    ({"old_reset": True}, r"was not a tuple of the form `\(obs, info\)`"),
    ({"old_step": True}, "old step API"),
    ({"box": spaces.Discrete(2)}, "discrete actions"),
    ({"space": spaces.Dict()}, "Gymnasium: An empty Dict observation space"),
    ({"raises": "make"}, r"raised KeyError: 'wheel' in __init__\(\) \(test_check.py, line"),
    ({"raises": "reset"}, r"raised KeyError: 'wheel' in reset\(\) \(test_check.py, line"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "words"), ERRORS, ids=[words for _, words in ERRORS])
def test_a_fault_that_spoils_a_run_is_an_error(fault: dict[str, Any], words: str) -> None:
    findings = check_env(lambda: Faulty(**fault))
    assert findings[0].is_error and re.search(words, " ".join(f.sentence for f in findings))
    with pytest.raises((UserError, KeyError)):
        require_sound(lambda: Faulty(**fault))


WARNINGS: list[tuple[dict[str, Any], str]] = [
    ({"unseeded": True}, "two resets with the same seed differ"),
    ({"space": spaces.Box(-1e-3, 1e-3, (4,), np.float32)}, "not within the observation space"),
    ({"change": np.float64}, "dtype to be float32, actual type: float64"),
    ({"box": spaces.Box(-1e8, 1e8, (2,), np.float32)}, "too wide to be useful"),
    ({"box": spaces.Box(np.zeros(2, np.float32), np.array([1, 0], np.float32))}, "are equal"),
]


@pytest.mark.parametrize(("fault", "words"), WARNINGS, ids=[words for _, words in WARNINGS])
def test_a_fault_that_may_be_intended_is_a_warning(fault: dict[str, Any], words: str) -> None:
    with pytest.warns(UserWarning) as caught:
        require_sound(lambda: Faulty(**fault))
    assert any(words in str(one.message) for one in caught)


class Restarting(gym.Wrapper[Any, Any, Any, Any]):
    """Resets at the end of an episode and returns the first observation of the next."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            obs, _ = self.env.reset()
        return obs, reward, terminated, truncated, info


@pytest.mark.parametrize(
    "make",
    [
        lambda: Restarting(toys.golden()),
        lambda: Restarting(gym.make("InvertedPendulum-v4")),
        lambda: gym.wrappers.Autoreset(toys.golden()),
    ],
    ids=["point mass", "MuJoCo", "Autoreset"],
)
def test_a_wrapper_that_drops_the_last_observation_is_found(make: EnvFactory) -> None:
    with pytest.raises(UserError, match=r"drops the last one|Remove it"):
        require_sound(make)


class Draws(toys.Clock):
    """Observes random numbers that do not depend on the action."""

    def observe(self) -> np.ndarray:
        return self.np_random.uniform(size=3).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        gym.Env.reset(self, seed=seed)
        self.steps = 0
        return self.observe(), {}


class Irregular(Draws):
    """Counts steps across episodes, so that a replay ends at another step."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        steps = self.steps
        start = super().reset(seed=seed)
        self.steps = steps
        return start

    def step(self, action: np.ndarray) -> Any:
        obs, reward, _, truncated, info = super().step(action)
        return obs, reward, self.steps % 10 == 0, truncated, info


def test_random_observations_are_not_taken_for_an_early_reset() -> None:
    assert check_env(lambda: Draws(length=4)) == []
    for make in (lambda: Draws(length=1), lambda: Irregular(length=None)):
        assert not any(finding.is_error for finding in check_env(make))


def test_normalising_wrappers_are_a_warning_with_advice() -> None:
    def make() -> gym.Env[Any, Any]:
        return gym.wrappers.NormalizeReward(gym.wrappers.NormalizeObservation(toys.golden()))

    said = " ".join(finding.sentence for finding in check_env(make) if not finding.is_error)
    assert "langevinrl.standardise" in said and "reward_scale" in said


def test_standardised_observations_agree_between_environments_and_can_be_saved() -> None:
    make = standardise(toys.golden, steps=2_000)
    envs = VectorEnv(make, [0], 8)
    draw, seen = np.random.default_rng(0), [envs.reset()]
    for _ in range(300):
        envs.step(draw.uniform(-1, 1, (1, 8, 2)).astype(np.float32))
        seen.append(envs.obs)
    rows = np.concatenate(seen, axis=1)[0]
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=0.2)
    np.testing.assert_allclose(rows.std(axis=0), 1, atol=0.15)
    assert all(state is not None for state in envs.metadata())
    assert check_env(make) == []
