"""Tests of snapshots: a restored environment gives the same bytes, through ends of episodes."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
import toys
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv

from langevinrl.envs.factory import EnvFactory
from langevinrl.envs.vector import VectorEnv
from langevinrl.errors import UserError
from langevinrl.types import Transition

NINE = (
    "HalfCheetah Walker2d Humanoid Hopper Ant Swimmer Pusher Reacher InvertedDoublePendulum".split()
)
FALLING = ["Walker2d", "Humanoid", "Hopper", "InvertedDoublePendulum"]  # at random, soon
new_mujoco = pytest.mark.skipif(mujoco.__version__ >= "3", reason="Pusher-v4 needs mujoco below 3")
TASKS = [pytest.param(f"{task}-v4", marks=new_mujoco if task == "Pusher" else ()) for task in NINE]


def saved_state(envs: VectorEnv) -> tuple[dict[str, np.ndarray], list[Any]]:
    """Return arrays and metadata as a checkpoint would."""
    arrays = {name: array.copy() for name, array in envs.arrays().items()}
    return arrays, json.loads(json.dumps(envs.metadata()))


def play(envs: VectorEnv, actions: np.ndarray) -> list[Transition]:
    return [envs.step(action) for action in actions]


def assert_goes_on(env: str | EnvFactory, before: int, after: int) -> np.ndarray:
    """Play, save, restore into new environments, compare; return where episodes ended."""
    envs = VectorEnv(env, [0], 2)
    draw = np.random.default_rng(0)
    shape = (before + after, 1, 2, envs.spec.act_dim)
    actions = draw.uniform(-1, 1, shape).astype(np.float32)
    envs.reset()
    play(envs, actions[:before])
    arrays, metadata = saved_state(envs)
    unbroken, ends = [], []
    for action in actions[before:]:
        unbroken.append(envs.step(action))
        ends.append(envs.ended.copy())
    fresh = VectorEnv(env, [123], 2)
    assert fresh.restore(arrays, metadata, restart=5)
    for left, right in zip(unbroken, play(fresh, actions[before:]), strict=True):
        for name, ours, theirs in zip(left._fields, left, right, strict=True):
            assert ours.tobytes() == theirs.tobytes(), name
    np.testing.assert_array_equal(envs.obs, fresh.obs)
    envs.close()
    fresh.close()
    return np.array(ends)


@pytest.mark.parametrize("env", TASKS)
def test_the_papers_tasks_restore_byte_for_byte(env: str) -> None:
    """Those that do not fall at random are truncated: the time limit's counter is restored."""
    short = partial(gym.make, env, max_episode_steps=30)
    ends = assert_goes_on(short, before=23, after=40)
    if env.split("-")[0] in FALLING:
        assert ends.any()
    else:
        np.testing.assert_array_equal(np.flatnonzero(ends[:, 0, 0]), [6, 36])


@pytest.mark.parametrize("env", ["Pendulum-v1", "Hopper-v5"])
def test_other_gymnasium_tasks_restore_byte_for_byte(env: str) -> None:
    assert_goes_on(env, before=30, after=200)


def test_a_float32_state_is_restored_as_float32() -> None:
    """MountainCar keeps its state in float32; restored as float64 it would round differently."""
    left, right = (VectorEnv("MountainCarContinuous-v0", [0], 1) for _ in range(2))
    left.reset()
    for action in np.random.default_rng(0).uniform(-1, 1, (200, 1, 1, 1)).astype(np.float32):
        right.restore(*saved_state(left), restart=0)
        np.testing.assert_array_equal(left.step(action).next_obs, right.step(action).next_obs)


