"""The contract of an agent, checked for every registered method."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.agents import Refining
from langevinrl.registry import METHODS
from langevinrl.storage import checkpoint
from langevinrl.storage.folder import RunFolder
from langevinrl.types import Array, Batch, Spec

SPEC = Spec(4, 2, act_bound=2.0)
ROWS = 8
# Small, but with every part of each method in use. Smooth: unit gradients amplify rounding.
SMALL: dict[str, Any] = {
    "hidden": (16, 16), "best_of": 3, "num_levels": 3, "num_steps": 5, "flow_steps": 3,
    "num_noises": 6, "num_entropy_actions": 12, "num_ascent_steps": 3, "temperature_delay": 10,
    "inverse_temperature": 10.0, "normalise": False,
}  # fmt: skip


@cache
def make(name: str) -> Any:
    kind = METHODS[name].load()
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(SPEC, **{field: value for field, value in SMALL.items() if field in known})


# One process for all tests of an agent, which share compiled functions.
@pytest.fixture(params=[pytest.param(n, marks=pytest.mark.xdist_group(n)) for n in METHODS])
def agent(request: pytest.FixtureRequest) -> Any:
    return make(request.param)


@cache
def compiled(agent: Any, name: str) -> Any:
    static = "explore" if name in ("policy", "act") else None
    return jax.jit(getattr(agent, name), static_argnames=static)


@cache
def trained(agent: Any) -> Any:
    """Return a state after three updates."""
    state = compiled(agent, "init")(jax.random.key(0))
    for seed in range(3):
        key = jax.random.key(seed)
        state = compiled(agent, "update")(state, batch_for(agent, seed), key).state
    return state


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


def test_noise_is_standard_normal_or_uniform_on_the_box_or_zero(agent: Any) -> None:
    for leaf in jax.tree.leaves(jax.jit(agent.noise, static_argnums=1)(jax.random.key(0), 3_000)):
        x = np.asarray(leaf)
        assert len(x) == 3_000 and x.dtype == np.float32
        moments = [x.mean(), np.abs(x).mean(), np.square(x).mean()]
        uniform = np.abs(x).max() <= 2.0 and np.allclose(moments, [0, 1, 4 / 3], atol=0.05)
        normal = np.allclose(moments, [0, (2 / np.pi) ** 0.5, 1], atol=0.05)
        assert not x.any() or ((uniform or normal) and len(np.unique(x)) > 0.99 * x.size)


@pytest.mark.parametrize("explore", [True, False])
def test_policy_is_deterministic_and_its_rows_are_independent(agent: Any, explore: bool) -> None:
    state, obs, policy = trained(agent), batch_for(agent).obs, compiled(agent, "policy")
    noise, other = (agent.noise(jax.random.key(seed), ROWS) for seed in (1, 2))
    action = policy(state, obs, noise, explore=explore)
    assert action.shape == (ROWS, 2) and action.dtype == jnp.float32
    np.testing.assert_array_equal(action, policy(state, obs, noise, explore=explore))
    mixed = jax.tree.map(lambda mine, its: mine.at[:3].set(its[:3]), noise, other)
    changed = policy(state, obs.at[:3].add(1.0), mixed, explore=explore)
    np.testing.assert_array_equal(changed[3:], action[3:])
    assert (changed[:3] != action[:3]).any(axis=1).all()
    turned = jax.tree.map(lambda leaf: leaf[::-1], (obs, noise))
    reordered = policy(state, *turned, explore=explore)
    np.testing.assert_allclose(reordered, action[::-1], atol=1e-5)
    assert explore or float(jnp.abs(action).max()) <= 2.0


def test_act_is_the_policy_of_fresh_noise(agent: Any) -> None:
    state, obs, key = trained(agent), batch_for(agent).obs, jax.random.key(1)
    action = compiled(agent, "act")(state, obs, key, explore=True)
    expected = compiled(agent, "policy")(state, obs, agent.noise(key, ROWS), explore=True)
    np.testing.assert_allclose(action, expected, atol=1e-5)


def test_trace_ends_in_the_action(agent: Any) -> None:
    """A single chain without exploration noise ends in the action."""
    alone, state, obs = dataclasses.replace(agent, best_of=1), trained(agent), batch_for(agent).obs

    @jax.jit
    def sample(noise: Any) -> tuple[Array, ...]:
        actions = [alone.policy(state, obs, noise, explore=explore) for explore in (True, False)]
        return alone.trace(state, obs, noise), *actions

    path, *actions = sample(alone.noise(jax.random.key(2), ROWS))
    assert path.ndim == 3 and path.shape[1:] == (ROWS, 2) and len(path) > 1
    # Some methods evaluate without noise; others add noise to explore.
    assert any(np.allclose(path[-1], action, atol=1e-5) for action in actions)


def test_refine_uses_only_the_start_of_the_noise(agent: Any) -> None:
    if isinstance(agent, Refining):
        state, obs, refine = trained(agent), batch_for(agent).obs, compiled(agent, "refine")
        noise = agent.noise(jax.random.key(2), ROWS)
        other = noise._replace(steps=noise.steps + 1) if hasattr(noise, "steps") else noise
        action = refine(state, obs, noise)
        assert action.shape == (ROWS, 2) and float(jnp.abs(action).max()) <= 2.0
        np.testing.assert_array_equal(action, refine(state, obs, other))


def test_update_depends_on_its_key_alone(agent: Any) -> None:
    state, batch, update = trained(agent), batch_for(agent), compiled(agent, "update")
    once, again, other = (update(state, batch, jax.random.key(seed)) for seed in (1, 1, 2))
    assert_close(once, again, rtol=0)
    leaves = zip(jax.tree.leaves(once.state), jax.tree.leaves(other.state), strict=True)
    assert any(not np.array_equal(a, b) for a, b in leaves)
    columns = {name: getattr(batch, source).shape for name, source in agent.columns.items()}
    assert {name: column.shape for name, column in (once.rewrite or {}).items()} == columns


def test_mapped_update_equals_single_updates(agent: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 2)
    states = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), trained(agent))
    batches = jax.tree.map(lambda a, b: jnp.stack([a, b]), batch_for(agent, 0), batch_for(agent, 1))
    mapped = jax.jit(jax.vmap(agent.update))(states, batches, keys).state
    for seed, key in enumerate(keys):
        alone = compiled(agent, "update")(trained(agent), batch_for(agent, seed), key).state
        assert_close(alone, jax.tree.map(lambda x: x[seed], mapped), rtol=2e-3, atol=2e-5)  # noqa: B023


def test_fifty_updates_stay_finite(agent: Any) -> None:
    state, batches = trained(agent), [batch_for(agent, seed) for seed in range(5)]
    for i, key in enumerate(jax.random.split(jax.random.key(1), 50)):
        state, metrics, _ = compiled(agent, "update")(state, batches[i % 5], key)
        for name, value in metrics.items():
            assert value.shape == () and np.isfinite(value), (i, name)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))


def test_agent_is_hashable_and_its_state_can_be_saved(agent: Any, tmp_path: Any) -> None:
    state = trained(agent)
    assert hash(agent) == hash(dataclasses.replace(agent))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))
    saved = checkpoint.CheckpointData({"state": checkpoint.name_leaves(state)}, {})
    checkpoint.save(RunFolder(tmp_path), 1, saved)
    arrays = checkpoint.load(RunFolder(tmp_path)).arrays["state"]
    template = jax.eval_shape(agent.init, jax.random.key(0))
    assert_close(checkpoint.fill_leaves(template, arrays), state, rtol=0)
