"""Reward normalisation: sampled rewards divided by their size after warm-up."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest

from langevinrl.replay.buffer import Replay
from langevinrl.types import Spec, Transition

SPEC = Spec(obs_dim=2, act_dim=1)


def filled(rewards: np.ndarray) -> Replay:
    """Return a normalising buffer with rewards (S, steps)."""
    replay = Replay(SPEC, 100, range(len(rewards)), reward_norm=True)
    add(replay, rewards)
    return replay


def add(replay: Replay, rewards: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    for reward in rewards.T[..., None]:  # (S, 1)
        obs, action = (rng.normal(size=(*reward.shape, size)) for size in (2, 1))
        replay.add(Transition(obs, action, reward, np.ones_like(reward), obs + 1))


def some_rewards(num_seeds: int = 2) -> np.ndarray:
    return np.random.default_rng(1).normal(1.0, size=(num_seeds, 40))


@pytest.mark.parametrize("n_step", [1, 3])
def test_rewards_times_eight_give_identical_batches(n_step: int) -> None:
    for _ in range(3):
        batches = [
            filled(scale * some_rewards()).sample(16, n_step=n_step, gamma=0.9)
            for scale in (1.0, 8.0)
        ]
        jax.tree.map(np.testing.assert_array_equal, *batches)


def test_size_is_the_root_mean_square_of_nonzero_rewards_of_each_seed() -> None:
    replay = filled(np.array([[0.0, 3.0, 0.0, -4.0], [2.0, 0.0, 0.0, 0.0]]))
    assert np.isnan(replay.reward_size).all()  # before the first batch
    batch = replay.sample(50)
    np.testing.assert_allclose(replay.reward_size, [np.sqrt(12.5), 2.0])
    assert set(np.unique(batch.reward[1])) == {0.0, 1.0}
    np.testing.assert_allclose(np.abs(batch.reward[0]).max(), 4 / np.sqrt(12.5), rtol=1e-6)


def test_size_is_measured_once() -> None:
    replay = filled(some_rewards())
    replay.sample(4)
    before = replay.reward_size.copy()
    add(replay, 100 * some_rewards())
    replay.sample(4)
    np.testing.assert_array_equal(replay.reward_size, before)


def test_zero_rewards_stay_finite_until_a_reward_arrives() -> None:
    replay = filled(np.zeros((1, 5)))
    np.testing.assert_array_equal(replay.sample(8).reward, np.zeros((1, 8)))
    add(replay, np.array([[0.0, 6.0]]))
    assert replay.sample(100).reward.max() == 1.0


def test_checkpoint_keeps_the_size() -> None:
    replay = filled(np.stack([some_rewards(1)[0], np.zeros(40)]))
    replay.sample(4)
    metadata = json.loads(json.dumps(replay.metadata()))
    restored = filled(np.zeros((2, 0)))
    restored.restore({name: a.copy() for name, a in replay.arrays().items()}, metadata)
    np.testing.assert_array_equal(restored.reward_size, replay.reward_size)  # NaN of seed 1 too
    add(restored, np.full((2, 1), 50.0))
    add(replay, np.full((2, 1), 50.0))
    jax.tree.map(np.testing.assert_array_equal, restored.sample(8), replay.sample(8))
