"""The sweep over w with a critic that knows the reward."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import pytest

from langevinrl.agents.lql import LQL, State
from langevinrl.learner import Learner
from langevinrl.studies.bandit.env import reward
from langevinrl.studies.bandit.settings import BanditConfig
from langevinrl.studies.bandit.sweep import best_w, sweep_direction, sweep_gradient
from langevinrl.types import Array, PyTree, Spec


class ExactCritic(NamedTuple):
    """Twin critics that return the reward."""

    num_members: int = 2

    def apply(self, params: PyTree, obs: Array, action: Array, level: Any = None) -> Array:
        del params, obs, level
        return jnp.stack([reward(action), reward(action)])


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> tuple[LQL, PyTree]:
    monkeypatch.setattr(LQL, "critic", ExactCritic())
    agent = LQL(Spec(1, 2, 2.0), num_steps=10, step_size=5e-4, start="normal")
    learner = Learner(jnp.zeros(1), jnp.zeros(1), (), jnp.zeros(1))
    return agent, State(learner)


def test_best_w_has_the_highest_mean_reward_over_seeds() -> None:
    rewards = {1.0: (0.2, 0.3), 400.0: (0.9, 0.8), 500.0: (0.95, 0.7)}
    rows = [{"w": w, "reward_mean": r} for w, pair in rewards.items() for r in pair]
    assert best_w(rows) == 400.0


def test_full_gradients_sample_the_exact_policy_of_their_w(known: tuple[LQL, PyTree]) -> None:
    config = BanditConfig(methods=("lql",), seeds=1, samples=2_000, sweep=(5.0,)).resolved()
    (row,) = sweep_gradient(*known, config, "lql")
    # 0.10 for exact samples of this number; the policy of 2 w is 0.45 away.
    assert row["total_variation"] < 0.2
    assert 3.5 < row["nearest_w"] < 7


def test_unit_scores_do_not_sample_the_exact_policy(known: tuple[LQL, PyTree]) -> None:
    config = BanditConfig(methods=("lql",), seeds=1, samples=500, sweep=(1.0, 300.0)).resolved()
    rows, arrays = sweep_direction(*known, config, "lql")
    assert [row["w"] for row in rows] == [1.0, 300.0]
    assert rows[0]["reward_mean"] < rows[1]["reward_mean"]
    assert rows[1]["total_variation"] > 0.5
    assert arrays["swept"].shape == (2, 500, 2) and arrays["page_chains"].shape == (2, 11, 300, 2)
