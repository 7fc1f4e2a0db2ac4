"""n-step returns worked by hand; test_replay_shared.py compares them with a simple buffer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.errors import UserError
from langevinrl.losses import td_backup
from langevinrl.replay.buffer import Replay
from langevinrl.replay.n_step import discount_of
from langevinrl.runs.config import RunConfig
from langevinrl.types import Spec, Transition

SPEC = Spec(obs_dim=1, act_dim=1)


def ring_of(*rows: tuple[float, float, bool]) -> Replay:
    """Return a buffer of steps (reward, bootstrap, whether a new episode follows).

    The observation of a step is its number; the final observation of an episode is 100 more.
    """
    ring = Replay(SPEC, 4, (0,))
    for number, (reward, bootstrap, fresh) in enumerate(rows):
        obs, following = (np.full((1, 1, 1), n, np.float32) for n in (number, number + 1))
        numbers = (np.full((1, 1), n, np.float32) for n in (reward, bootstrap))
        ring.add(Transition(obs, obs, *numbers, following + 100 * fresh))
    return ring


def by_row(ring: Replay, n_step: int, gamma: float) -> list[tuple[float, float, float]]:
    """Return reward, bootstrap and next observation of every row."""
    batch = ring.sample(200, n_step=n_step, gamma=gamma)
    _, at = np.unique(batch.row[0], return_index=True)
    found = (batch.reward[0], batch.bootstrap[0], batch.next_obs[0, :, 0])
    return list(zip(*(column[at].tolist() for column in found), strict=True))


def test_returns_worked_by_hand() -> None:
    going = [(1.0, 1.0, False), (2.0, 1.0, False), (4.0, 1.0, False), (8.0, 1.0, False)]
    # The newest row has nothing after it, the one before it has one step.
    assert by_row(ring_of(*going), 3, 0.5) == [
        (1 + 1 + 1, 0.25, 3), (2 + 2 + 2, 0.25, 4), (4 + 4, 0.5, 4), (8, 1, 4),
    ]  # fmt: skip
    # Wrapped: row 0 is the newest, and row 1, the oldest, must not follow it.
    assert by_row(ring_of(*going, (16.0, 1.0, False)), 2, 0.5)[:2] == [(16, 1, 5), (2 + 2, 0.5, 3)]
    # Terminated: no reward after it, no bootstrap.  Truncated: no reward after it, but bootstrap.
    ended = [going[0], (2.0, 0.0, True), *going[2:]]
    assert by_row(ring_of(*ended), 3, 0.5)[:2] == [(1 + 1, 0, 102), (2, 0, 102)]
    timed_out = [going[0], (2.0, 1.0, True), *going[2:]]
    assert by_row(ring_of(*timed_out), 3, 0.5)[:2] == [(1 + 1, 0.5, 102), (2, 1, 102)]
    # A termination ends the sum also if the next episode starts with the same observation.
    same = [going[0], (2.0, 0.0, False), *going[2:]]
    assert by_row(ring_of(*same), 3, 0.5)[0] == (2, 0, 2)
    # With gamma 0 only the first reward counts.
    assert by_row(ring_of(*going), 3, 0.0)[:3] == [(1, 0, 3), (2, 0, 4), (4, 0, 4)]


def test_the_td_target_is_the_n_step_target() -> None:
    batch = ring_of(*[(r, 1.0, False) for r in (1.0, 2.0, 4.0, 8.0)])
    drawn = batch.sample(50, n_step=3, gamma=0.5)
    at = int(np.flatnonzero(drawn.row[0] == 0)[0])
    one = drawn._replace(reward=drawn.reward[0, at], bootstrap=drawn.bootstrap[0, at])
    target = td_backup(jnp.array([[10.0], [12.0]]), one, 0.5, 0.2)
    assert float(target[0]) == pytest.approx(0.2 * (1 + 0.5 * 2 + 0.25 * 4) + 0.5**3 * 10)


def tiny(**fields: Any) -> RunConfig:
    return RunConfig(
        "toys:golden", agent="lql", hyperparameters={"hidden": (4, 4), "num_steps": 2},
        iterations=6, num_envs=3, warmup=48, capacity=60, batch_size=16, **fields,
    )  # fmt: skip


def test_an_agent_without_gamma_is_refused_for_several_steps() -> None:
    stranger = SimpleNamespace()
    assert discount_of(stranger, 1) == 1.0
    with pytest.raises(
        UserError, match=r"n_step=2 discounts rewards by the agent's gamma, and Simple"
    ):
        discount_of(stranger, 2)


@pytest.mark.parametrize(
    ("n_step", "message"),
    [(0, "at least 1"), (1001, "at most 1000"), (2.0, "expected int"),
     (21, "capacity=60 is less than n_step=21 of 3 environments")],
)  # fmt: skip
def test_invalid_n_step_is_refused(n_step: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        tiny(n_step=n_step).resolved()
    assert tiny(n_step=20).resolved().n_step == 20
