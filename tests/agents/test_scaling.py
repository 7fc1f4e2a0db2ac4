"""Running statistics against NumPy's, and agents that scale by them against batches so scaled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parts import SPEC, make_batch

from langevinrl.agents import scaling
from langevinrl.agents.lql import LQL
from langevinrl.agents.nclql import NCLQL
from langevinrl.agents.sac import SAC
from langevinrl.agents.scaling import (
    MEASURED_BATCHES,
    MIN_DEVIATION,
    MIN_RATE,
    ObsStats,
    RewardStats,
    Scales,
)
from langevinrl.types import Batch

HIDDEN: dict[str, Any] = {"hidden": (8, 8)}
AGENTS: list[Any] = [
    NCLQL(SPEC, num_levels=3, spread=0.2, obs_norm=True, **HIDDEN),
    LQL(SPEC, num_steps=3, obs_norm=True, **HIDDEN),
    SAC(SPEC, best_of=2, obs_norm=True, **HIDDEN),
]
each = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)


def both(on: bool) -> dict[str, bool]:
    return {"obs_norm": on, "reward_norm": on}


def far_batch() -> Batch:
    """Observations whose features have means and deviations of their own."""
    batch = make_batch(16)
    centre, scale = jnp.array([[5.0, -3.0, 0.0]]), jnp.array([[10.0, 0.1, 1.0]])
    return batch._replace(obs=centre + scale * batch.obs, next_obs=centre + scale * batch.next_obs)


def seen(rows: np.ndarray) -> ObsStats:
    """Statistics after observations (updates, B, O)."""
    scales = scaling.init(True, False, rows.shape[-1])
    for obs in rows:
        scales = scaling.update(scales, make_batch(4)._replace(obs=jnp.asarray(obs, jnp.float32)))
    assert scales.obs is not None
    return scales.obs


def seen_rewards(rows: np.ndarray) -> RewardStats:
    """Statistics after rewards (updates, B)."""
    scales = scaling.init(False, True, 3)
    for reward in rows:
        scales = scaling.update(
            scales, make_batch(4)._replace(reward=jnp.asarray(reward, jnp.float32))
        )
    assert scales.reward is not None
    return scales.reward


def test_statistics_are_those_of_all_rows_seen() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 8, 3)) * [1.0, 10.0, 0.1] + [0.0, 100.0, -1.0]
    rows += rng.normal(size=(20, 1, 3))  # batches' own means differ
    stats, flat = seen(rows), rows.reshape(-1, 3)
    assert int(stats.updates) == 20
    np.testing.assert_allclose(stats.mean, flat.mean(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(stats.deviation, flat.std(axis=0), rtol=1e-4)
    scaled = scaling.scale_obs(Scales(stats), jnp.asarray(flat, jnp.float32))
    np.testing.assert_allclose(scaled.mean(axis=0), np.zeros(3), atol=1e-4)
    np.testing.assert_allclose(scaled.std(axis=0), np.ones(3), rtol=1e-4)


def test_the_size_of_rewards_is_that_of_all_seen() -> None:
    rows = np.random.default_rng(0).normal(5.0, 3.0, size=(20, 8))
    stats = seen_rewards(rows)
    assert int(stats.batches) == 20
    np.testing.assert_allclose(stats.size, np.sqrt(np.square(rows).mean()), rtol=1e-5)
    scaled = scaling.scale_batch(
        Scales(reward=stats), make_batch(4)._replace(reward=jnp.asarray(rows[0]))
    )
    np.testing.assert_allclose(scaled.reward, rows[0] / stats.size, rtol=1e-6)


def test_the_size_of_rewards_is_kept_once_measured_and_waits_for_some() -> None:
    rows = np.concatenate([np.zeros((7, 2)), np.ones((MEASURED_BATCHES, 2)), np.full((5, 2), 9.0)])
    assert int(seen_rewards(rows[:7]).batches) == 0
    stats = seen_rewards(rows)
    assert float(stats.size) == 1.0
    assert int(stats.batches) == MEASURED_BATCHES


def test_rewards_that_were_all_zero_are_left_as_they_are() -> None:
    stats, batch = seen_rewards(np.zeros((3, 4))), make_batch(4)
    np.testing.assert_array_equal(
        scaling.scale_batch(Scales(reward=stats), batch).reward, batch.reward
    )


def test_before_the_first_update_a_batch_is_as_it_is() -> None:
    batch = make_batch(4)
    scaled = scaling.scale_batch(scaling.init(True, True, 3), batch)
    jax.tree.map(np.testing.assert_array_equal, scaled, batch)


def test_statistics_of_observations_go_on_following() -> None:
    old = ObsStats(jnp.zeros(3), jnp.ones(3), jnp.asarray(10**8))
    now = scaling.update(Scales(old), make_batch(4)._replace(obs=jnp.ones((4, 3))))
    assert now.obs is not None
    np.testing.assert_allclose(now.obs.mean, MIN_RATE, rtol=1e-4)


def test_a_feature_that_never_varied_is_magnified_by_no_more_than_a_hundred() -> None:
    stats = seen(np.full((3, 4, 2), 7.0))
    np.testing.assert_allclose(stats.deviation, MIN_DEVIATION)
    moved = scaling.scale_obs(Scales(stats), jnp.array([[7.0, 8.0]]))
    np.testing.assert_allclose(moved, [[0.0, 100.0]], rtol=1e-5)


def test_without_statistics_all_is_handed_on() -> None:
    batch = make_batch(4)
    assert scaling.init(False, False, 3) == scaling.update(Scales(), batch) == Scales()
    assert scaling.scale_obs(Scales(), batch.obs) is batch.obs
    assert all(a is b for a, b in zip(scaling.scale_batch(Scales(), batch), batch, strict=True))


@each
def test_an_update_is_the_plain_one_on_scaled_batches(agent: Any) -> None:
    plain, batch, key = replace(agent, obs_norm=False), far_batch(), jax.random.key(3)
    # The second of two updates: a slope, where one is measured, is that of the first.
    state = agent.update(agent.init(jax.random.key(0)), batch, key).state
    rows = np.concatenate([batch.obs, batch.obs + 1])
    later = batch._replace(obs=batch.obs + 1)
    by_hand = later._replace(
        obs=jnp.asarray((later.obs - rows.mean(axis=0)[None]) / rows.std(axis=0)[None]),
        next_obs=jnp.asarray((later.next_obs - rows.mean(axis=0)[None]) / rows.std(axis=0)[None]),
    )
    got, metrics, _ = agent.update(state, later, key)
    want, wanted, _ = plain.update(state._replace(scales=Scales()), by_hand, key)
    close = {"rtol": 2e-3, "atol": 2e-5}
    assert want.scales == Scales()
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, **close), got._replace(scales=Scales()), want
    )
    for name in wanted:
        np.testing.assert_allclose(metrics[name], wanted[name], err_msg=name, **close)


@each
def test_acting_scales_alike_and_changes_nothing(agent: Any) -> None:
    plain, batch, key = replace(agent, obs_norm=False), far_batch(), jax.random.key(3)
    state = agent.update(agent.init(jax.random.key(0)), batch, key).state
    before = jax.tree.map(np.array, state)
    bare, scaled = state._replace(scales=Scales()), scaling.scale_obs(state.scales, batch.obs)
    for explore in (True, False):
        np.testing.assert_array_equal(
            agent.act(state, batch.obs, key, explore=explore),
            plain.act(bare, scaled, key, explore=explore),
        )
    refined = agent.refine(state, batch.obs, key)
    np.testing.assert_array_equal(refined, plain.refine(bare, scaled, key))
    path = agent.trace(state, batch.obs, key)
    np.testing.assert_array_equal(path, plain.trace(bare, scaled, key))
    scores = agent.trace_scores(state, batch.obs, path)
    if scores is not None:
        np.testing.assert_array_equal(scores, plain.trace_scores(bare, scaled, path))
    jax.tree.map(np.testing.assert_array_equal, state, before)


@each
def test_a_state_has_no_more_leaves_unless_asked(agent: Any) -> None:
    with_stats, without = (
        len(jax.tree.leaves(jax.eval_shape(replace(agent, **both(on)).init, jax.random.key(0))))
        for on in (True, False)
    )
    assert with_stats == without + 5


@each
def test_rewards_of_another_size_change_nothing_but_the_weight_of_one(agent: Any) -> None:
    """By powers of two, which change no digit: the same weights, bit for bit, and actions."""
    scaled, batch = replace(agent, reward_norm=True), make_batch(16)
    key, factor = jax.random.key(3), 8.0
    states = [scaled.init(jax.random.key(0))] * 2
    for step in range(3):
        rows = batch._replace(reward=batch.reward + step)
        states = [
            scaled.update(state, rows._replace(reward=rows.reward * size), key).state
            for state, size in zip(states, (1.0, factor), strict=True)
        ]
    small, large = states
    assert float(large.scales.reward.size) == factor * float(small.scales.reward.size)
    bare = [state._replace(scales=Scales()) for state in states]
    jax.tree.map(np.testing.assert_array_equal, *bare)
    if not isinstance(agent, LQL):  # whose w is as it is set
        weights = [float(scaled.policy_weight(state)) for state in states]
        np.testing.assert_allclose(weights[0], factor * weights[1], rtol=1e-6)


@each
def test_an_update_is_the_plain_one_on_scaled_rewards(agent: Any) -> None:
    plain = replace(agent, obs_norm=False)
    scaled, batch, key = replace(plain, reward_norm=True), make_batch(16), jax.random.key(3)
    state = scaled.init(jax.random.key(0))
    size = np.sqrt(np.square(batch.reward).mean())
    by_hand = batch._replace(reward=batch.reward / size)
    got = scaled.update(state, batch, key).state._replace(scales=Scales())
    want = plain.update(state._replace(scales=Scales()), by_hand, key).state
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), got, want)
