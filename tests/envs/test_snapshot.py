"""A restored environment goes on byte for byte, through ends of episodes and time limits."""

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

from langevinrl.envs.vector import EnvFactory, VectorEnv
from langevinrl.errors import UserError
from langevinrl.types import Transition

NINE = (
    "HalfCheetah Walker2d Humanoid Hopper Ant Swimmer Pusher Reacher InvertedDoublePendulum".split()
)
FALLING = ["Walker2d", "Humanoid", "Hopper", "InvertedDoublePendulum"]  # at random, soon
TIMED = ["Pusher", "Reacher"]  # within these few steps
new_mujoco = pytest.mark.skipif(mujoco.__version__ >= "3", reason="Pusher-v4 needs mujoco below 3")
TASKS = [pytest.param(f"{task}-v4", marks=new_mujoco if task == "Pusher" else ()) for task in NINE]


def saved_state(envs: VectorEnv) -> tuple[dict[str, np.ndarray], list[Any]]:
    """Arrays and metadata as a checkpoint would hand them back."""
    arrays = {name: array.copy() for name, array in envs.arrays().items()}
    return arrays, json.loads(json.dumps(envs.metadata()))


def play(envs: VectorEnv, actions: np.ndarray) -> list[Transition]:
    return [envs.step(action) for action in actions]


def assert_goes_on(env: str | EnvFactory, before: int, after: int) -> np.ndarray:
    """Play, save, restore into fresh environments, compare; returns where episodes were cut."""
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
def test_the_papers_tasks_go_on_byte_for_byte(env: str) -> None:
    ends = assert_goes_on(env, before=23, after=120)
    if env.split("-")[0] in FALLING + TIMED:
        assert ends.any()


@pytest.mark.parametrize("env", ["HalfCheetah-v4", "Ant-v4", "Swimmer-v4"])
def test_the_time_limit_is_remembered(env: str) -> None:
    short = partial(gym.make, env, max_episode_steps=30)
    with pytest.warns(DeprecationWarning, match="out of date"):
        ends = assert_goes_on(short, before=23, after=40)
    np.testing.assert_array_equal(np.flatnonzero(ends[:, 0, 0]), [6, 36])


@pytest.mark.parametrize("env", ["Pendulum-v1", "MountainCarContinuous-v0", "Hopper-v5"])
def test_so_do_others_of_gymnasium(env: str) -> None:
    assert_goes_on(env, before=30, after=200)


def test_restored_at_every_step_it_still_rounds_the_same() -> None:
    """MountainCar keeps its state in float32; put back in float64 it would round otherwise."""
    left, right = (VectorEnv("MountainCarContinuous-v0", [0], 1) for _ in range(2))
    left.reset()
    for action in np.random.default_rng(0).uniform(-1, 1, (200, 1, 1, 1)).astype(np.float32):
        right.restore(*saved_state(left), restart=0)
        np.testing.assert_array_equal(left.step(action).next_obs, right.step(action).next_obs)


def test_so_does_an_environment_with_a_state_of_its_own() -> None:
    assert assert_goes_on(toys.ending, before=3, after=14).any()
    assert assert_goes_on(toys.timed, before=3, after=14).any()


def test_one_time_limit_within_another() -> None:
    ends = assert_goes_on(lambda: gym.wrappers.TimeLimit(toys.timed(), 50), before=3, after=10)
    assert ends[3].all()  # the inner one, after seven steps


WRAPPED = {
    "NormalizeObservation": gym.wrappers.NormalizeObservation,
    "NormalizeReward": gym.wrappers.NormalizeReward,
    "RecordEpisodeStatistics": gym.wrappers.RecordEpisodeStatistics,
    "TimeAwareObservation": gym.wrappers.TimeAwareObservation,
    "RescaleAction": lambda env: gym.wrappers.RescaleAction(env, np.float32(-2), np.float32(2)),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_wrappers_that_remember_go_on_too(wrap: Any) -> None:
    def make() -> gym.Env[Any, Any]:
        return wrap(gym.make("Hopper-v5", max_episode_steps=15))

    assert assert_goes_on(make, before=20, after=30).any()


def test_one_within_the_other_and_over_a_state_of_its_own() -> None:
    def make() -> gym.Env[Any, Any]:
        inner = gym.wrappers.NormalizeObservation(toys.timed())
        return gym.wrappers.NormalizeReward(gym.wrappers.NormalizeObservation(inner))

    assert assert_goes_on(make, before=10, after=14).any()


def test_statistics_are_part_of_what_is_saved() -> None:
    envs = VectorEnv(lambda: gym.wrappers.NormalizeObservation(toys.timed()), [0], 1)
    envs.reset()
    play(envs, np.zeros((9, 1, 1, 1), np.float32))
    arrays, metadata = saved_state(envs)
    mean = arrays["0/wrapper 1/obs_rms.mean"]
    assert mean[1] > 2 and metadata[0]["values"]["wrapper 1/obs_rms.count"] > 9


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


def test_a_damaged_state_is_told_in_a_sentence() -> None:
    envs = VectorEnv(toys.timed, [0], 1)
    envs.reset()
    arrays, (metadata,) = saved_state(envs)
    changes: list[dict[str, Any]] = [{"generator": 3}, {"elapsed": [1, 2]}]
    for damaged in [{}, *(metadata | change for change in changes)]:
        with pytest.raises(UserError, match="cannot be put back"):
            envs.restore(arrays, [damaged], restart=0)
    with pytest.raises(UserError, match="cannot take it"):
        VectorEnv(toys.unsaved, [0], 1).restore(arrays, [metadata], restart=0)
    with pytest.raises(UserError, match="no observations that fit"):
        envs.restore(arrays | {"obs": np.zeros((1, 2, 3))}, [metadata], restart=0)


def test_scratch_that_older_checkpoints_hold_is_passed_over() -> None:
    """What the next step makes anew was once saved where it happened to be there."""
    envs = VectorEnv("Hopper-v4", [0], 1)
    envs.reset()
    arrays, metadata = saved_state(envs)
    arrays["0/efc_force"] = np.zeros(7)
    assert envs.restore(arrays, metadata, restart=0)


@pytest.mark.parametrize("env", ["Hopper-v4", "Reacher-v4"])
def test_no_scratch_is_saved(env: str) -> None:
    """Some of it is memory nobody has written to: two equal runs would save other bytes."""
    envs = VectorEnv(env, [0], 1)
    envs.reset()
    assert not [name for name in envs.arrays() if name.startswith("0/efc_")]
    envs.close()


class Errand(HopperEnv):
    """Simulates with MuJoCo, but what it is after is not in MuJoCo's data."""

    goal = 0.0


@pytest.mark.parametrize("env", [toys.unsaved, lambda: toys.Memory(toys.timed()), Errand])
def test_one_whose_state_cannot_be_had_in_full_says_none(env: EnvFactory) -> None:
    envs = VectorEnv(env, [0], 2)
    envs.reset()
    assert envs.metadata() == [None, None]


def test_a_wrapper_that_remembers_can_join_in() -> None:
    class Checkpoint(toys.Memory):
        def state_dict(self) -> dict[str, np.ndarray]:
            inner: Any = self.unwrapped
            return inner.state_dict() | {"total": np.array(self.total)}

        def load_state_dict(self, arrays: dict[str, np.ndarray]) -> None:
            inner: Any = self.unwrapped
            inner.load_state_dict(arrays)
            self.total = float(arrays["total"])

    assert_goes_on(lambda: Checkpoint(toys.timed()), before=3, after=14)


def test_if_one_lane_cannot_follow_all_start_again_with_seeds_from_the_step() -> None:
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
