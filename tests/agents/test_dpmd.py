"""DPMD: weights as coded and as intended, running statistics and the policy's data."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from parts import KEY, SPEC, assert_near, make_batch, make_state, update

from langevinrl.agents.dpmd import DPMD, State
from langevinrl.losses import MirrorForm, denoising, mirror_weight, squared, td_backup
from langevinrl.types import Array, PyTree

AGENT = DPMD(SPEC, hidden=(8, 8), num_steps=3, best_of=2, critic_learning_rate=0.1)
BATCH = make_batch(6)


@jax.jit
def critics_by_hand(state: State) -> tuple[Array, Array, PyTree]:
    """Return the target's action, its value after one critic step, and critics after two."""
    action = AGENT._explore(state, BATCH.next_obs, jax.random.split(KEY)[0])
    critic = AGENT.critics.network.apply
    next_q = critic(state.critic.target_params, BATCH.next_obs, action)
    backup = td_backup(next_q, BATCH, 0.99, 0.2)

    def bellman(params: PyTree) -> Array:
        return squared(critic(params, BATCH.obs, BATCH.action) - backup[None])

    params, optimiser = state.critic.params, optax.adam(0.1)
    grads, opt_state = jax.grad(bellman)(params), optimiser.init(params)
    change, opt_state = optimiser.update(grads, opt_state)
    once = optax.apply_updates(params, change)
    change, opt_state = optimiser.update(grads, opt_state)
    q = critic(once, BATCH.next_obs, action).min(axis=0)
    return action, q, optax.apply_updates(once, change)


@jax.jit
def loss_by_hand(state: State, action: Array, weight: Array) -> Array:
    network, key = AGENT.actor.network, jax.random.split(KEY)[1]

    def predict(x: Array, t: Array) -> Array:
        return network.apply(state.actor.params, BATCH.next_obs, x, t)

    return denoising(predict, AGENT.actor.schedule, action, weight, key)


@pytest.mark.parametrize(
    ("form", "q", "mean", "std", "alpha", "weight"),
    [
        ("coded", 10.0, 0.0, 1.0, 1.0, np.exp(3.0)),  # the clip is active
        ("coded", -10.0, 0.0, 1.0, 2.0, np.exp(-1.5)),
        ("coded", 2.0, 3.0, 2.0, 5.0, np.exp(0.1)),  # 2 - 3/2
        ("intended", 2.0, 3.0, 2.0, 5.0, np.exp(-0.1)),  # (2 - 3)/2
        ("intended", 10.0, 9.0, 0.1, 1.0, np.exp(3.0)),
    ],
)
def test_weights_equal_the_formula(
    form: MirrorForm, q: float, mean: float, std: float, alpha: float, weight: float
) -> None:
    values = (jnp.asarray(x) for x in (q, mean, std, alpha))
    np.testing.assert_allclose(mirror_weight(*values, form), weight, rtol=1e-5)


@pytest.mark.parametrize("weighting", ["coded", "intended"])
def test_one_update_equals_the_formula(weighting: MirrorForm) -> None:
    state = make_state(AGENT)._replace(mean_q=jnp.asarray(0.5), std_q=jnp.asarray(0.25))
    after = update(replace(AGENT, weighting=weighting), state, BATCH)
    action, q, twice = critics_by_hand(state)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), after.state.critic.params, twice
    )
    # Critics one step on give the values; the statistics are those before the update.
    score = q - 0.5 / 0.25 if weighting == "coded" else (q - 0.5) / 0.25
    weight = jnp.exp(jnp.clip(score, -3.0, 3.0) / 5.0)
    np.testing.assert_allclose(after.metrics["policy/weight"], weight.mean(), rtol=1e-3)
    loss = loss_by_hand(state, action, weight)
    np.testing.assert_allclose(after.metrics["policy/denoising"], loss, rtol=1e-3)
    assert_near(after.state.mean_q, 0.5 + 0.001 * (q.mean() - 0.5))
    assert_near(after.state.std_q, 0.25 + 0.001 * (q.std() - 0.25))


def test_statistics_start_at_zero_and_one_and_move_at_every_update() -> None:
    state = make_state(AGENT)
    seen = [(float(state.mean_q), float(state.std_q))]
    for seed in range(3):
        state = update(AGENT, state, BATCH, jax.random.key(seed)).state
        seen.append((float(state.mean_q), float(state.std_q)))
    assert seen[0] == (0.0, 1.0) and len(set(seen)) == 4
