"""The replay buffer: storing, sampling, rewriting, memory."""

from __future__ import annotations

import numpy as np
import pytest

from langevinrl.errors import UserError
from langevinrl.replay import buffer as room
from langevinrl.replay.buffer import Replay
from langevinrl.types import Spec, Transition

SPEC = Spec(obs_dim=2, act_dim=1)


def step(number: int, num_envs: int = 2, num_seeds: int = 1) -> Transition:
    """Return the `number`th vector step, in which every value is the transition's number."""
    serial = number * num_envs + np.arange(num_envs, dtype=np.float32)
    lanes = serial[None] + 1000 * np.arange(num_seeds, dtype=np.float32)[:, None]
    wide = np.repeat(lanes[..., None], 2, axis=-1)
    return Transition(wide, -lanes[..., None], lanes, np.ones_like(lanes), wide + 0.5)


def filled(capacity: int, steps: int, seeds: tuple[int, ...] = (0,)) -> Replay:
    ring = Replay(SPEC, capacity, seeds, num_envs=2)
    for number in range(steps):
        ring.add(step(number, num_seeds=len(seeds)))
    return ring


def test_a_batch_has_whole_transitions_and_the_seed_axis_first() -> None:
    batch = filled(capacity=50, steps=10, seeds=(0, 1)).sample(7)
    assert batch.obs.shape == batch.next_obs.shape == (2, 7, 2)
    assert batch.action.shape == (2, 7, 1)
    assert batch.reward.shape == batch.bootstrap.shape == batch.row.shape == (2, 7)
    assert batch.row.dtype == np.int32 and batch.extra == {}
    np.testing.assert_array_equal(batch.obs[..., 0], batch.reward)
    np.testing.assert_array_equal(batch.next_obs[..., 1], batch.reward + 0.5)
    np.testing.assert_array_equal(batch.action[..., 0], -batch.reward)
    np.testing.assert_array_equal(batch.reward[0], batch.row[0])
    np.testing.assert_array_equal(batch.reward[1], batch.row[1] + 1000)  # a lane never mixes


def test_sampling_is_uniform_with_replacement() -> None:
    ring, draws, cells = filled(capacity=64, steps=40), 64_000, 64
    counts = np.bincount(ring.sample(draws).row[0], minlength=cells)
    expected = draws / cells
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert 32.3 < statistic < 103.4  # 0.1 % and 99.9 % of chi-square with 63 degrees
    assert len(np.unique(ring.sample(64).row)) < 64


def test_a_seed_samples_the_same_alone_or_with_others() -> None:
    among, alone = filled(50, 20, seeds=(7, 4)), filled(50, 20, seeds=(4,))
    for _ in range(3):
        many, one = among.sample(16), alone.sample(16)
        np.testing.assert_array_equal(many.row[1], one.row[0])
        assert (many.row[0] != many.row[1]).any()


def test_num_bytes_is_the_size_of_its_arrays() -> None:
    ring = Replay(SPEC, 1000, (0, 1), {"improved": "action"})
    assert ring.num_bytes == 4 * 2 * 1000 * (2 + 1 + 1 + 1 + 1 + 1)
    claimed = [ring.final_obs.place, *ring.rings.values()]
    assert ring.num_bytes == sum(array.nbytes for array in claimed)


def test_a_buffer_too_large_for_memory_is_refused_with_a_capacity_that_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "free_memory", lambda: 24_000_000)  # bytes; a transition takes 24
    with pytest.raises(UserError, match=r"capacity=800000 or fewer seeds") as caught:
        Replay(SPEC, 10_000_000, (0,))
    assert "0.2 GB" in str(caught.value)
    Replay(SPEC, 800_000, (0,))


def test_a_step_of_another_number_of_environments_is_refused() -> None:
    with pytest.raises(ValueError, match="1 environments, not 2"):
        filled(capacity=8, steps=1).add(step(1, num_envs=1))
