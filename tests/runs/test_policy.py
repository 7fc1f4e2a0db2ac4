"""A policy's calls: one program for many batch sizes, one copy of the weights, all shapes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest

from langevinrl.envs.spaces import TaskSpaces
from langevinrl.errors import UserError
from langevinrl.registry import METHODS
from langevinrl.runs.evaluate import require_mode
from langevinrl.runs.policy import Policy, padded_size
from langevinrl.types import Spec

BOX = gym.spaces.Box(
    np.array([[-3.0, 0.0], [1.0, -9.0]], np.float32), np.array([[7.0, 1.0], [2.0, 9.0]], np.float32)
)
DICT = gym.spaces.Dict(
    {"place": gym.spaces.Box(-1, 1, (2, 3)), "speed": gym.spaces.Box(-9, 9, (1,), np.float64)}
)


def make_policy(agent: str = "nclql", **fields: Any) -> Policy:
    spaces = TaskSpaces(DICT, BOX)
    made = METHODS[agent].load()(spaces.spec, hidden=(8, 8), **fields)
    state = jax.vmap(made.init)(jax.random.split(jax.random.key(0), 2))
    return Policy(made, state, spaces, seed=0)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return make_policy(num_levels=3, embedding_size=4, inverse_temperature=10.0, normalise=False)


def batch(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    place = rng.uniform(-1, 1, (size, 2, 3)).astype(np.float32)
    return {"place": place, "speed": rng.uniform(-9, 9, (size, 1))}


def test_batches_are_filled_to_a_power_of_two() -> None:
    sizes = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 16, 1000: 1024}
    assert {size: padded_size(size) for size in sizes} == sizes


def test_dicts_and_shapes_go_in_and_come_out_as_the_environment_has_them(policy: Policy) -> None:
    many = policy.act(batch(5))
    assert many.shape == (5, 2, 2) and many.dtype == BOX.dtype
    assert all(BOX.contains(action) for action in many)
    one = policy.act({name: values[0] for name, values in batch(5).items()})
    assert one.shape == (2, 2)
    np.testing.assert_allclose(one, many[0], atol=1e-4)


def test_one_program_serves_all_sizes_up_to_a_power_of_two(policy: Policy) -> None:
    full = policy.act(batch(8))
    compiled = policy._compiled("keyed")
    before = compiled._cache_size()
    for size in (5, 6, 7):
        np.testing.assert_allclose(policy.act(batch(8), "keyed"), full, atol=1e-6)
        np.testing.assert_allclose(policy.act(batch(size)), policy.act(batch(size)), atol=0)
    assert compiled._cache_size() == before


def test_weights_are_taken_apart_once(policy: Policy) -> None:
    policy.act(batch(1), seed_index=1)
    first = policy._state_of(1)
    policy.act(batch(2), seed_index=1)
    assert policy._state_of(1) is first


@pytest.mark.parametrize("agent", METHODS)
def test_who_acts_without_noise(agent: str) -> None:
    made = METHODS[agent].load()(Spec(3, 2), hidden=(8, 8))
    if agent in ("nclql", "lql", "sac", "mfp"):
        assert require_mode(made, "noise-free") == "noise-free"
    else:
        with pytest.raises(UserError, match=r"no noise-free.*nclql, lql, sac, mfp.*mode=keyed"):
            require_mode(made, "noise-free")


def test_without_noise_only_the_start_is_left_to_chance() -> None:
    """From zero there is no chance at all; with noise the same observation has many actions."""
    still = make_policy("lql", num_steps=5, start="zero", normalise=False)
    obs = {name: values[0] for name, values in batch(1).items()}
    twice = {name: np.stack([values, values]) for name, values in obs.items()}
    free = still.act(twice, "noise-free")
    np.testing.assert_array_equal(free[0], free[1])
    drawn = still.act(twice, "sampled")
    assert (drawn[0] != drawn[1]).all()
