"""Tests of the vector environment: ends of episodes, seeds, action scaling and names."""

from __future__ import annotations

import functools
import itertools
import os
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
import toys

from langevinrl.envs.factory import EnvFactory, name_of
from langevinrl.envs.vector import VectorEnv, env_seed, episode_seed
from langevinrl.envs.workers import Workers
from langevinrl.errors import STOP_SIGNALS, UserError
from langevinrl.types import Transition


def play(envs: VectorEnv, steps: int, seed: int = 0) -> list[Transition]:
    """Reset, and play `steps` random actions."""
    draw = np.random.default_rng(seed)
    envs.reset()
    shape = (*envs.shape, envs.spec.act_dim)
    return [envs.step(draw.uniform(-1, 1, shape).astype(np.float32)) for _ in range(steps)]


def refusal(env: str | EnvFactory) -> str:
    with pytest.raises(UserError) as caught:
        VectorEnv(env, [0], 1)
    return str(caught.value)


@pytest.mark.parametrize(("env", "length", "bootstrap"), [("ending", 5, 0.0), ("timed", 7, 1.0)])
def test_an_ended_episode_keeps_its_last_observation_and_resets(
    env: str, length: int, bootstrap: float
) -> None:
    envs = VectorEnv(getattr(toys, env), [3], 2)
    envs.reset()
    starts = envs.obs[0, :, 0].copy()
    zero = np.zeros((1, 2, 1), np.float32)
    for step in range(1, length + 1):
        transition = envs.step(zero)
        np.testing.assert_array_equal(transition.obs[0, :, 1], step - 1)
        np.testing.assert_array_equal(transition.next_obs[0, :, 1], step)
        np.testing.assert_array_equal(transition.next_obs[0, :, 0], starts)
        last = step == length
        assert envs.ended.all() == last
        np.testing.assert_array_equal(transition.bootstrap, bootstrap if last else 1.0)
    np.testing.assert_array_equal(envs.obs[0, :, 1], 0)  # the reset, seen only from now on
    assert (envs.obs[0, :, 0] != starts).all()
    np.testing.assert_array_equal(envs.step(zero).obs[0, :, 1], 0)


def test_environments_end_independently() -> None:
    """Hoppers fall at different times, and do not affect each other."""
    transitions = play(VectorEnv("Hopper-v4", [0], 3), 60)
    ended = np.array([t.bootstrap[0] == 0 for t in transitions])
    assert ended.any(axis=0).all() and not ended.all(axis=1).any()
    for before, after in itertools.pairwise(transitions):
        fallen = before.bootstrap[0] == 0
        np.testing.assert_array_equal(before.next_obs[0][~fallen], after.obs[0][~fallen])
        assert (before.next_obs[0][fallen] != after.obs[0][fallen]).any(axis=-1).all()


def test_every_array_is_float32_and_has_the_seed_axis_first() -> None:
    transition = play(VectorEnv("Hopper-v4", [0, 1], 3), 1)[0]
    shapes = {name: array.shape for name, array in transition._asdict().items()}
    wide, flat = (2, 3, 11), (2, 3)
    expected = {"obs": wide, "action": (2, 3, 3), "next_obs": wide}
    assert shapes == expected | {"reward": flat, "bootstrap": flat}
    assert {array.dtype for array in transition} == {np.dtype(np.float32)}


def test_a_seed_is_the_same_alone_or_among_other_seeds() -> None:
    draw = np.random.default_rng(0).uniform(-1, 1, (20, 3, 2, 3)).astype(np.float32)
    among, alone = VectorEnv("Hopper-v4", [7, 4, 9], 2), VectorEnv("Hopper-v4", [4], 2)
    np.testing.assert_array_equal(among.reset()[1], alone.reset()[0])
    for action in draw:
        many, one = among.step(action), alone.step(action[1:2])
        for left, right in zip(many, one, strict=True):
            np.testing.assert_array_equal(left[1], right[0])


def test_no_two_environments_share_a_start() -> None:
    starts = VectorEnv(toys.timed, list(range(5)), 4).reset()[:, :, 0]
    assert len(np.unique(starts)) == 20
    training = {env_seed(seed, lane) for seed in range(50) for lane in range(50)}
    assert len(training) == 2500
    # `evaluate --seed 0` must not begin where training's own environments began.
    evaluation = {episode_seed(seed, episode) for seed in range(50) for episode in range(50)}
    assert len(evaluation) == 2500 and not training & evaluation


def test_asymmetric_boxes_are_scaled_and_actions_beyond_them_are_not_clipped() -> None:
    box = gym.spaces.Box(np.array([0.0, -1.0], np.float32), np.array([4.0, 3.0], np.float32))
    envs = VectorEnv(lambda: toys.Echo(box), [0], 1, act_bound=2.0)
    assert envs.spec.act_bound == 2.0
    envs.reset()
    for asked, received in [(-2.0, [0, -1]), (0.0, [2, 1]), (2.0, [4, 3]), (3.0, [5, 4])]:
        transition = envs.step(np.full((1, 1, 2), asked, np.float32))
        np.testing.assert_allclose(transition.next_obs[0, 0], received)
        assert (transition.action == asked).all()  # replay stores the agent's action


