"""One suite over the register: what every agent promises."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl import checkpoint
from langevinrl.agents import REGISTER
from langevinrl.types import Array, Batch, Spec

SPEC = Spec(4, 2, act_bound=2.0)
ROWS = 8


def make(name: str) -> Any:
    """Small, but with every part of the method at work."""
    fields = {f.name for f in REGISTER[name].__dataclass_fields__.values()}
    small = {
        "best_of": 3,
        "num_steps": 5,
        "flow_steps": 3,
        "num_noises": 6,
        "num_entropy_actions": 12,
        "num_ascent_steps": 3,
    }
    return REGISTER[name](SPEC, hidden=(16, 16), **{k: v for k, v in small.items() if k in fields})


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


@pytest.fixture(params=list(REGISTER))
def agent(request: pytest.FixtureRequest) -> Any:
    return make(request.param)


def test_actions_have_their_shape_and_evaluation_stays_in_the_box(agent: Any) -> None:
    state = agent.init(jax.random.key(0))
    act = jax.jit(agent.act, static_argnames="explore")
    for rows in (1, 5):
        obs = jax.random.normal(jax.random.key(1), (rows, 4))
        for explore in (True, False):
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
    assert hash(agent) == hash(make(next(n for n, k in REGISTER.items() if type(agent) is k)))
    state = agent.init(jax.random.key(0))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))


def test_same_key_same_update_and_jit_equals_eager(agent: Any) -> None:
    state, batch, key = agent.init(jax.random.key(0)), batch_for(agent), jax.random.key(1)
    compiled = jax.jit(agent.update)
    once, again = compiled(state, batch, key), compiled(state, batch, key)
    assert_close(once, again, rtol=0)
    eager = agent.update(state, batch, key)
    assert_close(eager.state, once.state, rtol=2e-3, atol=2e-5)
    other = compiled(state, batch, jax.random.key(2))
    leaves = zip(jax.tree.leaves(once.state), jax.tree.leaves(other.state), strict=True)
    assert any(not np.array_equal(a, b) for a, b in leaves)


def test_a_mapped_update_equals_one_at_a_time(agent: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 2)
    states = jax.jit(jax.vmap(agent.init))(keys)
    batches = jax.tree.map(lambda a, b: jnp.stack([a, b]), batch_for(agent, 0), batch_for(agent, 1))
    mapped = jax.jit(jax.vmap(agent.update))(states, batches, keys)
    for s in range(2):
        state, batch = jax.tree.map(lambda leaf: leaf[s], (states, batches))  # noqa: B023
        alone = jax.jit(agent.update)(state, batch, keys[s])
        mine = jax.tree.map(lambda leaf: leaf[s], mapped.state)  # noqa: B023
        assert_close(alone.state, mine, rtol=2e-3, atol=2e-5)


def test_fifty_updates_stay_finite(agent: Any) -> None:
    def many(state: Any, key: Array) -> Any:
        def once(state: Any, now: tuple[Batch, Array]) -> Any:
            state, metrics, _ = agent.update(state, *now)
            return state, metrics

        batches = [batch_for(agent, seed) for seed in range(5)]
        stacked = jax.tree.map(lambda *parts: jnp.stack([*parts] * 10), *batches)
        return jax.lax.scan(once, state, (stacked, jax.random.split(key, 50)))

    state, metrics = jax.jit(many)(agent.init(jax.random.key(0)), jax.random.key(1))
    for name, values in metrics.items():
        assert values.shape == (50,), name
        assert np.isfinite(values).all(), name
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))


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
    state = agent.init(jax.random.key(0))
    state = jax.jit(agent.update)(state, batch_for(agent), jax.random.key(1)).state
    saved = checkpoint.Saved({"state": checkpoint.name_leaves(state)}, {})
    checkpoint.save(tmp_path, 1, saved)
    arrays = checkpoint.load(tmp_path).arrays["state"]
    template = jax.eval_shape(agent.init, jax.random.key(0))
    assert_close(checkpoint.fill_leaves(template, arrays), state, rtol=0)
