"""n-step returns out of replay: against episodes kept as lists, and values worked by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langevinrl.errors import UserError
from langevinrl.losses import td_backup
from langevinrl.replay.buffer import Replay
from langevinrl.replay.n_step import discount_of
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run
from langevinrl.types import Spec, Transition

SPEC = Spec(obs_dim=1, act_dim=1)


@dataclass
class Step:
    """What one environment did at one step."""

    reward: float
    bootstrap: float
    next_obs: float
    cut: bool  # nothing of this episode follows it


@dataclass
class World:
    """Environments whose whole past is kept in lists, beside a ring that forgets."""

    capacity: int
    num_envs: int
    num_seeds: int
    seed: int
    past: list[list[list[Step]]] = field(init=False)  # by seed and environment
    serial: float = 0.0  # no observation is ever shown twice

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.past = [[[] for _ in range(self.num_envs)] for _ in range(self.num_seeds)]
        self.ring, self.twin = self.empty(), self.empty()
        self.now = self.observe()

    def empty(self) -> Replay:
        columns = {"improved": "action"}
        return Replay(SPEC, self.capacity, range(self.num_seeds), columns, num_envs=self.num_envs)

    def observe(self) -> np.ndarray:
        shape = (self.num_seeds, self.num_envs, 1)
        self.serial += np.prod(shape)
        return (self.serial + np.arange(np.prod(shape)).reshape(shape)).astype(np.float32)

    def step(self, chance: float) -> None:
        """Step all; with that chance each ends, half of them by a time-out."""
        shape = (self.num_seeds, self.num_envs)
        ended, timed_out = self.random.random((2, *shape)) < [[[chance]], [[0.5]]]
        reward = self.random.normal(size=shape).astype(np.float32)
        bootstrap = np.where(ended & ~timed_out, 0, 1).astype(np.float32)
        next_obs = self.observe()
        seen = Transition(self.now, -self.now, reward, bootstrap, next_obs)
        self.ring.add(seen)
        self.twin.add(seen)
        for s, e in np.ndindex(shape):
            numbers = (float(reward[s, e]), float(bootstrap[s, e]), float(next_obs[s, e, 0]))
            self.past[s][e].append(Step(*numbers, bool(ended[s, e])))
        self.now = np.where(ended[..., None], self.observe(), next_obs)

    def restart(self) -> None:
        """All begin afresh without a word, as after a resume that could not be exact."""
        self.now = self.observe()
        for steps in (steps for own in self.past for steps in own if steps):
            steps[-1].cut = True

    def reload(self) -> None:
        arrays = {name: array.copy() for name, array in self.ring.arrays().items()}
        metadata = json.loads(json.dumps(self.ring.metadata()))
        self.ring = self.empty()
        self.ring.restore(arrays, metadata)

    def expected(self, s: int, row: int, n_step: int, gamma: float) -> tuple[float, float, float]:
        """Reward, bootstrap and next observation of a row, by its environment's list."""
        written = len(self.past[s][0]) * self.num_envs
        serial = max(i for i in range(written) if i % self.capacity == row)
        first, env = divmod(serial, self.num_envs)
        total, discount = 0.0, 1.0
        for step in self.past[s][env][first : first + n_step]:
            total += discount * step.reward
            last, reached = step, discount
            if step.cut:
                break
            discount *= gamma
        return total, reached * last.bootstrap, last.next_obs

    def compare(self, n_step: int, gamma: float, number: int = 24) -> None:
        one, many = self.twin.sample(number), self.ring.sample(number, n_step=n_step, gamma=gamma)
        for name in ("obs", "action", "row"):
            np.testing.assert_array_equal(getattr(one, name), getattr(many, name))
        np.testing.assert_array_equal(one.extra["improved"], many.extra["improved"])
        for (s, b), row in np.ndenumerate(one.row):
            reward, bootstrap, next_obs = self.expected(s, int(row), n_step, gamma)
            assert many.reward[s, b] == pytest.approx(reward, rel=1e-5, abs=1e-6)
            assert many.bootstrap[s, b] == pytest.approx(bootstrap, rel=1e-5)
            assert many.next_obs[s, b, 0] == next_obs
        assert many.reward.dtype == many.bootstrap.dtype == many.next_obs.dtype == np.float32


@settings(max_examples=60, deadline=None)
@given(
    num_envs=st.integers(1, 4),
    room=st.integers(0, 30),
    num_seeds=st.integers(1, 2),
    n_step=st.integers(1, 7),
    gamma=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    chance=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 999),
)
def test_it_is_what_lists_of_episodes_give(
    num_envs: int, room: int, num_seeds: int, n_step: int, gamma: float, chance: float, seed: int
) -> None:
    world = World(num_envs + room, num_envs, num_seeds, seed)
    for number in range(40):  # up to forty times round
        world.step(chance)
        if number % 11 == 5:
            world.restart()
        if number % 13 == 7:
            world.reload()
        if number % 3 == 0:
            world.compare(n_step, gamma)


