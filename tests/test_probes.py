"""Both agents on tasks whose value is known: each isolates one silent fault."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probes
import pytest

from langevinrl.runs.config import RunConfig
from langevinrl.runs.train import Run

QUICK: dict[str, Any] = {
    "hidden": (24, 24), "learning_rate": 1e-2, "target_rate": 0.1, "gamma": 0.5,
    "reward_scale": 1.0,
}  # fmt: skip
AGENTS = ["lql", "nclql"]


def train(agent: str, env: Any, iterations: int = 250, **changes: Any) -> Run:
    config = RunConfig(
        "probe", agent=agent, iterations=iterations, warmup=200, batch_size=64, num_envs=4,
        capacity=2_000, hyperparameters=QUICK | changes,
    ).resolved()  # fmt: skip
    job = Run.of(config, env)
    job.lanes.reset()
    while job.iteration < iterations:
        job.advance()
    job.lanes.close()
    return job


def value(job: Run, obs: float, action: float = 0.0) -> float:
    """The critics' mean at the clean level."""
    agent: Any = job.agent
    params = jax.tree.map(lambda leaf: leaf[0], job.state.critic.params)
    level = (agent.clean,) if hasattr(agent, "clean") else ()
    q = agent.critic.apply(params, jnp.array([[obs]]), jnp.array([[action]]), *level)
    return float(q.mean())


@pytest.mark.parametrize("agent", AGENTS)
def test_constant_reward(agent: str) -> None:
    assert value(train(agent, probes.ConstantReward), 0.0) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_reward_scale_is_applied_once(agent: str) -> None:
    job = train(agent, probes.ConstantReward, reward_scale=0.2)
    assert value(job, 0.0) == pytest.approx(0.2, abs=0.02)
    assert float(job.replay.rings["reward"][0, 0]) == 1.0


@pytest.mark.parametrize("agent", AGENTS)
def test_value_of_an_observation(agent: str) -> None:
    job = train(agent, probes.ObservedReward)
    assert value(job, 1.0) == pytest.approx(1.0, abs=0.08)
    assert value(job, -1.0) == pytest.approx(-1.0, abs=0.08)


@pytest.mark.parametrize("agent", AGENTS)
def test_discounting(agent: str) -> None:
    job = train(agent, probes.LateReward)
    assert value(job, 1.0) == pytest.approx(1.0, abs=0.08)
    assert value(job, 0.0) == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_ending_stops_the_backup_and_a_time_out_does_not(agent: str) -> None:
    assert value(train(agent, probes.Ending), 0.0) == pytest.approx(1.0, abs=0.05)
    # 1 / (1 - gamma): what lies beyond the cut counts.
    assert value(train(agent, probes.TimeOut), 0.0) == pytest.approx(2.0, abs=0.15)


def draw_actions(job: Run) -> np.ndarray:
    state = jax.tree.map(lambda leaf: leaf[0], job.state)
    obs = jnp.zeros((500, 1))
    return np.asarray(job.agent.act(state, obs, jax.random.key(0), explore=False))[:, 0]


def test_nclql_finds_the_rewarded_action_and_lql_only_leans_to_it() -> None:
    reaching = draw_actions(train("nclql", probes.ActionReward, 400))
    leaning = draw_actions(train("lql", probes.ActionReward, 400))
    assert np.abs(reaching - 0.5).mean() < 0.12
    # Twenty steps of 0.025 reach half a unit: from the far side of the box LQL cannot arrive.
    assert 0.15 < np.abs(leaning - 0.5).mean() < 0.4
    assert leaning.min() < -0.2
