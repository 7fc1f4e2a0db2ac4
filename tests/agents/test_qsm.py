"""QSM: both samplers by hand, the targets of the score, and the order of an update."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parts import KEY, SPEC, act, assert_bellman, close, gradient, make_batch, make_state, update

from langevinrl.agents.qsm import QSM
from langevinrl.samplers.diffusion import make_schedule
from langevinrl.types import Array

# Rates large enough that weights before and after a step differ clearly. A relu critic this small
# has no gradient at some rows.
LANGEVIN = QSM(
    SPEC, hidden=(8, 8), num_steps=4, critic_learning_rate=0.05, actor_learning_rate=0.05,
    activation="mish", best_of=3,
)  # fmt: skip
DDPM = replace(LANGEVIN, sampler="ddpm")
BATCH = make_batch(6)
both = pytest.mark.parametrize("agent", [LANGEVIN, DDPM], ids=["langevin", "ddpm"])


def gradients(agent: QSM, critic: Any, action: Array) -> tuple[Array, Array]:
    """Return the action gradient of each critic."""

    def member(j: int) -> Array:
        return jax.grad(lambda a: agent.critic.apply(critic, BATCH.obs, a)[j].sum())(action)

    return member(0), member(1)


def test_langevin_steps_shrink_and_online_critics_choose_among_chains() -> None:
    state, obs = make_state(LANGEVIN), BATCH.obs
    start, steps = LANGEVIN.noise(KEY, 6).chain.for_chains()
    x = np.asarray(start)
    for delta, z in zip([1.0, 0.75, 0.5, 0.25], np.asarray(steps), strict=True):
        score = np.asarray(LANGEVIN.score.apply(state.actor.params, obs, jnp.asarray(x)))
        x = np.clip(x + delta / 2 * score + np.sqrt(delta) * z, -2, 2)
    q = np.asarray(LANGEVIN.critic.apply(state.critic.params, obs, jnp.asarray(x))).min(axis=0)
    chosen = x[q.argmax(axis=0), np.arange(6)]
    np.testing.assert_allclose(act(LANGEVIN, state, obs), chosen, atol=1e-5)


def test_ddpm_chain_equals_the_formula() -> None:
    agent = replace(DDPM, best_of=1)
    state, noise = make_state(agent), agent.noise(KEY, 6)
    schedule = make_schedule("vp", 4)
    beta, alpha_bar = (np.asarray(c, np.float64) for c in (schedule.beta, schedule.alpha_bar))
    start, steps = noise.chain.first_chain()
    x = np.asarray(start)
    for t in (3, 2, 1, 0):
        predicted = np.asarray(agent.score.apply(state.actor.params, BATCH.obs, jnp.asarray(x), t))
        x = (x - beta[t] / np.sqrt(1 - alpha_bar[t]) * predicted) / np.sqrt(1 - beta[t])
        if t > 0:
            x = x + np.sqrt(beta[t]) * np.asarray(steps[t])
        x = np.clip(x, -2, 2).astype(np.float32)
    np.testing.assert_allclose(act(agent, state, BATCH.obs), x, atol=1e-4)


def test_langevin_score_learns_the_gradient_of_the_smaller_new_critic() -> None:
    state, batch = make_state(LANGEVIN), BATCH
    new = update(LANGEVIN, state, batch).state

    def expected(critic: Any) -> Any:
        q = LANGEVIN.critic.apply(critic, batch.obs, batch.action)
        first, second = gradients(LANGEVIN, critic, batch.action)
        target = jnp.where((q[0] < q[1])[:, None], first, second)
        return jax.grad(
            lambda p: jnp.square(LANGEVIN.score.apply(p, batch.obs, batch.action) - target).mean()
        )(state.actor.params)

    taken = gradient(new.actor.opt_state)
    assert close(taken, expected(new.critic.params))
    assert not close(taken, expected(state.critic.params))


def test_ddpm_score_learns_the_mean_gradient_at_noisy_actions() -> None:
    state, batch = make_state(DDPM), BATCH
    new = update(DDPM, state, batch).state
    step_key, noise_key = jax.random.split(jax.random.split(KEY)[1])
    step = jax.random.randint(step_key, (6,), 0, 4)
    kept = make_schedule("vp", 4).alpha_bar[step][:, None]
    noisy = jnp.sqrt(kept) * batch.action
    noisy = noisy + jnp.sqrt(1 - kept) * jax.random.normal(noise_key, (6, 2))
    first, second = gradients(DDPM, new.critic.params, noisy)
    target = -50.0 * 0.5 * (first + second)

    def loss(params: Any) -> Array:
        return jnp.square(DDPM.score.apply(params, batch.obs, noisy, step) - target).mean()

    np.testing.assert_allclose(new.actor.loss, loss(state.actor.params), rtol=1e-3)
    assert close(gradient(new.actor.opt_state), jax.grad(loss)(state.actor.params))


@both
def test_critics_regress_on_the_minimum_of_the_target_critics(agent: QSM) -> None:
    state = make_state(agent)
    next_action = act(agent, state, BATCH.next_obs, jax.random.split(KEY)[0])
    done = update(agent, state, BATCH)
    assert_bellman(agent, agent.critic, state, BATCH, next_action, done)


@both
def test_evaluation_uses_the_same_noise_in_every_state(agent: QSM) -> None:
    state, obs = make_state(agent), BATCH.obs
    twice = obs.at[-1].set(obs[0])
    action = act(agent, state, twice, explore=False)
    np.testing.assert_allclose(action[0], action[-1], atol=1e-6)
    # Neither the key nor the other rows matter.
    other = act(agent, state, twice[::-1], jax.random.key(8), explore=False)
    np.testing.assert_allclose(other, action[::-1], atol=1e-5)
    explored = act(agent, state, jnp.tile(obs[:1], (6, 1)))
    assert not np.allclose(explored[:1], explored)


def test_noise_is_added_to_explored_actions_only() -> None:
    noisy = replace(LANGEVIN, noise_scale=0.1)
    state, obs = make_state(LANGEVIN), BATCH.obs
    noise = 0.1 * np.asarray(LANGEVIN.noise(KEY, 6).action)
    expected = np.clip(act(LANGEVIN, state, obs) + noise, -2, 2)
    np.testing.assert_allclose(act(noisy, state, obs), expected, atol=1e-5)
    plain, evaluated = (act(agent, state, obs, explore=False) for agent in (LANGEVIN, noisy))
    np.testing.assert_allclose(evaluated, plain, atol=1e-6)
