"""Replay against a simple buffer that stores every next observation, and damaged checkpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_replay import PlainReplay
from safetensors.numpy import load, save

from langevinrl.errors import UserError
from langevinrl.replay.buffer import Replay
from langevinrl.types import Spec, Transition

SPEC = Spec(obs_dim=2, act_dim=1)
# Few values, so that a new episode sometimes starts with the observation the last one ended with.
VALUES = np.array([0.0, -0.0, 1.0, np.nan], np.float32)


@dataclass
class Story:
    """The same random events applied to both buffers."""

    capacity: int
    num_envs: int
    num_seeds: int
    columns: dict[str, str]
    seed: int
    now: np.ndarray = field(init=False)  # (S, E, O)  what the environments show

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        seeds = range(self.num_seeds)
        self.plain = PlainReplay(SPEC, self.capacity, seeds, self.columns, self.num_envs)
        self.shared = self.empty()
        self.now = self.observe()

    def empty(self) -> Replay:
        seeds = range(self.num_seeds)
        return Replay(SPEC, self.capacity, seeds, self.columns, num_envs=self.num_envs)

    def observe(self) -> np.ndarray:
        return self.random.choice(VALUES, (self.num_seeds, self.num_envs, SPEC.obs_dim))

    def step(self, breaks: list[bool]) -> None:
        """Step all environments; where `breaks`, an episode ends, half of them by a time limit."""
        shape = (self.num_seeds, self.num_envs)
        ended = np.resize(breaks, shape)
        action, reward = self.random.normal(size=(2, *shape)).astype(np.float32)
        bootstrap = np.where(ended & (reward > 0), 0, 1).astype(np.float32)
        next_obs = self.observe()
        transition = Transition(self.now, action[..., None], reward, bootstrap, next_obs)
        self.plain.add(transition)
        self.shared.add(transition)
        self.now = np.where(ended[..., None], self.observe(), next_obs)
        next_obs[...] = 7.0  # its owner may reuse the memory

    def draw(self, number: int, n_step: int, gamma: float) -> None:
        """Sample from both, and write to the sampled rows as DIPO does."""
        if not self.plain.size:
            return
        one, other = (
            replay.sample(number, n_step=n_step, gamma=gamma)
            for replay in (self.plain, self.shared)
        )
        same_bytes(one._asdict() | one.extra, other._asdict() | other.extra)
        values = self.random.normal(size=one.action.shape).astype(np.float32)
        for replay in (self.plain, self.shared):
            replay.rewrite(one.row, {name: values for name in self.columns})

    def reload(self) -> None:
        """Save and load."""
        saved = save(self.arrays())
        metadata = json.loads(json.dumps(self.shared.metadata()))
        self.shared = self.empty()
        self.shared.restore(load(saved), metadata)
        assert save(self.arrays()) == saved
        assert json.loads(json.dumps(self.shared.metadata())) == metadata

    def arrays(self) -> dict[str, np.ndarray]:
        return {k: np.asarray(a, order="C") for k, a in self.shared.arrays().items()}

    def restart(self) -> None:
        """Start new episodes without notice, as after a resume that could not be exact."""
        self.now = self.observe()

    def compare(self) -> None:
        """Compare every row, byte by byte."""
        plain = self.plain.arrays()
        rows = np.tile(np.arange(self.plain.size), (self.num_seeds, 1))
        shared = {name: array for name, array in self.shared.arrays().items() if name in plain}
        same_bytes(plain, shared | {"next_obs": self.shared.next_obs(rows)})
        final = self.shared.final_obs
        assert final.num_used - len(final.free) == np.count_nonzero(final.place)


def same_bytes(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name in one.keys() - {"extra"}:
        a, b = one[name], other[name]
        assert (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes()), name


EVENTS = st.one_of(
    st.tuples(st.just("step"), st.lists(st.booleans(), min_size=1, max_size=6)),
    st.tuples(st.just("step"), st.just([False])),
    st.tuples(
        st.just("draw"),
        st.integers(1, 8),
        st.integers(1, 7),
        st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    ),
    st.tuples(st.just("reload")),
    st.tuples(st.just("restart")),
)


@settings(max_examples=150, deadline=None)
@given(
    num_envs=st.integers(1, 4),
    room=st.integers(0, 12),
    num_seeds=st.integers(1, 3),
    columns=st.sampled_from([{}, {"improved": "action"}, {"first": "obs"}]),
    seed=st.integers(0, 99),
    events=st.lists(EVENTS, min_size=1, max_size=30),
)
def test_it_equals_the_simple_buffer(
    num_envs: int,
    room: int,
    num_seeds: int,
    columns: dict[str, str],
    seed: int,
    events: list[tuple[Any, ...]],
) -> None:
    story = Story(num_envs + room, num_envs, num_seeds, columns, seed)
    for name, *arguments in events:
        getattr(story, name)(*arguments)
        story.compare()


def lane(length: int | None, steps: int, capacity: int = 40) -> Replay:
    """Return a buffer of three environments whose episodes all end after `length` steps."""
    ring = Replay(SPEC, capacity, (0, 1), num_envs=3)
    serial = np.arange(6, dtype=np.float32).reshape(2, 3, 1)
    now = np.repeat(serial, SPEC.obs_dim, axis=-1)
    for step in range(1, steps + 1):
        next_obs, one = now + 10, np.ones((2, 3), np.float32)
        ring.add(Transition(now, one[..., None], one, one, next_obs))
        now = next_obs + 1000 if length and step % length == 0 else next_obs
    return ring


@pytest.mark.parametrize(("length", "most"), [(None, 0), (5, 2 * 3 * 3), (1, 2 * 40)])
def test_an_episode_end_takes_one_observation_whose_place_is_reused(
    length: int | None, most: int
) -> None:
    ring = lane(length, steps=200)  # fifteen times round
    assert ring.final_obs.num_used <= most
    assert ring.arrays()["final_obs"].shape[0] <= most


def test_restoring_empties_the_table_of_arrays() -> None:
    ring = lane(5, steps=50)
    arrays = {name: array.copy() for name, array in ring.arrays().items()}
    for array in arrays.values():
        array.flags.writeable = False  # as from a mapped file
    other = Replay(SPEC, 40, (0, 1), num_envs=3)
    other.restore(arrays, ring.metadata())
    assert arrays == {}
    other.add(
        Transition(*(np.ones((2, 3, *size), np.float32) for size in ((2,), (1,), (), (), (2,))))
    )
    assert other.size == 40


@pytest.mark.parametrize(
    "change",
    [
        {"size": 41}, {"size": -3}, {"size": 12.0}, {"size": True}, {"size": None},
        {"position": 40}, {"position": -1}, {"size": 12, "position": 3},
        {"size": 13, "position": 13}, {"capacity": 50}, {"num_envs": 2},
    ],
    ids=str,
)  # fmt: skip
def test_restoring_other_sizes_is_refused(change: dict[str, Any]) -> None:
    ring = lane(5, steps=50)
    with pytest.raises(UserError, match="does not fit this run"):
        Replay(SPEC, 40, (0, 1), num_envs=3).restore(ring.arrays(), ring.metadata() | change)


def test_restoring_another_observation_size_is_refused() -> None:
    ring = lane(5, steps=50)
    with pytest.raises(UserError, match="does not fit this run: obs differs"):
        Replay(Spec(3, 1), 40, (0, 1), num_envs=3).restore(ring.arrays(), ring.metadata())


@pytest.mark.parametrize(
    "rows", [[[0, 40]], [[2, 0]], [[0, -1]], [[0, 5], [0, 5]], [[1, 0], [0, 0]]], ids=str
)
def test_final_observations_of_impossible_rows_are_refused(rows: list[list[int]]) -> None:
    ring = lane(None, steps=50)
    final = {
        "final_row": np.array(rows, np.int32),
        "final_obs": np.zeros((len(rows), 2), np.float32),
    }
    with pytest.raises(UserError, match="final_obs differs"):
        Replay(SPEC, 40, (0, 1), num_envs=3).restore(ring.arrays() | final, ring.metadata())


@pytest.mark.parametrize(
    "change",
    [
        {"generators": []}, {"generators": None}, {"generators": [{}, {}]},
        {"generators": [{"bit_generator": "MT19937"}] * 2}, {"reward_size": [1.0]},
        {"reward_size": None}, {"reward_size": ["one", 1.0]},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_metadata_is_refused(change: dict[str, Any]) -> None:
    ring = lane(None, steps=50)
    with pytest.raises(UserError, match="invalid metadata"):
        Replay(SPEC, 40, (0, 1), num_envs=3).restore(ring.arrays(), ring.metadata() | change)


def test_fewer_rows_than_environments_are_refused() -> None:
    with pytest.raises(UserError, match="capacity=2 is less than 3 environments"):
        Replay(SPEC, 2, (0,), num_envs=3)
