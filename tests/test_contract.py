"""One suite over the register: what every agent promises."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.registry import METHODS
from langevinrl.storage import checkpoint
from langevinrl.storage.folder import RunFolder
from langevinrl.types import Array, Batch, Spec

SPEC = Spec(4, 2, act_bound=2.0)
ROWS = 8


def make(name: str) -> Any:
    """Small, but with every part of the method at work."""
    fields = {f.name for f in METHODS[name].load().__dataclass_fields__.values()}
    small = {
        "best_of": 3,
        "num_steps": 5,
        "flow_steps": 3,
        "num_noises": 6,
        "num_entropy_actions": 12,
        "num_ascent_steps": 3,
    }
    chosen = {k: v for k, v in small.items() if k in fields}
    return METHODS[name].load()(SPEC, hidden=(16, 16), **chosen)


def batch_for(agent: Any, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    action = 2 * jnp.tanh(normal(ROWS, 2))
    ends = jnp.asarray(rng.integers(2, size=ROWS), jnp.float32)
    rows = jnp.arange(ROWS, dtype=jnp.int32)
    extra = dict.fromkeys(agent.columns, action)
    return Batch(normal(ROWS, 4), action, normal(ROWS), ends, normal(ROWS, 4), rows, extra)


def assert_close(a: Any, b: Any, **tolerance: float) -> None:
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **tolerance), a, b)


# One process for all tests of an agent, which share what is compiled.
@pytest.fixture(params=[pytest.param(n, marks=pytest.mark.xdist_group(n)) for n in METHODS])
def agent(request: pytest.FixtureRequest) -> Any:
    return make(request.param)


@cache
def compiled_update(agent: Any) -> Any:
    return jax.jit(agent.update)


@cache
def start(agent: Any) -> Any:
    return jax.jit(agent.init)(jax.random.key(0))


def test_actions_have_their_shape_and_evaluation_stays_in_the_box(agent: Any) -> None:
    state = start(agent)
    act = jax.jit(agent.act, static_argnames="explore")
    for rows, modes in {1: (False,), 5: (True, False)}.items():
        obs = jax.random.normal(jax.random.key(1), (rows, 4))
        for explore in modes:
            action = act(state, obs, jax.random.key(2), explore=explore)
            assert action.shape == (rows, 2)
            assert action.dtype == jnp.float32
            assert np.isfinite(action).all()
        assert float(jnp.abs(action).max()) <= 2.0
    same = act(state, obs, jax.random.key(2), explore=False)
    np.testing.assert_array_equal(action, same)
    drawn = [act(state, obs, jax.random.key(k), explore=True) for k in (2, 3)]
    assert not np.array_equal(*drawn)


def test_an_agent_is_hashable_and_its_state_is_arrays(agent: Any) -> None:
    assert hash(agent) == hash(make(next(n for n, m in METHODS.items() if type(agent) is m.load())))
    state = start(agent)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))


def test_same_key_same_update_and_another_key_another(agent: Any) -> None:
    state, batch, key = start(agent), batch_for(agent), jax.random.key(1)
    compiled = compiled_update(agent)
    once, again = compiled(state, batch, key), compiled(state, batch, key)
    assert_close(once, again, rtol=0)
    other = compiled(state, batch, jax.random.key(2))
    leaves = zip(jax.tree.leaves(once.state), jax.tree.leaves(other.state), strict=True)
    assert any(not np.array_equal(a, b) for a, b in leaves)


def test_jit_equals_eager(agent: Any) -> None:
    state, batch, key = start(agent), batch_for(agent), jax.random.key(1)
    compiled, eager = compiled_update(agent)(state, batch, key), agent.update(state, batch, key)
    assert_close(eager.state, compiled.state, rtol=2e-3, atol=2e-5)


def test_a_mapped_update_equals_one_at_a_time(agent: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 2)
    states = jax.jit(jax.vmap(agent.init))(keys)
    batches = jax.tree.map(lambda a, b: jnp.stack([a, b]), batch_for(agent, 0), batch_for(agent, 1))
    mapped = jax.jit(jax.vmap(agent.update))(states, batches, keys)
    for s in range(2):
        state, batch = jax.tree.map(lambda leaf: leaf[s], (states, batches))  # noqa: B023
        alone = compiled_update(agent)(state, batch, keys[s])
        mine = jax.tree.map(lambda leaf: leaf[s], mapped.state)  # noqa: B023
        assert_close(alone.state, mine, rtol=2e-3, atol=2e-5)


def test_fifty_updates_stay_finite(agent: Any) -> None:
    state, batches = start(agent), [batch_for(agent, seed) for seed in range(5)]
    for i, key in enumerate(jax.random.split(jax.random.key(1), 50)):
        state, metrics, _ = compiled_update(agent)(state, batches[i % 5], key)
        for name, value in metrics.items():
            assert value.shape == () and np.isfinite(value), (i, name)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))


def test_a_trace_ends_in_the_action(agent: Any) -> None:
    """Without choice among candidates and noise on top, the chain's end is what is done."""
    alone = dataclasses.replace(agent, best_of=1)
    obs, key = jax.random.normal(jax.random.key(1), (5, 4)), jax.random.key(2)
    state = start(agent)
    path = jax.jit(alone.trace)(state, obs, key)
    assert path.ndim == 3 and path.shape[1:] == (5, 2) and len(path) > 1
    ends = [alone.act(state, obs, key, explore=explore) for explore in (True, False)]
    # QSM and SAC evaluate otherwise than they sample; SDAC, DPMD and DACER add noise to explore.
    assert any(np.allclose(path[-1], end, atol=1e-5) for end in ends)
    begun = jnp.full((5, 2), 0.25)
    np.testing.assert_array_equal(jax.jit(alone.trace)(state, obs, key, begun)[0], begun)


def test_rewrites_are_the_columns_asked_for(agent: Any) -> None:
    batch = batch_for(agent)
    state = jax.eval_shape(agent.init, jax.random.key(0))
    update = jax.eval_shape(agent.update, state, batch, jax.random.key(1))
    if not agent.columns:
        assert update.rewrite is None
    else:
        assert {k: v.shape for k, v in update.rewrite.items()} == {
            name: getattr(batch, source).shape for name, source in agent.columns.items()
        }


def test_a_state_survives_files(agent: Any, tmp_path: Any) -> None:
    state = compiled_update(agent)(start(agent), batch_for(agent), jax.random.key(1)).state
    saved = checkpoint.CheckpointData({"state": checkpoint.name_leaves(state)}, {})
    checkpoint.save(RunFolder(tmp_path), 1, saved)
    arrays = checkpoint.load(RunFolder(tmp_path)).arrays["state"]
    template = jax.eval_shape(agent.init, jax.random.key(0))
    assert_close(checkpoint.fill_leaves(template, arrays), state, rtol=0)
