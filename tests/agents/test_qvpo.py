"""QVPO: its weights, its entropy part and its policy gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.agents.parts import TwinCritics
from langevinrl.agents.qvpo import QVPO, State, _mix
from langevinrl.errors import UserError
from langevinrl.losses import advantage_weight, cutoff_weight, denoising
from langevinrl.types import Array, Batch, PyTree, Spec

KEY = jax.random.key(4)
AGENT = QVPO(Spec(3, 2, act_bound=2.0), hidden=(8, 8), num_steps=3, best_of=3, num_uniform=2)
ROWS = jax.random.normal(KEY, (2, 6, 3))
BATCH = Batch(ROWS[0], ROWS[0, :, :2], jnp.zeros(6), jnp.ones(6), ROWS[1], jnp.arange(6), {})
INIT, UPDATE = jax.jit(AGENT.init), jax.jit(AGENT.update)
ACTOR_KEY = jax.random.split(KEY)[1]


def start(value: float) -> State:
    """Return a state whose critics give about `value` everywhere."""
    state = INIT(KEY)
    params = state.critic.params
    params["body"]["layers"][-1]["bias"] += value
    return state._replace(critic=state.critic._replace(params=params, target_params=params))


def loss_by_hand(params: PyTree, action: Array, weight: Array, omega: float) -> Array:
    """Return the loss of best actions and two uniform copies, as 18 rows."""
    _, uniform_key, _, noise_key = jax.random.split(ACTOR_KEY, 4)
    uniform = jax.random.uniform(uniform_key, (2, 6, 2), minval=-2.0, maxval=2.0)
    obs = jnp.tile(BATCH.obs, (3, 1))
    clean = jnp.concatenate([action[None], uniform])
    weights = jnp.concatenate([weight[None], omega * jnp.stack([weight, weight])])

    def predict(x: Array, t: Array) -> Array:
        rows = AGENT.actor.network.apply(params, obs, x.reshape(18, 2), t.reshape(18))
        return rows.reshape(3, 6, 2)

    return denoising(predict, AGENT.actor.schedule, clean, weights, noise_key)


def test_weights_equal_the_formulas() -> None:
    q = jnp.array([[3.0, 0.5, -2.0, 1.0], [5.0, 0.2, -4.0, 1.0]])
    np.testing.assert_allclose(cutoff_weight(q), [5.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(advantage_weight(q), [1.0, 0.15, 1.0, 0.0], rtol=1e-6)


def test_weight_of_uniform_actions_decays_to_its_final_value() -> None:
    for k, omega in ((0, 0.02), (100_000, 0.01), (180_000, 0.002), (10**6, 0.002)):
        state = start(0.0)._replace(updates=jnp.asarray(k, jnp.int32))
        metrics = UPDATE(state, BATCH, KEY).metrics
        np.testing.assert_allclose(metrics["policy/entropy_weight"], omega, rtol=1e-5)


@jax.jit
def candidates_and_values(state: State) -> tuple[Array, Array]:
    """Return candidates at the batch's states and their values by the updated critics."""
    next_key = jax.random.split(KEY)[0]
    candidates = AGENT.actor.sample(state.actor.params, BATCH.next_obs, AGENT.noise(next_key, 6))
    next_action = AGENT.critics.choose(state.critic.params, BATCH.next_obs, candidates)
    backup = AGENT.critics.backup(state.critic, BATCH, next_action)
    critic = AGENT.critics.update_critic(state.critic, BATCH, backup).params
    draw_key = jax.random.split(ACTOR_KEY, 4)[0]
    noise = AGENT.actor.noise(draw_key, 6, 3)
    candidates = AGENT.actor.sample(state.actor.params, BATCH.obs, noise)
    return candidates, AGENT.critics.network.apply(critic, BATCH.obs, candidates).min(axis=0)


