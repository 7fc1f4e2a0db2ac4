"""Each fault that spoils a run is found before it, in a sentence; sound tasks pass in silence."""

from __future__ import annotations

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
def test_sound_tasks_pass_without_a_word(env: Any) -> None:
    assert check_env(env) == []


class Faulty(toys.PointMass):
    """A sound task but for one thing."""

    def __init__(self, **faults: Any) -> None:
        super().__init__()
        self.faults = faults
        self.count = 0
        if "space" in faults:
            self.observation_space = faults["space"]
        if "box" in faults:
            self.action_space = faults["box"]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        obs, info = super().reset(seed=seed)
        self.count = 0
        if self.faults.get("unseeded"):
            self.state = np.random.default_rng().uniform(-1, 1, 4)
            obs = self.state.astype(np.float32)
        if self.faults.get("old_reset"):
            return self.fault(obs)
        return self.fault(obs), info

    def step(self, action: np.ndarray) -> Any:
        clip = self.faults.get("clip")
        obs, reward, *rest = super().step(np.clip(action, -clip, clip) if clip else action)
        self.count += 1
        if self.count >= 3:
            obs, reward = self.faults.get("obs", obs), self.faults.get("reward", reward)
        if self.faults.get("old_step"):
            return obs, reward, rest[0], rest[2]
        return self.fault(obs), reward, *rest

    def fault(self, obs: np.ndarray) -> Any:
        change = self.faults.get("change")
        return change(obs) if change else obs


def nan(shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"reward": np.nan}, "reward of nan"),
    ({"reward": np.inf}, "reward of inf"),
    ({"reward": None}, "reward of None|not a number"),
    ({"reward": np.zeros(2)}, r"reward of shape \(2,\)"),
    ({"obs": nan(4)}, "not finite"),
    ({"obs": np.zeros(5, np.float32)}, r"shape \(5,\)"),
    ({"change": lambda obs: obs[:2]}, r"reset\(\) gives an observation of shape \(2,\)"),
    ({"space": spaces.Box(-9, 9, (4,), np.int64)}, "is of integers"),
    ({"change": lambda obs: {"a": obs}, "space": spaces.Dict(b=toys.PointMass().observation_space)},
     r"of the parts \['a'\]; its space has \['b'\]"),
    ({"old_reset": True}, "reset\\(\\) returns one thing"),
    ({"old_step": True}, "step\\(\\) returns 4 values"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "words"), ERRORS, ids=[words for _, words in ERRORS])
def test_what_would_spoil_a_run_is_an_error(fault: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        require_sound(lambda: Faulty(**fault))


DOUBTS: list[tuple[dict[str, Any], str]] = [
    ({"unseeded": True}, "two resets with the same seed differ"),
    ({"space": spaces.Box(-1e-3, 1e-3, (4,), np.float32)}, "outside of its space"),
    ({"change": np.float64}, "gives float64 observations"),
    ({"box": spaces.Box(-9, 9, (2,), np.float32), "clip": 1.5}, "clip to a smaller box"),
    ({"box": spaces.Box(-1e8, 1e8, (2,), np.float32), "clip": 1.0}, "bounded in name only"),
    ({"box": spaces.Box(np.zeros(2, np.float32), np.array([1, 0], np.float32))}, "no room"),
]


@pytest.mark.parametrize(("fault", "words"), DOUBTS, ids=[words for _, words in DOUBTS])
def test_what_may_be_meant_is_a_doubt(fault: dict[str, Any], words: str) -> None:
    with pytest.warns(UserWarning) as caught:
        require_sound(lambda: Faulty(**fault))
    assert len([one for one in caught if words in str(one.message)]) == 1


class Restarting(gym.Wrapper[Any, Any, Any, Any]):
    """Starts the next episode by itself, and returns its first observation with the end."""

    def __init__(self, env: gym.Env[Any, Any], key: str | None = None) -> None:
        super().__init__(env)
        self.key = key

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info = {self.key: obs} if self.key else info
            obs, _ = self.env.reset()
        return obs, reward, terminated, truncated, info


@pytest.mark.parametrize(
    "make",
    [
        lambda: Restarting(toys.golden()),
        lambda: Restarting(gym.make("InvertedPendulum-v4")),
        lambda: Restarting(toys.golden(), "final_observation"),
        lambda: gym.wrappers.Autoreset(toys.golden()),
    ],
    ids=["point mass", "MuJoCo", "in info", "Autoreset"],
)
@pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
def test_a_wrapper_that_drops_the_last_observation_is_found(make: EnvFactory) -> None:
    with pytest.raises(UserError, match=r"drops the last one|first observation stands|Take it off"):
        require_sound(make)


class Draws(toys.Clock):
    """Observes nothing but draws of its generator, whatever is done."""

    def observe(self) -> np.ndarray:
        return self.np_random.uniform(size=3).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        gym.Env.reset(self, seed=seed)
        self.steps = 0
        return self.observe(), {}


def test_observations_that_are_only_draws_are_no_fault() -> None:
    """The last of an episode is then the draw that the next would have started with."""
    assert check_env(lambda: Draws(length=4)) == []
    assert not any(finding.is_error for finding in check_env(lambda: Draws(length=1)))
    with pytest.raises(UserError, match="drops the last one"):
        require_sound(lambda: Restarting(toys.golden()))


def test_running_statistics_are_a_doubt_with_what_to_do() -> None:
    def make() -> gym.Env[Any, Any]:
        return gym.wrappers.NormalizeReward(gym.wrappers.NormalizeObservation(toys.golden()))

    said = " ".join(finding.sentence for finding in check_env(make) if not finding.is_error)
    assert "langevinrl.envs.standardise" in said and "reward_scale" in said


def test_standardised_observations_are_alike_in_every_lane_and_can_be_put_back() -> None:
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
