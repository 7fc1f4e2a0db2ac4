"""DPMD: its weights as coded and as intended, its running statistics, and its policy's data."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from langevinrl.agents.dpmd import DPMD, State
from langevinrl.losses import MirrorForm, denoising, mirror_weight, squared, td_backup
from langevinrl.types import Array, Batch, PyTree, Spec

SPEC = Spec(obs_dim=3, act_dim=2, act_bound=2.0)
KEY = jax.random.key(2)
AGENT = DPMD(SPEC, hidden=(8, 8), num_steps=3, best_of=2, critic_learning_rate=0.1)
BATCH = Batch(
    obs=jax.random.normal(KEY, (6, 3)),
    action=jax.random.uniform(KEY, (6, 2), minval=-2.0, maxval=2.0),
    reward=jnp.linspace(-1.0, 1.0, 6),
    bootstrap=jnp.ones(6),
    next_obs=jax.random.normal(jax.random.key(1), (6, 3)),
    row=jnp.arange(6),
    extra={},
)


INIT = jax.jit(AGENT.init)
UPDATES = {form: jax.jit(replace(AGENT, weighting=form).update) for form in ("coded", "intended")}


def start(mean_q: float = 0.0, std_q: float = 1.0) -> State:
    statistics = {"mean_q": jnp.asarray(mean_q), "std_q": jnp.asarray(std_q)}
    return INIT(KEY)._replace(**statistics)


@jax.jit
def by_hand(state: State) -> tuple[Array, Array, PyTree]:
    """The target's draw, its value after one step of the critics, and the critics after two."""
    next_key, _ = jax.random.split(KEY)
    action = AGENT._explore(state, BATCH.next_obs, next_key)
    next_q = AGENT.critic.apply(state.critic.target_params, BATCH.next_obs, action)
    backup = td_backup(next_q, BATCH, 0.99, 0.2)

    def bellman(params: PyTree) -> Array:
        return squared(AGENT.critic.apply(params, BATCH.obs, BATCH.action) - backup[None])

    once, optimiser = state.critic.params, optax.adam(0.1)
    grads, opt_state = jax.grad(bellman)(once), optimiser.init(once)
    change, opt_state = optimiser.update(grads, opt_state)
    once = optax.apply_updates(once, change)
    change, opt_state = optimiser.update(grads, opt_state)
    q = AGENT.critic.apply(once, BATCH.next_obs, action).min(axis=0)
    return action, q, optax.apply_updates(once, change)


@jax.jit
def loss_by_hand(state: State, action: Array, weight: Array) -> Array:
    return denoising(
        lambda x, t: AGENT.actor.network.apply(state.actor.params, BATCH.next_obs, x, t),
        AGENT.actor.schedule,
        action,
        weight,
        jax.random.split(KEY)[1],
    )


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
def test_weights_by_hand(
    form: MirrorForm, q: float, mean: float, std: float, alpha: float, weight: float
) -> None:
    values = (jnp.asarray(x) for x in (q, mean, std, alpha))
    np.testing.assert_allclose(mirror_weight(*values, form), weight, rtol=1e-5)


def test_default_is_as_released() -> None:
    agent = DPMD(SPEC)
    assert (agent.weighting, agent.repeat_critic_step, agent.clip_noise) == ("coded", True, False)
    state = jax.eval_shape(agent.init, KEY)
    assert state.mean_q.shape == state.std_q.shape == ()


@pytest.mark.parametrize("weighting", ["coded", "intended"])
def test_an_update_by_hand(weighting: MirrorForm) -> None:
    state = start(mean_q=0.5, std_q=0.25)
    after = UPDATES[weighting](state, BATCH, KEY)
    action, q, twice = by_hand(state)
    changed = jax.tree.leaves(after.state.critic.params)
    for new, expected in zip(changed, jax.tree.leaves(twice), strict=True):
        np.testing.assert_allclose(new, expected, atol=1e-4)

    # Judged by critics one step on, against the statistics as they were.
    score = q - 0.5 / 0.25 if weighting == "coded" else (q - 0.5) / 0.25
    weight = jnp.exp(jnp.clip(score, -3.0, 3.0) / 5.0)
    np.testing.assert_allclose(after.metrics["policy/weight"], weight.mean(), rtol=1e-3)
    loss = loss_by_hand(state, action, weight)
    np.testing.assert_allclose(after.metrics["policy/denoising"], loss, rtol=1e-3)
    np.testing.assert_allclose(after.state.mean_q, 0.5 + 0.001 * (q.mean() - 0.5), rtol=1e-5)
    np.testing.assert_allclose(after.state.std_q, 0.25 + 0.001 * (q.std() - 0.25), rtol=1e-5)


def test_statistics_move_at_every_update() -> None:
    update, state = UPDATES["coded"], start()
    assert (float(state.mean_q), float(state.std_q)) == (0.0, 1.0)
    seen = []
    for i in range(3):
        state = update(state, BATCH, jax.random.key(i)).state
        seen.append((float(state.mean_q), float(state.std_q)))
    assert len(set(seen)) == 3