def ring_of(*rows: tuple[float, float, bool]) -> Replay:
    """One environment: reward, bootstrap, and whether a fresh episode follows, of each step.

    The observation of a step is its number; what a step led to before a fresh episode, 100 more.
    """
    ring = Replay(SPEC, 4, (0,))
    for number, (reward, bootstrap, fresh) in enumerate(rows):
        obs, following = (np.full((1, 1, 1), n, np.float32) for n in (number, number + 1))
        numbers = (np.full((1, 1), n, np.float32) for n in (reward, bootstrap))
        ring.add(Transition(obs, obs, *numbers, following + 100 * fresh))
    return ring


def by_row(ring: Replay, n_step: int, gamma: float) -> list[tuple[float, float, float]]:
    """Reward, bootstrap and next observation of every row."""
    batch = ring.sample(200, n_step=n_step, gamma=gamma)
    _, at = np.unique(batch.row[0], return_index=True)
    found = (batch.reward[0], batch.bootstrap[0], batch.next_obs[0, :, 0])
    return list(zip(*(column[at].tolist() for column in found), strict=True))


def test_worked_by_hand() -> None:
    going = [(1.0, 1.0, False), (2.0, 1.0, False), (4.0, 1.0, False), (8.0, 1.0, False)]
    # The newest stands alone, the one before it has one to follow.
    assert by_row(ring_of(*going), 3, 0.5) == [
        (1 + 1 + 1, 0.25, 3), (2 + 2 + 2, 0.25, 4), (4 + 4, 0.5, 4), (8, 1, 4),
    ]  # fmt: skip
    # Wrapped: row 0 is the newest and row 1 the oldest, which must not follow it.
    assert by_row(ring_of(*going, (16.0, 1.0, False)), 2, 0.5)[:2] == [(16, 1, 5), (2 + 2, 0.5, 3)]
    # Ended: its reward counts and nothing after it.  Timed out: so too, but the value does count.
    ended = [going[0], (2.0, 0.0, True), *going[2:]]
    assert by_row(ring_of(*ended), 3, 0.5)[:2] == [(1 + 1, 0, 102), (2, 0, 102)]
    timed_out = [going[0], (2.0, 1.0, True), *going[2:]]
    assert by_row(ring_of(*timed_out), 3, 0.5)[:2] == [(1 + 1, 0.5, 102), (2, 1, 102)]
    # An end is one also where the next episode begins with the very observation it ended with.
    same = [going[0], (2.0, 0.0, False), *going[2:]]
    assert by_row(ring_of(*same), 3, 0.5)[0] == (2, 0, 2)
    # Without a future the rewards after the first count nothing.
    assert by_row(ring_of(*going), 3, 0.0)[:3] == [(1, 0, 3), (2, 0, 4), (4, 0, 4)]


def test_the_target_of_an_agent_is_the_n_step_one() -> None:
    batch = ring_of(*[(r, 1.0, False) for r in (1.0, 2.0, 4.0, 8.0)])
    drawn = batch.sample(50, n_step=3, gamma=0.5)
    at = int(np.flatnonzero(drawn.row[0] == 0)[0])
    one = drawn._replace(reward=drawn.reward[0, at], bootstrap=drawn.bootstrap[0, at])
    target = td_backup(jnp.array([[10.0], [12.0]]), one, 0.5, 0.2)
    assert float(target[0]) == pytest.approx(0.2 * (1 + 0.5 * 2 + 0.25 * 4) + 0.5**3 * 10)


def test_more_steps_than_the_ring_holds_end_at_the_newest() -> None:
    rows = by_row(ring_of(*[(1.0, 1.0, False)] * 9), 1000, 1.0)  # the newest is row 0
    assert rows == [(1, 1, 9), (4, 1, 9), (3, 1, 9), (2, 1, 9)]


def tiny(**fields: Any) -> RunConfig:
    return RunConfig(
        "toys:golden", agent="lql", hyperparameters={"hidden": (4, 4), "num_steps": 2},
        iterations=6, num_envs=3, warmup=48, capacity=60, batch_size=16, **fields,
    )  # fmt: skip


def test_a_run_draws_by_the_gamma_its_agent_has_now() -> None:
    asked: list[dict[str, Any]] = []
    with Run(tiny(n_step=3)) as run:
        sample = run.replay.sample
        run.replay.sample = lambda size, **how: asked.append(how) or sample(size, **how)  # type: ignore[method-assign,func-returns-value]  # watched
        run.until(1)
        run.change_agent(gamma=0.5)
        run.until(2)
    assert asked == [{"n_step": 3, "gamma": 0.99}, {"n_step": 3, "gamma": 0.5}]


def test_an_agent_without_a_discount_is_refused_only_where_one_is_needed() -> None:
    stranger = SimpleNamespace()
    assert discount_of(stranger, 1) == 1.0
    with pytest.raises(UserError, match=r"n_step=2 sums rewards by the agent's gamma, and Simple"):
        discount_of(stranger, 2)


@pytest.mark.parametrize(
    ("n_step", "said"),
    [(0, "at least 1"), (1001, "at most 1000"), (2.0, "expected int"),
     (21, "capacity=60 is less than n_step=21 of 3 environments")],
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused(n_step: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        tiny(n_step=n_step).resolved()
    assert tiny(n_step=20).resolved().n_step == 20
