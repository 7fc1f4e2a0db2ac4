"""Every agent on a task with known values; each room reveals one kind of bug."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import probes
import pytest

from langevinrl.registry import METHODS
from langevinrl.runs.config import RunConfig
from langevinrl.runs.loop import Run

GAMMA, SCALE = 0.6, 2.0  # a scale used twice gives 4, a backup past a termination gives 5
TOLERANCE = 0.25  # the bugs it should find change a value by at least 0.5
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


def train(agent: str, env: Any, iterations: int, **changes: Any) -> Run:
    """Return a finished run with these hyperparameters."""
    config = RunConfig(
        "probe", agent=agent, iterations=iterations, warmup=800, batch_size=64, num_envs=8,
        capacity=4_000, updates_per_iteration=5, reward_norm=False, hyperparameters=changes,
    ).resolved()  # fmt: skip
    with Run(config, env=env) as run:
        run.until(iterations)
    return run


def first(run: Any) -> Any:
    """Return the state of the only seed."""
    return jax.tree.map(lambda leaf: leaf[0], run.state)


def value(run: Any, obs: np.ndarray, action: float = 0.0) -> float:
    """Return the mean of the critics, at the clean level if there are levels."""
    level = (run.agent.clean,) if hasattr(run.agent, "clean") else ()
    rows = jnp.asarray(obs)[None], jnp.full((1, 1), action)
    critic = run.agent.critic if hasattr(run.agent, "critic") else run.agent.critics.network
    q = critic.apply(first(run).critic.params, *rows, *level)
    mean = q[..., 0] if q.ndim == 3 else q  # DACER's critics also return a standard deviation
    return float(mean.mean())


def draw_actions(run: Any, obs: np.ndarray | None = None, explore: bool = False) -> np.ndarray:
    """Return many actions for one observation, 0 by default."""
    rows = jnp.tile(jnp.zeros(1) if obs is None else jnp.asarray(obs), (500, 1))
    act = jax.jit(run.agent.act, static_argnames="explore")
    return np.asarray(act(first(run), rows, jax.random.key(0), explore=explore))[:, 0]


# All tests of an agent share one training run, so they share a process.
@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=pytest.mark.xdist_group(n)) for n in METHODS]
)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def run(name: str) -> Any:
    return train(name, probes.Rooms, 100, **QUICK | CASES[name].settings)


@pytest.fixture(scope="module")
def bonus(name: str, run: Any) -> float:
    """Return SAC's entropy bonus for a uniform policy: α times the entropy of the box."""
    return run.agent.initial_alpha * math.log(2) if name == "sac" else 0.0


def expect(expected: float) -> Any:
    return pytest.approx(expected, abs=TOLERANCE)


def test_a_reward_is_scaled_once_and_stored_unscaled(run: Any) -> None:
    assert value(run, probes.room(probes.LATE)) == expect(SCALE)
    assert value(run, probes.room(probes.LOSS)) == expect(-SCALE)
    assert float(run.replay.rings["reward"].max()) == 1.0


def test_discounting(run: Any, bonus: float) -> None:
    assert value(run, probes.room(probes.EARLY)) == expect(GAMMA * (SCALE + bonus))


def test_termination_stops_the_backup_and_truncation_does_not(run: Any, bonus: float) -> None:
    assert value(run, probes.room(probes.LATE)) == expect(SCALE)
    # The backup continues in the truncated room.
    beyond = (SCALE + GAMMA * bonus) / (1 - GAMMA)
    assert value(run, probes.room(probes.TIMED)) == expect(beyond)


def test_finds_the_rewarded_action(name: str, run: Any) -> None:
    # One candidate, not the best of several: the policy itself must have learned.
    alone = SimpleNamespace(agent=dataclasses.replace(run.agent, best_of=1), state=run.state)
    # In evaluation QSM uses the same noise for every row; its exploration adds none here.
    actions = draw_actions(alone, probes.room(probes.CHOICE), explore=name == "qsm")
    missed = float(np.abs(actions - 0.5).mean())
    assert missed < CASES[name].miss
    if name == "lql":  # it cannot arrive from the far side of the box, but from the middle
        assert missed > 0.15
        assert actions.min() < -0.2
        alone.agent = dataclasses.replace(alone.agent, start="zero")
        middle = draw_actions(alone, probes.room(probes.CHOICE))
        assert float(np.abs(middle - 0.5).mean()) < 0.15
