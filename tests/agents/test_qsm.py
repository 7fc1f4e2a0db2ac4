"""QSM: both samplers by hand, what the score is taught, and the order of an update."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from parts import SPEC, close, gradient, make_batch, set_apart

from langevinrl.agents.qsm import QSM, State
from langevinrl.learner import count_parameters
from langevinrl.samplers.diffusion import make_schedule, reverse
from langevinrl.types import Array, Batch, Key, Spec, Update

# Rates large enough that "before the step" and "after the step" are far apart.
LANGEVIN = QSM(
    SPEC,
    hidden=(8, 8),
    num_steps=4,
    critic_learning_rate=0.05,
    actor_learning_rate=0.05,
    activation="mish",  # a ReLU critic this small has no slope at some rows
    best_of=3,
)
DDPM = replace(LANGEVIN, sampler="ddpm")
KEY = jax.random.key(7)


def make_state(agent: QSM = LANGEVIN) -> State:
    state = agent.init(jax.random.key(0))
    return state._replace(critic=set_apart(state.critic))


@partial(jax.jit, static_argnums=0)
def update(agent: QSM, state: State, batch: Batch) -> Update:
    return agent.update(state, batch, KEY)


@partial(jax.jit, static_argnums=(0, 4))
def act(agent: QSM, state: State, obs: Array, key: Key, explore: bool) -> Array:
    return agent.act(state, obs, key, explore=explore)


def slopes(agent: QSM, critic: Any, obs: Array, action: Array) -> tuple[Array, Array]:
    """Each member's own action gradient."""

    def member(j: int) -> Array:
        return jax.grad(lambda a: agent.critic.apply(critic, obs, a)[j].sum())(action)

    return member(0), member(1)


def test_parameter_count_on_humanoid() -> None:
    state = jax.eval_shape(QSM(Spec(376, 17)).init, KEY)
    assert count_parameters(state) == 702_227


@pytest.mark.parametrize("num", [1, 3])
def test_walk_shrinks_its_steps_and_online_critics_choose_among_chains(num: int) -> None:
    agent = replace(LANGEVIN, best_of=num)
    state, obs = make_state(agent), make_batch(6).obs
    start_key, chain_key = jax.random.split(KEY)
    x = np.asarray(jax.random.normal(start_key, (num, 6, 2)))
    keys = jax.random.split(chain_key, 4)
    for delta, k in zip([1.0, 0.75, 0.5, 0.25], keys, strict=True):
        score = np.asarray(agent.score.apply(state.actor.params, obs, jnp.asarray(x)))
        noise = np.asarray(jax.random.normal(k, x.shape))
        x = np.clip(x + delta / 2 * score + np.sqrt(delta) * noise, -2, 2)
    q = np.asarray(agent.critic.apply(state.critic.params, obs, jnp.asarray(x))).min(axis=0)
    chosen = x[q.argmax(axis=0), np.arange(6)]
    np.testing.assert_allclose(agent._choose(state, obs, KEY), chosen, atol=1e-5)


def test_reverse_chain_by_hand() -> None:
    agent = replace(DDPM, best_of=1)
    state, obs = make_state(agent), make_batch(6).obs
    schedule = make_schedule("vp", 4)
    beta, alpha_bar = (np.asarray(c, np.float64) for c in (schedule.beta, schedule.alpha_bar))
    start_key, chain_key = jax.random.split(KEY)
    x = np.asarray(jax.random.normal(start_key, (1, 6, 2)))
    keys = jax.random.split(chain_key, 4)
    for t in (3, 2, 1, 0):
        predicted = np.asarray(agent.score.apply(state.actor.params, obs, jnp.asarray(x), t))
        x = (x - beta[t] / np.sqrt(1 - alpha_bar[t]) * predicted) / np.sqrt(1 - beta[t])
        if t > 0:
            x = x + np.sqrt(beta[t]) * np.asarray(jax.random.normal(keys[t], x.shape))
        x = np.clip(x, -2, 2).astype(np.float32)
    np.testing.assert_allclose(agent._choose(state, obs, KEY), x[0], atol=1e-4)


def test_reverse_chain_keeps_a_standard_normal() -> None:
    # For data N(0, 1) the noise in x_t is sqrt(1 - ᾱ) x on average; only the last step adds none.
    schedule = make_schedule("vp", 10)
    start = jax.random.normal(KEY, (40_000, 1))

    def exact(x: Array, t: Array) -> Array:
        return jnp.sqrt(1 - schedule.alpha_bar[t]) * x

    x = reverse(exact, schedule, start, jax.random.key(1), bound=100.0)
    np.testing.assert_allclose(x.var(), 1 - schedule.beta[0], rtol=0.02)


def test_timeless_score_learns_the_slope_of_the_lesser_new_critic() -> None:
    state, batch = make_state(), make_batch(6)
    new = update(LANGEVIN, state, batch).state

    def taught(critic: Any) -> Any:
        q = LANGEVIN.critic.apply(critic, batch.obs, batch.action)
        first, second = slopes(LANGEVIN, critic, batch.obs, batch.action)
        slope = jnp.where((q[0] < q[1])[:, None], first, second)
        return jax.grad(
            lambda p: jnp.square(LANGEVIN.score.apply(p, batch.obs, batch.action) - slope).mean()
        )(state.actor.params)

    taken = gradient(new.actor.opt_state)
    assert close(taken, taught(new.critic.params))
    assert not close(taken, taught(state.critic.params))


