"""Running statistics against NumPy's, and agents that scale by them against batches so scaled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parts import SPEC, make_batch

from langevinrl.agents import observations
from langevinrl.agents.lql import LQL
from langevinrl.agents.nclql import NCLQL
from langevinrl.agents.observations import MIN_DEVIATION, MIN_RATE, ObsStats
from langevinrl.agents.sac import SAC
from langevinrl.types import Batch

HIDDEN: dict[str, Any] = {"hidden": (8, 8)}
AGENTS: list[Any] = [
    NCLQL(SPEC, num_levels=3, spread=0.2, obs_norm=True, **HIDDEN),
    LQL(SPEC, num_steps=3, obs_norm=True, **HIDDEN),
    SAC(SPEC, best_of=2, obs_norm=True, **HIDDEN),
]
each = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)


def far_batch() -> Batch:
    """Observations whose features have means and deviations of their own."""
    batch = make_batch(16)
    centre, scale = jnp.array([[5.0, -3.0, 0.0]]), jnp.array([[10.0, 0.1, 1.0]])
    return batch._replace(obs=centre + scale * batch.obs, next_obs=centre + scale * batch.next_obs)


def seen(rows: np.ndarray) -> ObsStats:
    """Statistics after rows (updates, B, O)."""
    stats = observations.init(True, rows.shape[-1])
    for batch in rows:
        stats = observations.update(stats, jnp.asarray(batch, jnp.float32))
    assert stats is not None
    return stats


def test_statistics_are_those_of_all_rows_seen() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 8, 3)) * [1.0, 10.0, 0.1] + [0.0, 100.0, -1.0]
    rows += rng.normal(size=(20, 1, 3))  # batches' own means differ
    stats, flat = seen(rows), rows.reshape(-1, 3)
    assert int(stats.updates) == 20
    np.testing.assert_allclose(stats.mean, flat.mean(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(stats.deviation, flat.std(axis=0), rtol=1e-4)
    scaled = observations.scale(stats, jnp.asarray(flat, jnp.float32))
    np.testing.assert_allclose(scaled.mean(axis=0), np.zeros(3), atol=1e-4)
    np.testing.assert_allclose(scaled.std(axis=0), np.ones(3), rtol=1e-4)


def test_before_the_first_update_observations_are_as_they_are() -> None:
    obs = make_batch(4).obs
    np.testing.assert_array_equal(observations.scale(observations.init(True, 3), obs), obs)


def test_statistics_go_on_following() -> None:
    old = ObsStats(jnp.zeros(3), jnp.ones(3), jnp.asarray(10**8))
    now = observations.update(old, jnp.ones((4, 3)))
    assert now is not None
    np.testing.assert_allclose(now.mean, MIN_RATE, rtol=1e-4)


def test_a_feature_that_never_varied_is_magnified_by_no_more_than_a_hundred() -> None:
    stats = seen(np.full((3, 4, 2), 7.0))
    np.testing.assert_allclose(stats.deviation, MIN_DEVIATION)
    moved = observations.scale(stats, jnp.array([[7.0, 8.0]]))
    np.testing.assert_allclose(moved, [[0.0, 100.0]], rtol=1e-5)


def test_without_statistics_all_is_handed_on() -> None:
    batch = make_batch(4)
    assert observations.init(False, 3) is None
    assert observations.update(None, batch.obs) is None
    assert observations.scale(None, batch.obs) is batch.obs
    assert all(a is b for a, b in zip(observations.scale_batch(None, batch), batch, strict=True))


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
    want, wanted, _ = plain.update(state._replace(obs_stats=None), by_hand, key)
    close = {"rtol": 2e-3, "atol": 2e-5}
    assert want.obs_stats is None
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, **close), got._replace(obs_stats=None), want
    )
    for name in wanted:
        np.testing.assert_allclose(metrics[name], wanted[name], err_msg=name, **close)


@each
def test_acting_scales_alike_and_changes_nothing(agent: Any) -> None:
    plain, batch, key = replace(agent, obs_norm=False), far_batch(), jax.random.key(3)
    state = agent.update(agent.init(jax.random.key(0)), batch, key).state
    before = jax.tree.map(np.array, state)
    bare, scaled = state._replace(obs_stats=None), observations.scale(state.obs_stats, batch.obs)
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
        len(jax.tree.leaves(jax.eval_shape(replace(agent, obs_norm=on).init, jax.random.key(0))))
        for on in (True, False)
    )
    assert with_stats == without + 3