WRAPPED = {
    "NormalizeObservation": gym.wrappers.NormalizeObservation,
    "NormalizeReward": gym.wrappers.NormalizeReward,
    "RecordEpisodeStatistics": gym.wrappers.RecordEpisodeStatistics,
    "TimeAwareObservation": gym.wrappers.TimeAwareObservation,
    "RescaleAction": lambda env: gym.wrappers.RescaleAction(env, np.float32(-2), np.float32(2)),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_wrappers_with_state_are_restored(wrap: Any) -> None:
    def make() -> gym.Env[Any, Any]:
        return wrap(gym.make("Hopper-v5", max_episode_steps=15))

    assert assert_goes_on(make, before=20, after=30).any()


class SavedMemory(toys.Memory):
    """A wrapper with state that offers state_dict for all that it wraps."""

    def state_dict(self) -> dict[str, np.ndarray]:
        inner: Any = self.unwrapped
        return inner.state_dict() | {"total": np.array(self.total)}

    def load_state_dict(self, arrays: dict[str, np.ndarray]) -> None:
        inner: Any = self.unwrapped
        inner.load_state_dict(arrays)
        self.total = float(arrays["total"])


def normalised_twice() -> gym.Env[Any, Any]:
    inner = gym.wrappers.NormalizeObservation(toys.timed())
    return gym.wrappers.NormalizeReward(gym.wrappers.NormalizeObservation(inner))


STACKS: dict[str, EnvFactory] = {
    "termination": toys.ending,
    "truncation": toys.timed,
    "nested time limits": lambda: gym.wrappers.TimeLimit(toys.timed(), 50),
    "nested wrappers": normalised_twice,
    "wrapper with state_dict": lambda: SavedMemory(toys.timed()),
}


@pytest.mark.parametrize("make", STACKS.values(), ids=STACKS)
def test_environments_and_wrappers_with_state_dict_restore_byte_for_byte(make: EnvFactory) -> None:
    assert assert_goes_on(make, before=3, after=14).any()


@pytest.mark.parametrize("env", ["Hopper-v4", "Pendulum-v1"])
@pytest.mark.parametrize("change", ["odd", "lost", "reshaped"])
def test_a_saved_state_that_does_not_fit_is_an_error(env: str, change: str) -> None:
    envs = VectorEnv(env, [0], 1)
    envs.reset()
    arrays, metadata = saved_state(envs)
    name = "0/qvel" if env == "Hopper-v4" else "0/state"
    if change == "odd":
        arrays["0/qspring_of_another_version"] = np.zeros(3)
    elif change == "lost":
        del arrays[name]
    else:
        arrays[name] = np.zeros(99)
    with pytest.raises(UserError, match="saved"):
        envs.restore(arrays, metadata, restart=0)


def test_a_damaged_state_raises_a_user_error() -> None:
    envs = VectorEnv(toys.timed, [0], 1)
    envs.reset()
    arrays, (metadata,) = saved_state(envs)
    changes: list[dict[str, Any]] = [{"generator": 3}, {"elapsed": [1, 2]}]
    for damaged in [{}, *(metadata | change for change in changes)]:
        with pytest.raises(UserError, match="cannot be restored"):
            envs.restore(arrays, [damaged], restart=0)
    with pytest.raises(UserError, match="cannot take it"):
        VectorEnv(toys.unsaved, [0], 1).restore(arrays, [metadata], restart=0)
    with pytest.raises(UserError, match="no observations that fit"):
        envs.restore(arrays | {"obs": np.zeros((1, 2, 3))}, [metadata], restart=0)


def test_constraint_arrays_are_not_saved() -> None:
    """Some are uninitialised memory, which would differ between equal runs."""
    envs = VectorEnv("Hopper-v4", [0], 1)
    envs.reset()
    assert not [name for name in envs.arrays() if name.startswith("0/efc_")]


class Errand(HopperEnv):
    """A MuJoCo environment with a goal outside of mjData."""

    goal = 0.0


@pytest.mark.parametrize("env", [toys.unsaved, lambda: toys.Memory(toys.timed()), Errand])
def test_an_unknown_state_is_none(env: EnvFactory) -> None:
    envs = VectorEnv(env, [0], 2)
    envs.reset()
    assert envs.metadata() == [None, None]


def test_unknown_states_restart_all_environments_with_seeds_from_the_step() -> None:
    envs = VectorEnv(toys.unsaved, [0], 2)
    first = envs.reset().copy()
    old = np.full_like(first, 9.0)
    assert not envs.restore({"obs": old}, envs.metadata(), restart=40)
    restarted = envs.obs.copy()
    assert (restarted[..., 0] != first[..., 0]).all() and (restarted[..., 1] == 0).all()
    again = VectorEnv(toys.unsaved, [0], 2)
    again.restore({"obs": old}, [None, None], restart=40)
    np.testing.assert_array_equal(again.obs, restarted)  # the same start every time
    again.restore({"obs": old}, [None, None], restart=41)
    assert (again.obs[..., 0] != restarted[..., 0]).all()
