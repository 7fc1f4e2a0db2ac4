"""Tests of spaces: flat observations, scaled actions and JSON."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import toys
from gymnasium import spaces
from gymnasium.spaces.utils import flatten
from gymnasium.vector.utils import concatenate, create_empty_array

from langevinrl.envs.flat import FlatWrapper
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.envs.vector import VectorEnv
from langevinrl.errors import UserError

UNIT = spaces.Box(-1, 1, (1,), np.float32)
NESTED = spaces.Dict(
    {
        "where": spaces.Box(-1, 1, (2, 3), np.float64),
        "gear": spaces.Discrete(3, start=2),
        "rest": spaces.Tuple(
            [
                spaces.MultiBinary(4),
                spaces.MultiDiscrete([2, 3]),
                spaces.Box(0, 255, (2,), np.uint8),
                spaces.Box(np.array([-np.inf, 0], np.float32), np.array([1, np.inf], np.float32)),
            ]
        ),
    }
)
OBSERVED = [NESTED, UNIT, spaces.Box(-2, 2, (4, 3), np.float32), spaces.Discrete(5)]


def batch_of(space: spaces.Space[Any], rows: list[Any]) -> Any:
    return concatenate(space, rows, create_empty_array(space, len(rows)))


@pytest.mark.parametrize("space", OBSERVED, ids=lambda space: type(space).__name__)
def test_observations_and_batches_flatten_as_in_gymnasium(space: spaces.Space[Any]) -> None:
    task = TaskSpaces(space, UNIT)
    space.seed(0)
    drawn = [space.sample() for _ in range(4)]
    wanted = np.stack([flatten(space, one).astype(np.float32) for one in drawn])
    assert task.spec.obs_dim == wanted.shape[1]
    for one, row in zip(drawn, wanted, strict=True):
        rows, single = task.flatten(one)
        assert single and rows.dtype == np.float32
        np.testing.assert_array_equal(rows, row[None])
    rows, single = task.flatten(batch_of(space, drawn))
    assert not single
    np.testing.assert_array_equal(rows, wanted)


@pytest.mark.parametrize("space", OBSERVED, ids=lambda space: type(space).__name__)
def test_spaces_survive_json(space: spaces.Space[Any]) -> None:
    box = spaces.Box(np.array([[-3.0, 0.1]]), np.array([[7.0, 0.3]]), dtype=np.float64)
    task = TaskSpaces(space, box, bound=2.0)
    again = TaskSpaces.from_json(json.loads(json.dumps(task.to_json(), allow_nan=False)))
    assert again.observation_space == space and again.action_space == box
    assert again.spec == task.spec
    action = np.array([[2.0, -2.0]], np.float32)
    np.testing.assert_array_equal(again.stretch(action), task.stretch(action))


def test_an_observation_of_another_shape_raises_with_its_place() -> None:
    task = TaskSpaces(NESTED, UNIT)
    good = NESTED.sample()
    for bad, word in [
        ({**good, "where": np.zeros(5)}, r"obs\['where'\] has shape \(5,\)"),
        ({k: v for k, v in good.items() if k != "gear"}, "lacks the part 'gear'"),
        ({**good, "gear": 9}, "outside of Discrete"),
        (np.zeros(3), "expected one with the parts"),
    ]:
        with pytest.raises(UserError, match=word):
            task.flatten(bad)
    with pytest.raises(UserError, match=r"expected \(4, 3\), or \(B, 4, 3\)"):
        TaskSpaces(OBSERVED[2], UNIT).flatten(np.zeros(12))


def test_actions_take_the_tasks_units_shape_and_dtype() -> None:
    low, high = np.full((2, 2), -3.0), np.full((2, 2), 7.0)
    task = TaskSpaces(UNIT, spaces.Box(low, high, dtype=np.float64), bound=2.0)
    assert task.spec.act_dim == 4
    sent = task.stretch(np.array([[-2, 0, 2, 1]], np.float32))
    assert sent.dtype == np.float64
    np.testing.assert_array_equal(sent, [[[-3, 2], [7, 4.5]]])


def test_scaled_actions_neither_overflow_nor_leave_the_box_by_rounding() -> None:
    most = np.finfo(np.float32).max
    wide = TaskSpaces(UNIT, spaces.Box(-most, most, (1,), np.float32))
    np.testing.assert_array_equal(wide.stretch(np.array([[1.0]], np.float32)), [[most]])
    draw = np.random.default_rng(0)
    low = draw.normal(0, 10, 2000).astype(np.float32)
    high = low + np.abs(draw.normal(0, 10, 2000)).astype(np.float32)
    task = TaskSpaces(UNIT, spaces.Box(low, high, dtype=np.float32))
    assert task._rounds_out  # or nothing is tested
    for edge in (-1.0, 1.0):
        sent = task.stretch(np.full((1, 2000), edge, np.float32))[0]
        assert ((sent >= low) & (sent <= high)).all()
    assert (task.stretch(np.full((1, 2000), 1.5, np.float32))[0] > high).mean() > 0.99


class OneArray(toys.Clock):
    """Writes every observation into the same array, as simulators do."""

    memory = np.zeros(3, np.float32)

    def observe(self) -> np.ndarray:
        self.memory[:] = super().observe()
        return self.memory


def test_the_last_observation_survives_a_reset_into_the_same_array() -> None:
    envs = VectorEnv(lambda: OneArray(length=2), [0], 1)
    envs.reset()
    zero = np.zeros((1, 1, 1), np.float32)
    assert [envs.step(zero).next_obs[0, 0, 1] for _ in range(2)] == [1, 2]


def test_observations_without_a_flat_form_raise() -> None:
    for space in (spaces.Text(4), spaces.Dict(a=spaces.Sequence(UNIT))):
        env: gym.Env[Any, Any] = toys.Echo(UNIT, space)
        with pytest.raises(UserError, match="expected Box, Discrete"):
            FlatWrapper(env, "mine")