def test_timed_score_learns_the_mean_slope_at_noised_actions() -> None:
    state, batch = make_state(DDPM), make_batch(6)
    new = update(DDPM, state, batch).state
    step_key, noise_key = jax.random.split(jax.random.split(KEY)[1])
    step = jax.random.randint(step_key, (6,), 0, 4)
    kept = make_schedule("vp", 4).alpha_bar[step][:, None]
    noisy = jnp.sqrt(kept) * batch.action
    noisy = noisy + jnp.sqrt(1 - kept) * jax.random.normal(noise_key, (6, 2))
    first, second = slopes(DDPM, new.critic.params, batch.obs, noisy)
    target = -50.0 * 0.5 * (first + second)

    def loss(params: Any) -> Array:
        return jnp.square(DDPM.score.apply(params, batch.obs, noisy, step) - target).mean()

    np.testing.assert_allclose(new.actor.loss, loss(state.actor.params), rtol=1e-3)
    assert close(gradient(new.actor.opt_state), jax.grad(loss)(state.actor.params))


@pytest.mark.parametrize("agent", [LANGEVIN, DDPM])
def test_critics_regress_on_the_target_critics_minimum(agent: QSM) -> None:
    state, batch = make_state(agent), make_batch(6)
    next_action = act(agent, state, batch.next_obs, jax.random.split(KEY)[0], True)
    next_q = np.asarray(
        agent.critic.apply(state.critic.target_params, batch.next_obs, next_action)
    ).min(axis=0)
    backup = agent.reward_scale * np.asarray(batch.reward)
    backup = backup + 0.99 * np.asarray(batch.bootstrap) * next_q
    q = np.asarray(agent.critic.apply(state.critic.params, batch.obs, batch.action))
    new, metrics, rewrite = update(agent, state, batch)
    bellman = ((q - backup) ** 2).mean(axis=1).sum()
    np.testing.assert_allclose(metrics["critic/bellman"], bellman, rtol=1e-3)
    moved = optax.incremental_update(new.critic.params, state.critic.target_params, 0.005)
    assert close(new.critic.target_params, moved)
    assert rewrite is None


@pytest.mark.parametrize("agent", [LANGEVIN, DDPM])
def test_evaluation_has_the_same_noise_in_every_state(agent: QSM) -> None:
    state, obs = make_state(agent), make_batch(6).obs
    twice = obs.at[-1].set(obs[0])
    action = act(agent, state, twice, KEY, False)
    np.testing.assert_allclose(action[0], action[-1], atol=1e-6)
    # Neither the key nor the company of other rows matters.
    other = act(agent, state, twice[::-1], jax.random.key(8), False)
    np.testing.assert_allclose(other, action[::-1], atol=1e-5)
    explored = act(agent, state, jnp.tile(obs[:1], (6, 1)), KEY, True)
    assert not np.allclose(explored[:1], explored)


def test_noise_is_added_to_explored_actions_only() -> None:
    noisy = replace(LANGEVIN, noise_scale=0.1)
    state, obs = make_state(), make_batch(6).obs
    still, moved = (act(agent, state, obs, KEY, True) for agent in (LANGEVIN, noisy))
    noise = 0.1 * jax.random.normal(jax.random.split(KEY)[1], still.shape)
    np.testing.assert_allclose(moved, np.clip(still + noise, -2, 2), atol=1e-5)
    still, moved = (act(agent, state, obs, KEY, False) for agent in (LANGEVIN, noisy))
    np.testing.assert_allclose(moved, still, atol=1e-6)


@pytest.mark.parametrize(
    ("final", "rates"), [(3e-5, [3e-4, 1.65e-4, 3e-5]), (3e-4, [3e-4, 3e-4, 3e-4])]
)
def test_rate_of_the_score_decays_unless_told(final: float, rates: list[float]) -> None:
    optimiser = QSM(SPEC, final_actor_learning_rate=final).actor_optimiser
    params = jnp.zeros(())
    for updates, rate in zip([25_000, 50_000, 75_000], rates, strict=True):
        state = optax.tree_utils.tree_set(optimiser.init(params), count=jnp.asarray(updates))
        state = optax.tree_utils.tree_set(state, mu=jnp.ones(()), nu=jnp.ones(()))
        change, _ = optimiser.update(jnp.ones(()), state, params)
        np.testing.assert_allclose(-change, rate, rtol=1e-4)


@pytest.mark.parametrize("agent", [LANGEVIN, DDPM])
def test_fifty_updates_stay_finite(agent: QSM) -> None:
    state, batch = make_state(agent), make_batch(6)
    for _ in range(50):
        state, metrics, _ = update(agent, state, batch)
        assert all(np.isfinite(metric) for metric in metrics.values())
    assert np.abs(act(agent, state, batch.obs, KEY, True)).max() <= SPEC.act_bound
