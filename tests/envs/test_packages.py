"""Tests of dm_control and Gymnasium-Robotics, where their extras are installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_snapshot import assert_goes_on

from langevinrl.envs.build import task_sizes
from langevinrl.envs.check import check_env
from langevinrl.envs.factory import GymFactory
from langevinrl.envs.vector import VectorEnv
from langevinrl.runs.config import RunConfig
from langevinrl.runs.train import resume, train
from langevinrl.storage.folder import RunFolder

TASKS = [
    ("dm_control/cheetah-run-v0", "shimmy", "dm_control", (17, 6)),
    ("FetchReach-v4", "gymnasium_robotics", "gymnasium_robotics", (16, 4)),
]
SHORT: dict[str, Any] = {
    "iterations": 200, "num_envs": 2, "warmup": 300, "batch_size": 32, "capacity": 2_000,
    "eval_every": 150, "eval_episodes": 1, "checkpoint_every": 150, "log_every": 50,
}  # fmt: skip
SMALL: dict[str, Any] = {"hidden": (16, 16), "num_levels": 3, "embedding_size": 4}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # these packages use deprecated functions
@pytest.mark.parametrize(("env", "module", "package", "sizes"), TASKS, ids=[t[0] for t in TASKS])
def test_a_task_trains_and_resumes(
    env: str, module: str, package: str, sizes: tuple[int, int], tmp_path: Path
) -> None:
    pytest.importorskip(module)
    pytest.importorskip(package)
    spec = task_sizes(env)
    assert (spec.obs_dim, spec.act_dim) == sizes
    assert not [finding for finding in check_env(env) if finding.is_error]
    folder = tmp_path / "run"
    config = RunConfig(env, hyperparameters=SMALL, out=str(folder), **SHORT)
    train(config, quiet=True)
    assert RunFolder(folder).last_evaluation() == 200
    resume(folder, 320, quiet=True)
    assert RunFolder(folder).last_evaluation() == 320


EXACT = [
    ("gymnasium_robotics", "FetchPickAndPlace-v4"),
    ("gymnasium_robotics", "HandReach-v3"),
    ("gymnasium_robotics", "HandManipulateBlock-v1"),
    ("gymnasium_robotics", "AdroitHandPen-v1"),
    ("gymnasium_robotics", "AdroitHandRelocate-v1"),
    ("gymnasium_robotics", "PointMaze_UMaze-v3"),
    ("gymnasium_robotics", "AntMaze_UMaze-v5"),
    ("shimmy", "dm_control/cheetah-run-v0"),
    ("shimmy", "dm_control/reacher-easy-v0"),
    ("shimmy", "dm_control/fish-swim-v0"),
    ("shimmy", "dm_control/humanoid-walk-v0"),
    ("shimmy", "dm_control/manipulator-bring_ball-v0"),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("module", "env"), EXACT, ids=[env for _, env in EXACT])
def test_packages_restore_byte_for_byte(module: str, env: str) -> None:
    """Through the end of an episode: goals and targets are drawn at each start."""
    pytest.importorskip(module)
    short = GymFactory(env, {"max_episode_steps": 20})
    assert assert_goes_on(short, before=13, after=40).any()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_state_of_franka_kitchen_is_unknown() -> None:
    pytest.importorskip("gymnasium_robotics")
    envs = VectorEnv("FrankaKitchen-v1", [0], 1)
    envs.reset()
    assert envs.metadata() == [None]
    envs.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_goal_task_observes_its_goal() -> None:
    """The goal is part of the flat observation and differs between episodes."""
    pytest.importorskip("gymnasium_robotics")
    envs = VectorEnv("FetchReach-v4", [0], 2)
    envs.reset()
    task = envs.task
    keys = list(task.observation_space.spaces)  # type: ignore[attr-defined]  # a Dict
    assert keys == ["achieved_goal", "desired_goal", "observation"]
    goals = envs.obs[0, :, 3:6]
    assert np.abs(goals[0] - goals[1]).max() > 1e-3
    transition = envs.step(np.zeros((1, 2, 4), np.float32))
    np.testing.assert_array_equal(transition.next_obs[0, :, 3:6], goals)
    envs.close()
