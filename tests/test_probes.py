"""Every agent on a task with known values; each room reveals one kind of bug."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import probes
import pytest

from langevinrl.agents.qsm import QSM
from langevinrl.envs.vector import VectorEnv
from langevinrl.registry import METHODS
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run
from langevinrl.types import Array, Batch, PyTree, Spec

GAMMA, SCALE = 0.6, 2.0  # a scale used twice gives 4, a backup past a termination gives 5
TOLERANCE = 0.25  # the bugs it should find change a value by at least 0.5
NUM_UPDATES, BATCH_SIZE = 300, 64
QUICK = {"hidden": (24, 24), "gamma": GAMMA, "reward_scale": SCALE, "target_rate": 0.1}
LANGEVIN = {"learning_rate": 2e-2}
ACTOR = {"critic_learning_rate": 2e-2, "actor_learning_rate": 1e-2}
DIFFUSION = ACTOR | {"num_steps": 5, "delay": 1, "best_of": 4}
# Cools α from 5 to about 1 in fifty updates instead of fifty thousand.
COOLING = {"temperature_learning_rate": 3e-2, "temperature_delay": 1}


class Case(NamedTuple):
    """Settings that make an agent small and fast, and the precision of its policy."""

    settings: dict[str, Any]
    miss: float  # mean distance of single draws from 0.5; of uniform ones it is 0.625


CASES = {
    "nclql": Case(LANGEVIN, 0.15),
    "nclql-auto": Case({"learning_rate": 1e-2}, 0.2),
    # Twenty steps of 0.025 move by half a unit: uniform starts cannot all reach the action.
    "lql": Case(LANGEVIN | {"start": "uniform"}, 0.4),
    # A fixed temperature, so that the entropy bonus is known.
    "sac": Case(ACTOR | {"initial_alpha": 0.5, "temperature_learning_rate": 0.0}, 0.15),
    # Its chain samples exp(Q): a standard deviation of 0.25 around the best action.
    "qsm": Case(ACTOR | {"best_of": 4}, 0.32),
    "dipo": Case(ACTOR | {"num_steps": 5, "num_ascent_steps": 5, "actor_delay": 1}, 0.2),
    # It learns only where Q is above 1; the best action is worth 2.  It also imitates uniform
    # actions, and ten for each of its own would have a sixth of all weight.
    "qvpo": Case(DIFFUSION | {"num_uniform": 2}, 0.25),
    # The policy must not reach the edge of the box, where its gradient is zero, before the critics
    # have learned: slower, with less added noise.
    "dacer": Case(
        DIFFUSION
        | {"actor_learning_rate": 1e-3, "initial_alpha": 0.3, "best_of": 1}
        | {"num_steps": 3, "num_entropy_actions": 8},
        0.15,
    ),
    # It imitates its best candidates, which must not collapse before the critics have learned.
    "mfp": Case(ACTOR | {"actor_learning_rate": 2e-3, "flow_steps": 2, "best_of": 8}, 0.25),
    # It samples exp(Q) at the first temperature; cooled, exp(5Q).  Noises outside of the box are
    # clipped to its edge, which keeps some of the weight.
    "sdac": Case(DIFFUSION | COOLING | {"num_noises": 16}, 0.3),
    # It uses each gradient of its critics twice, which a high rate makes unstable.
    "dpmd": Case(DIFFUSION | COOLING | {"critic_learning_rate": 5e-3}, 0.25),
}


@cache
def transitions() -> Batch:
    """Return 800 transitions of random actions."""
    envs = VectorEnv(probes.Rooms, [0], 8)
    envs.reset()
    draw = np.random.default_rng(0)
    steps = [envs.step(draw.uniform(-1, 1, (1, 8, 1)).astype(np.float32)) for _ in range(100)]
    columns = [np.concatenate(column, axis=1)[0] for column in zip(*steps, strict=True)]
    return Batch(*columns, row=np.arange(800, dtype=np.int32), extra={})


class Trained(NamedTuple):
    """An agent after its updates: its values of the rooms, and actions in the room CHOICE."""

    name: str
    agent: Any
    state: PyTree
    values: np.ndarray  # (5,) at the action 0
    actions: np.ndarray  # (500,)


def learn(agent: Any, key: Array) -> PyTree:
    """Return the state after updates on batches of `transitions`."""
    data = jax.tree.map(jnp.asarray, transitions())

    def once(carry: Any, key: Array) -> Any:
        state, extra = carry
        rows = jax.random.randint(key, (BATCH_SIZE,), 0, len(data.row))
        batch = jax.tree.map(lambda column: column[rows], data._replace(extra=extra))
        state, _, rewrite = agent.update(state, batch, key)
        if rewrite is not None:
            extra = {name: extra[name].at[rows].set(rewrite[name]) for name in extra}
        return (state, extra), None

    first = agent.init(key), dict.fromkeys(agent.columns, data.action)
    return jax.lax.scan(once, first, jax.random.split(key, NUM_UPDATES))[0][0]


def value_rooms(agent: Any, state: PyTree) -> Array:
    """Return the mean of the critics in each room, at the clean level if there are any."""
    level = (agent.clean,) if hasattr(agent, "clean") else ()
    critic = getattr(agent, "critic", None) or agent.critics.network
    q = critic.apply(state.critic.params, jnp.eye(5), jnp.zeros((5, 1)), *level)
    mean = q[..., 0] if q.ndim == 3 else q  # DACER's critics also return a standard deviation
    return mean.mean(axis=0)


def draw_actions(agent: Any, state: PyTree) -> Array:
    """Return many actions in the room CHOICE."""
    rows = jnp.tile(jnp.asarray(probes.room(probes.CHOICE)), (500, 1))
    # One candidate, not the best of several: the policy itself must have learned.
    alone = dataclasses.replace(agent, best_of=1)
    # In evaluation QSM uses the same noise for every row; its exploration adds none here.
    explore = isinstance(agent, QSM)
    return alone.act(state, rows, jax.random.key(0), explore=explore)[:, 0]


# All tests of an agent share one training run, so they share a process.
@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=pytest.mark.xdist_group(n)) for n in METHODS]
)
def trained(request: pytest.FixtureRequest) -> Trained:
    name = request.param
    agent = METHODS[name].load()(Spec(5, 1), **QUICK | CASES[name].settings)

    @jax.jit  # all in one program, since compiling takes most of the time
    def run(key: Array) -> tuple[PyTree, Array, Array]:
        state = learn(agent, key)
        return state, value_rooms(agent, state), draw_actions(agent, state)

    state, values, actions = run(jax.random.key(0))
    return Trained(name, agent, state, np.asarray(values), np.asarray(actions))


def expected_values(bonus: float = 0.0) -> Any:
    """Return the values of the rooms in which the action has no effect; approximately equal."""
    values = {
        probes.LOSS: -SCALE,  # the reward is scaled once
        probes.LATE: SCALE,  # a termination stops the backup
        probes.EARLY: GAMMA * (SCALE + bonus),  # discounted once
        # A truncation does not stop the backup, which continues in the truncated room.
        probes.TIMED: (SCALE + GAMMA * bonus) / (1 - GAMMA),
    }
    return pytest.approx([values[room] for room in sorted(values)], abs=TOLERANCE)


def test_values_of_rooms(trained: Trained) -> None:
    # SAC's entropy bonus for a uniform policy: α times the entropy of the box.
    bonus = trained.agent.initial_alpha * math.log(2) if trained.name == "sac" else 0.0
    assert trained.values[: probes.CHOICE] == expected_values(bonus)


def test_the_training_loop_learns_the_same_values_and_stores_rewards_unscaled() -> None:
    config = RunConfig(
        "probe", agent="lql", iterations=60, warmup=800, batch_size=BATCH_SIZE, num_envs=8,
        updates_per_iteration=5, capacity=4_000, reward_norm=False,
        hyperparameters=QUICK | CASES["lql"].settings,
    ).resolved()  # fmt: skip
    with Run(config, env=probes.Rooms) as run:
        run.until(60)
    state = jax.tree.map(lambda leaf: leaf[0], run.state)
    assert np.asarray(value_rooms(run.agent, state))[: probes.CHOICE] == expected_values()
    assert run.replay.rings["reward"].max() == 1.0


def test_finds_the_rewarded_action(trained: Trained) -> None:
    missed = np.abs(trained.actions - 0.5).mean()
    assert missed < CASES[trained.name].miss
    if trained.name == "lql":  # it cannot arrive from the far side of the box, but from the middle
        assert missed > 0.15 and trained.actions.min() < -0.2
        middle = jax.jit(draw_actions, static_argnums=0)(
            dataclasses.replace(trained.agent, start="zero"), trained.state
        )
        assert np.abs(middle - 0.5).mean() < 0.15