def test_policy_gradient_treats_weights_as_constants() -> None:
    state = start(3.0)
    after = UPDATE(state, BATCH, KEY)
    candidates, q = (np.asarray(x) for x in candidates_and_values(state))
    action, weight = candidates[q.argmax(axis=0), np.arange(6)], q.max(axis=0)
    assert weight.min() > 1.0

    loss_and_gradient = jax.jit(jax.value_and_grad(loss_by_hand))
    loss, grads = loss_and_gradient(
        state.actor.params, jnp.asarray(action), jnp.asarray(weight), 0.02
    )
    np.testing.assert_allclose(after.metrics["policy/denoising"], loss, rtol=1e-4)
    first_moment = after.state.actor.opt_state[0].mu  # a tenth of the gradient after one step
    for mu, grad in zip(jax.tree.leaves(first_moment), jax.tree.leaves(grads), strict=True):
        np.testing.assert_allclose(mu, 0.1 * grad, atol=1e-5)


def test_weight_gradient_changes_the_gradient_and_not_the_loss() -> None:
    state = start(3.0)
    passing = jax.jit(replace(AGENT, weight_gradient=True).update)
    actors = [update(state, BATCH, KEY).state.actor for update in (UPDATE, passing)]
    assert float(actors[0].loss) == pytest.approx(float(actors[1].loss), rel=1e-5)
    moments = [jax.tree.leaves(actor.opt_state[0].mu) for actor in actors]
    assert max(float(jnp.abs(a - b).max()) for a, b in zip(*moments, strict=True)) > 1e-5


def test_values_below_the_cutoff_leave_the_policy_unchanged() -> None:
    state = start(-5.0)
    after = UPDATE(state, BATCH, KEY).state.actor
    for old, new in zip(
        jax.tree.leaves(state.actor.params), jax.tree.leaves(after.params), strict=True
    ):
        np.testing.assert_array_equal(old, new)


def test_advantage_weights_need_several_candidates() -> None:
    with pytest.raises(UserError, match="only one"):
        replace(AGENT, weights="advantage", best_of=1)
    with pytest.raises(UserError, match="only one"):
        replace(AGENT, weights="advantage", policy_best_of=1)
    assert replace(AGENT, weights="advantage", best_of=1, policy_best_of=64).best_of == 1


def test_policy_best_of_sets_the_chains_the_policy_learns_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shapes: list[Any] = []
    value = TwinCritics.value

    def watched(critics: TwinCritics, params: PyTree, obs: Array, action: Array) -> Array:
        shapes.append(action.shape)
        return value(critics, params, obs, action)

    monkeypatch.setattr(TwinCritics, "value", watched)
    agent = QVPO(AGENT.spec, hidden=(8,), num_steps=2, best_of=3, policy_best_of=5)
    jax.eval_shape(agent.update, jax.eval_shape(agent.init, KEY), BATCH, KEY)
    assert set(shapes) == {(3, 6, 2), (5, 6, 2)}


def test_shuffle_mixes_elements_across_features() -> None:
    obs, weight = jnp.arange(12.0).reshape(4, 3), jnp.tile(jnp.arange(4.0), (10, 1))
    states, shuffled = _mix(obs, weight, KEY)
    assert states.shape == (11, 4, 3) and shuffled.shape == (10, 4)
    np.testing.assert_array_equal(states[0], obs)  # the best actions keep their own states
    np.testing.assert_array_equal(np.sort(states[1:].ravel()), np.repeat(np.arange(12.0), 10))
    np.testing.assert_array_equal(np.sort(shuffled.ravel()), np.repeat(np.arange(4.0), 10))
    assert (np.asarray(states[1:]) % 3 != np.arange(3.0)).any()  # features change places


def test_all_three_bugs_of_the_released_code_run_together() -> None:
    agent = replace(AGENT, weight_gradient=True, repeat_critic_step=True, shuffle="elements")
    after = jax.jit(agent.update)(start(3.0), BATCH, KEY)
    assert int(after.state.critic.opt_state[0].count) == 2
    assert all(np.isfinite(v) for v in after.metrics.values())
    assert all(np.isfinite(p).all() for p in jax.tree.leaves(after.state))