def test_workers_give_the_same_numbers_and_ignore_stop_signals() -> None:
    together = VectorEnv("toys:ending", [5], 2)
    apart = VectorEnv("toys:ending", [5], 2, asynchronous=True)
    try:
        for left, right in zip(play(together, 7), play(apart, 7), strict=True):
            for ours, theirs in zip(left, right, strict=True):
                np.testing.assert_array_equal(ours, theirs)
        assert together.metadata() == apart.metadata()
        assert isinstance(apart.vector, Workers)
        # Ctrl-C in a terminal and a cluster's warning reach them too.
        for number in STOP_SIGNALS:
            for process in apart.vector.processes:
                os.kill(process.pid or 0, number)
        time.sleep(0.2)
        apart.step(np.zeros((1, 2, 1), np.float32))
    finally:
        apart.close()


def test_an_environment_can_be_an_id_a_module_a_function_or_a_factory() -> None:
    for env in ("Pendulum-v1", "gymnasium:Pendulum-v1"):
        assert VectorEnv(env, [0], 1).spec.obs_dim == 3
    starts = [
        VectorEnv(env, [0], 1).reset()
        for env in ("toys:toys/Timed-v0", "toys:timed", toys.timed, functools.partial(toys.timed))
    ]
    for start in starts[1:]:
        np.testing.assert_array_equal(start, starts[0])
    assert name_of(toys.timed) == "toys:timed"
    assert name_of(functools.partial(toys.timed)) == "functools:partial"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ("Hoper-v4", "Hopper-v4"), ("HalfCheeta-v4", "HalfCheetah-v4"),
        ("qqqqqqqq", "module:function"), ("nowhere:make", "nowhere"), ("toys:pear", "toys:pear"),
        ("toys:np.pi", "toys:np.pi"), ("math:pi", "'math:pi'"),
    ],
)  # fmt: skip
def test_an_unknown_name_raises_with_close_matches(env: str, words: str) -> None:
    assert words in refusal(env) and env in refusal(env)


def test_unsupported_action_spaces_raise_with_advice() -> None:
    assert "Discrete(2)" in refusal("CartPole-v1") and "DQN" in refusal("CartPole-v1")
    unbounded = gym.spaces.Box(-np.inf, 1, (2,), np.float32)
    assert "finite bounds" in refusal(lambda: toys.Echo(unbounded))
    assert "ClipAction" in refusal(lambda: gym.wrappers.ClipAction(toys.timed()))
    assert "integer box" in refusal(lambda: toys.Echo(gym.spaces.Box(-1, 1, (2,), np.int32)))
    pair = gym.spaces.Tuple([gym.spaces.Box(-1, 1, (2,), np.float32)] * 2)
    assert "one flat Box" in refusal(lambda: toys.Echo(pair))


def test_a_function_that_makes_no_environment_raises() -> None:
    assert "made 3; expected a Gymnasium environment" in refusal("toys:not_an_environment")


def test_pusher_v4_says_which_mujoco_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mujoco, "__version__", "3.2.0")
    for env in ("Pusher-v4", "gymnasium:Pusher-v4"):
        message = refusal(env)
        assert "mujoco below 3" in message
        assert "langevinrl[paper]" in message and "Pusher-v5" in message


def test_errors_name_an_extra_only_if_it_helps() -> None:
    def raising(error: Exception) -> EnvFactory:
        def make() -> gym.Env[Any, Any]:
            raise error

        return make

    missing = gym.error.DependencyNotInstalled("MuJoCo is not installed")
    assert "langevinrl[mujoco]" in refusal(raising(missing))
    assert "langevinrl[mujoco]" in refusal(raising(ModuleNotFoundError("No module 'imageio'")))
    assert "pip" not in refusal(raising(gym.error.DependencyNotInstalled("Box2D is missing")))
    assert "gymnasium-robotics" in refusal("Hopper-v3")
    assert "pip" not in refusal("Hopper-v3")


@pytest.mark.parametrize("env", ["Reacher-v4", functools.partial(gym.make, "Reacher-v4")])
def test_v4_tasks_build_without_warnings(env: Any, recwarn: pytest.WarningsRecorder) -> None:
    VectorEnv(env, [0], 1).close()
    assert not recwarn.list


def test_mujoco_warns_through_python_and_writes_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (hopper,) = VectorEnv("Hopper-v4", [0], 1).call("unwrapped")
    hopper.data.qvel[:] = np.nan
    with pytest.warns(UserWarning, match=r"MuJoCo: .* The simulation is unstable\.$"):
        mujoco.mj_step(hopper.model, hopper.data)
    assert not list(tmp_path.iterdir())
