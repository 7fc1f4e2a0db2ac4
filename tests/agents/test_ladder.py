"""A weight that sets itself, on values whose soft policy is known, and inside NC-LQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.agents import slope as slopes
from langevinrl.agents.chain_policy import MEASURED_ROWS
from langevinrl.agents.ladder import SpreadLadder
from langevinrl.agents.nclql import NCLQL
from langevinrl.agents.slope import Slope
from langevinrl.errors import UserError
from langevinrl.samplers.langevin import Chain, draw, shorten
from langevinrl.types import Array, Batch, Spec

AXES = 3
Value = Callable[[Array], Array]


def hill(action: Array) -> Array:
    return -20 * jnp.square(action - 0.2).sum(axis=-1)


def ramp(action: Array) -> Array:
    return 3 * action.sum(axis=-1)


def settle(value: Value, spread: float, num_updates: int = 400) -> tuple[Slope, np.ndarray]:
    """What the running mean comes to on a value of one critic, and samples drawn then."""
    ladder = SpreadLadder(spread, 1.0, AXES, 5, 1, 1.0)

    def level_value(action: Array, level: Array | int) -> Array:
        del level
        return value(action)

    def chain(slope: Slope) -> Chain:
        return ladder.chain(slope, 1.0, "uniform", True, 1)

    def update(slope: Slope, key: Array) -> tuple[Slope, None]:
        end = draw(level_value, (64, AXES), chain(slope), key)
        return ladder.measure(slope, level_value, end, 4), None

    keys = jax.random.split(jax.random.key(0), num_updates)
    slope = jax.jit(lambda keys: jax.lax.scan(update, ladder.init(), keys)[0])(keys)
    end = jax.jit(lambda s, k: draw(level_value, (4_000, AXES), chain(s), k))(slope, keys[0])
    return slope, np.asarray(end)


@pytest.mark.parametrize("spread", [0.1, 0.2])
def test_a_hill_is_sampled_with_the_spread_asked_for(spread: float) -> None:
    slope, end = settle(hill, spread)
    np.testing.assert_allclose(end.std(axis=0), spread, rtol=0.12)
    np.testing.assert_allclose(end.mean(axis=0), 0.2, atol=0.02)
    # And w is the one whose law is that wide: w times the curvature is one over s squared.
    w = SpreadLadder(spread, 1.0, AXES, 5, 1, 1.0).weight(slope)
    assert float(w) * 40 * spread**2 == pytest.approx(1.0, rel=0.12)


def test_on_a_ramp_w_is_that_of_an_exponential_law_and_the_wall_is_reached() -> None:
    slope, end = settle(ramp, 0.1)
    w = SpreadLadder(0.1, 1.0, AXES, 5, 1, 1.0).weight(slope)
    # Somewhat less: slopes all alike are taken for the median of a hill's.
    assert 0.8 / 0.1 < float(w) * 3 < 1 / 0.1
    # Within the spread of the wall; closer than the law, for steps across it are clipped.
    assert 0.01 < float((1 - end).mean()) < 0.1
    assert 0.02 < float(end.std(axis=0).max()) < 0.1


@pytest.mark.parametrize("value", [hill, ramp])
def test_the_scale_of_the_rewards_changes_nothing(value: Value) -> None:
    once, tenfold = (settle(f, 0.1, 50)[1] for f in (value, lambda a: 10 * value(a)))
    np.testing.assert_allclose(once, tenfold, atol=1e-4)


SHARE = (1 - 2 / 36) ** 3  # of the mean that is the median, on a hill of four axes


def test_the_running_mean_starts_without_a_bias_and_w_at_zero() -> None:
    ladder = SpreadLadder(0.1, 1.0, 4, 5, 2, 1.0)
    start = ladder.init()
    assert float(ladder.weight(start)) == 0.0
    gradient = jnp.full((8, 4), 3.0).at[0].set(1e6)  # one state is at a cliff
    once = slopes.update(start, gradient)
    length = 6.0 / SHARE**0.5  # √(4 x 3²)
    assert float(once.length) == pytest.approx(length, rel=1e-5)
    assert float(ladder.weight(once)) == pytest.approx(2 / (0.1 * length), rel=1e-5)
    later = once
    for _ in range(3):
        later = slopes.update(later, 2 * gradient)
    assert length < float(later.length) < 2 * length


@pytest.mark.parametrize("axes", [1, 2, 6])
def test_of_a_hill_the_median_tells_the_mean(axes: int) -> None:
    gradient = 3.0 * jax.random.normal(jax.random.key(0), (100_000, axes))
    assert float(slopes.update(slopes.init(), gradient).length) == pytest.approx(
        3.0 * axes**0.5, rel=0.03
    )


def test_a_score_is_shortened_to_its_level_and_no_further() -> None:
    rows = shorten(jnp.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), jnp.asarray(1.0))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], rtol=1e-5)


SPEC = Spec(3, 2, act_bound=2.0)
AGENT = NCLQL(SPEC, hidden=(8, 8), num_levels=3, steps_per_level=1, spread=0.1)


def batch_of(rows: int = 16) -> Batch:
    rng = np.random.default_rng(0)
    obs, action, later = (jnp.asarray(rng.normal(size=(rows, n)), jnp.float32) for n in (3, 2, 3))
    reward = jnp.asarray(rng.normal(size=rows), jnp.float32)
    return Batch(obs, jnp.tanh(action), reward, jnp.ones(rows), later, jnp.arange(rows), {})


@pytest.mark.parametrize(("followed", "num"), [("both", 2), ("first", 1)])
def test_nclql_measures_the_critics_it_follows_where_some_chains_end(
    followed: Any, num: int
) -> None:
    agent = replace(AGENT, score_critics=followed)
    batch, update = batch_of(MEASURED_ROWS + 16), jax.jit(agent.update)
    state = update(agent.init(jax.random.key(0)), batch, jax.random.key(1)).state
    after, metrics, _ = update(state, batch, jax.random.key(2))
    end = agent.act(state, batch.next_obs, jax.random.split(jax.random.key(2), 3)[0], explore=True)

    def mean(action: Array) -> Array:
        q = agent.critic.apply(state.critic.params, batch.next_obs, action, 2)
        return q[:num].mean(0).sum()

    squares = jnp.square(jax.grad(mean)(end))[:MEASURED_ROWS].sum(-1)
    square = float(jnp.median(squares)) / (1 - 2 / 18) ** 3
    assert state.slope is not None and after.slope is not None
    assert float(after.slope.total) == pytest.approx(
        0.99 * float(state.slope.total) + 0.01 * square, rel=1e-4
    )
    w = 2**0.5 / (0.1 * 2.0 * float(after.slope.length))
    assert float(metrics["temperature/weight"]) == pytest.approx(w, rel=1e-4)
    assert float(metrics["temperature/slope"]) == pytest.approx(float(after.slope.length))
    assert float(agent.policy_weight(after)) == pytest.approx(0.2 * w, rel=1e-4)
    assert float(agent.chain(after).inverse_temperature) == pytest.approx(w / num, rel=1e-4)


def test_levels_go_from_the_box_to_the_spread_in_action_units() -> None:
    np.testing.assert_allclose(AGENT.sigmas, [2.0, 0.2 * 10**0.5, 0.2], rtol=1e-5)


def test_without_a_spread_the_state_is_what_it_always_was() -> None:
    plain = NCLQL(SPEC, hidden=(8, 8)).init(jax.random.key(0))
    assert jax.tree.structure(plain).num_leaves == jax.tree.structure(plain.critic).num_leaves


def test_an_evaluation_may_climb_without_noise() -> None:
    agent = NCLQL(SPEC, hidden=(8, 8), num_levels=3, spread=0.1, evaluation="climb")
    obs, key = jnp.ones((4, 3)), jax.random.key(1)
    state = agent.init(key)._replace(slope=Slope(jnp.asarray(2.0), jnp.asarray(1.0)))
    evaluated, explored = (agent.act(state, obs, key, explore=e) for e in (False, True))
    np.testing.assert_array_equal(evaluated, agent.refine(state, obs, key))
    assert not np.array_equal(evaluated, explored)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"spread": 1.0}, "spread is 1; expected between 0 and 1"),
        ({"spread": 0.0}, "spread is 0; expected"),
        ({"spread": 0.1, "step_ratio": 3.0}, "step_ratio is 3.0; expected more than 0, at most 2"),
    ],
)
def test_a_spread_that_cannot_be_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        NCLQL(SPEC, **fields)


def test_particles_sample_the_clean_level_at_w() -> None:
    """Their mean value is that of the law exp(wQ), had by weighing uniform actions."""
    agent = NCLQL(SPEC, hidden=(8, 8), num_levels=3, sampler="particles", inverse_temperature=20.0)
    state, obs, key = agent.init(jax.random.key(0)), jnp.ones((2_000, 3)), jax.random.key(1)
    act = jax.jit(lambda key: agent.act(state, obs, key, explore=True))
    action, path = act(key), jax.jit(lambda key: agent.trace(state, obs, key))(key)
    np.testing.assert_allclose(path[-1], action, atol=1e-5)
    grid = jax.random.uniform(key, (2_000, 2), minval=-2.0, maxval=2.0)
    drawn, flat = (
        agent.critic.apply(state.critic.params, obs, a, 2).mean(0) for a in (action, grid)
    )
    wanted = float((jax.nn.softmax(20.0 * flat) * flat).sum())
    assert flat.mean() + 0.03 < wanted < flat.max() - 0.03  # neither anywhere nor at the top
    assert float(drawn.mean()) == pytest.approx(wanted, abs=0.01)
    assert agent.policy_weight(state) == 20.0 * agent.reward_scale  # of a reward as it is paid
    assert agent.trace_scores(state, obs, path) is None
