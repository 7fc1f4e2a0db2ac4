"""NC-LQL's update against one written out by hand, and the switches between paper and code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from langevinrl.agents.ladder import perturb

from langevinrl.agents.nclql import NCLQL, State
from langevinrl.errors import UserError
from langevinrl.types import Array, Batch, PyTree, Spec

SPEC = Spec(3, 2)
SMALL = NCLQL(SPEC, hidden=(8, 8), learning_rate=1e-2)


def batch_of(rows: int = 16) -> Batch:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    ends = jnp.asarray(rng.integers(2, size=rows), jnp.float32)
    action = jnp.tanh(normal(rows, 2))
    return Batch(normal(rows, 3), action, normal(rows), ends, normal(rows, 3), jnp.arange(rows), {})


def warm_state(agent: NCLQL) -> State:
    """A state whose target copy differs from the weights, so that mixing them up shows."""
    state = agent.init(jax.random.key(0))
    moved = jax.tree.map(lambda leaf: leaf * 1.5 + 0.1, state.critic.params)
    return State(state.critic._replace(target_params=moved))


def by_hand(agent: NCLQL, state: State, batch: Batch, key: Array) -> dict[str, Any]:
    """The released order: two Adam steps with one optimiser state, then the target."""
    q = agent.critic.apply
    params, target = state.critic.params, state.critic.target_params
    next_key, level_key, noise_key = jax.random.split(key, 3)
    next_action = agent.act(state, batch.next_obs, next_key, explore=True)
    next_q = np.asarray(q(target, batch.next_obs, next_action, 9))
    y = 0.2 * np.asarray(batch.reward) + 0.99 * np.asarray(batch.bootstrap) * next_q.min(0)
    level = np.asarray(jax.random.randint(level_key, (16,), 0, 9))
    noise = np.asarray(jax.random.normal(noise_key, (16, 2)))
    noisy = jnp.asarray(np.asarray(batch.action) + np.asarray(agent.sigmas)[level, None] * noise)
    v = np.asarray(q(params, batch.obs, batch.action, 9)).mean(0)

    def td(p: PyTree) -> Array:
        return sum(jnp.mean((qj - y) ** 2) for qj in q(p, batch.obs, batch.action, 9))

    def smooth(p: PyTree) -> Array:
        return sum(jnp.mean((qj - v) ** 2) for qj in q(p, batch.obs, noisy, jnp.asarray(level)))

    adam, opt_state = optax.adam(1e-2), state.critic.opt_state
    losses = []
    for loss in (td, smooth):
        value, grads = jax.value_and_grad(loss)(params)
        change, opt_state = adam.update(grads, opt_state)
        params = optax.apply_updates(params, change)
        losses.append(float(value))
    target = jax.tree.map(lambda t, p: 0.995 * t + 0.005 * p, target, params)
    return {"params": params, "target": target, "losses": losses}


def test_one_update_equals_the_one_written_out_by_hand() -> None:
    state, batch, key = warm_state(SMALL), batch_of(), jax.random.key(7)
    expected = by_hand(SMALL, state, batch, key)
    after, metrics, rewrite = SMALL.update(state, batch, key)
    assert rewrite is None
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)  # noqa: E731
    jax.tree.map(close, after.critic.params, expected["params"])
    jax.tree.map(close, after.critic.target_params, expected["target"])
    losses = [float(metrics["critic/bellman"]), float(metrics["critic/smoothing"])]
    np.testing.assert_allclose(losses, expected["losses"], rtol=1e-4)


def test_adam_counts_two_steps_an_update() -> None:
    after = SMALL.update(warm_state(SMALL), batch_of(), jax.random.key(0)).state
    assert int(after.critic.opt_state[0].count) == 2
    joint = NCLQL(SPEC, hidden=(8, 8), optimisation="joint")
    update = joint.update(warm_state(joint), batch_of(), jax.random.key(0))
    assert int(update.state.critic.opt_state[0].count) == 1
    assert set(update.metrics) == {"critic/joint", "critic/backup"}


def test_both_members_move_and_targets_follow_by_tau() -> None:
    state = warm_state(SMALL)
    after = SMALL.update(state, batch_of(), jax.random.key(0)).state.critic
    for old, new in zip(*map(jax.tree.leaves, (state.critic.params, after.params)), strict=True):
        assert all(np.any(old[j] != new[j]) for j in range(2))
    expected = jax.tree.map(
        lambda t, p: t + 0.005 * (p - t), state.critic.target_params, after.params
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7),
                 after.target_params, expected)  # fmt: skip


@pytest.mark.parametrize(("clean_too", "num_drawn"), [(False, 9), (True, 10)])
def test_smoothing_levels_are_uniform_and_leave_out_the_clean_one(
    clean_too: bool, num_drawn: int
) -> None:
    agent = NCLQL(SPEC, smooth_clean_level=clean_too)
    action = jnp.zeros((90_000, 2))
    level, noisy = perturb(
        agent.sigmas, agent.smooth_clean_level, action, jax.random.key(0), jax.random.key(1)
    )
    shares = np.bincount(np.asarray(level), minlength=10) / len(level)
    np.testing.assert_allclose(shares[:num_drawn], 1 / num_drawn, atol=0.005)
    assert shares[num_drawn:].sum() == 0
    spread = [float(noisy[level == i].std()) for i in range(num_drawn)]
    np.testing.assert_allclose(spread, agent.sigmas[:num_drawn], rtol=0.03)


def test_own_anchor_differs_from_the_mean_one() -> None:
    own = NCLQL(SPEC, hidden=(8, 8), anchor="own")
    mean = NCLQL(SPEC, hidden=(8, 8))
    losses = [
        float(a.update(warm_state(a), batch_of(), jax.random.key(0)).metrics["critic/smoothing"])
        for a in (own, mean)
    ]
    # Members start far apart, so regressing on the other's value too costs more.
    assert losses[0] < losses[1]


def test_a_true_end_does_not_bootstrap() -> None:
    state, batch = warm_state(SMALL), batch_of()
    ended = batch._replace(bootstrap=jnp.zeros(16))
    backup = SMALL.update(state, ended, jax.random.key(0)).metrics["critic/backup"]
    assert float(backup) == pytest.approx(0.2 * float(batch.reward.mean()), rel=1e-5)


def test_best_of_picks_the_chain_the_clean_critic_values_most() -> None:
    state, obs = warm_state(SMALL), jnp.ones((64, 3))
    value = {}
    for n in (1, 16):
        agent = NCLQL(SPEC, hidden=(8, 8), best_of=n, inverse_temperature=0.0)
        action = agent.act(state, obs, jax.random.key(0), explore=True)
        assert action.shape == (64, 2)
        value[n] = float(SMALL.critic.apply(state.critic.params, obs, action, 9).min(0).mean())
    assert value[16] > value[1]


def test_one_critic_leads_the_chain_and_both_judge_its_ends() -> None:
    """Another second critic changes no walk, but which of several walks is chosen."""
    alone = replace(SMALL, score_critics="first")
    state, obs, key = warm_state(SMALL), jnp.ones((64, 3)), jax.random.key(0)
    flipped = jax.tree.map(lambda leaf: leaf.at[1].multiply(-1.0), state.critic.params)
    other = State(state.critic._replace(params=flipped))
    path = alone.trace(state, obs, key)
    np.testing.assert_array_equal(path, alone.trace(other, obs, key))
    assert not np.array_equal(path, SMALL.trace(state, obs, key))
    first = jax.grad(lambda a: alone.critic.apply(state.critic.params, obs, a, 9)[0].sum())
    scores = alone.trace_scores(state, obs, path)
    assert scores is not None
    np.testing.assert_allclose(scores[-1], first(path[-2]), rtol=1e-4, atol=1e-6)
    several = replace(alone, best_of=8, inverse_temperature=0.0)  # else all end in one corner
    chosen = [several.act(s, obs, key, explore=True) for s in (state, other)]
    assert not np.array_equal(*chosen)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"num_levels": 1}, "num_levels is 1"),
        ({"sigma_min": 0.0}, "more than 0"),
        ({"sigma_min": 0.1}, "less than sigma_max"),
        ({"sigma_max": 1e-4}, "less than sigma_max, 0.0001"),
    ],
)
def test_a_ladder_has_two_rungs_and_leads_down(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        NCLQL(SPEC, **fields)
