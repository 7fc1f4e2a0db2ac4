"""NC-LQL with automatic temperature: w from the gradient, its chain, and its update by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from parts import KEY, SPEC, act, assert_near, make_batch, make_state, update

from langevinrl.agents.nclql_auto import NCLQLAuto, State
from langevinrl.agents.parts import GradientStats
from langevinrl.errors import UserError
from langevinrl.types import Array, PyTree, Spec

AGENT = NCLQLAuto(SPEC, hidden=(8, 8), learning_rate=1e-2)
BATCH = make_batch(16)
EMPTY = GradientStats(jnp.zeros(()), jnp.zeros(()))


def measured_state(scale: float = 1.0, updates: int = 2_000) -> State:
    """Return a state with critics times `scale`, and gradient statistics of those critics.

    The slow average differs from the weights, so that a mix-up shows.
    """
    params = AGENT.init(jax.random.key(0)).critic.params
    last = jax.tree.map(lambda leaf: scale * leaf, params["body"]["layers"][-1])
    params["body"]["layers"][-1] = last
    value = AGENT._followed(params, BATCH.obs)
    gradient = jax.grad(lambda a: value(a, AGENT.clean).sum())(BATCH.action)
    state = make_state(AGENT)
    slow = jax.tree.map(lambda leaf: -leaf, params)
    critic = state.critic._replace(params=params)
    return State(critic, slow, EMPTY.update(gradient), jnp.asarray(updates))


@pytest.mark.parametrize("act_dim", [1, 2, 6])
@pytest.mark.parametrize("curvature", [0.3, 40.0])
def test_weight_gives_a_gaussian_peak_the_requested_deviation(
    act_dim: int, curvature: float
) -> None:
    """For Q = -k‖a‖²/2, exp(wQ) has standard deviation s if w = 1 / (k s²)."""
    agent = NCLQLAuto(Spec(3, act_dim, act_bound=2.0), spread=0.1)
    std = 0.1 * 2.0
    action = std * jax.random.normal(KEY, (20_000, act_dim))
    stats = EMPTY.update(-curvature * action)
    np.testing.assert_allclose(agent.weight(stats), 1 / (curvature * std**2), rtol=0.03)


def test_weight_is_zero_before_the_first_update_and_finite_without_gradient() -> None:
    assert float(AGENT.weight(EMPTY)) == 0.0
    assert np.isfinite(AGENT.weight(EMPTY.update(jnp.zeros((16, 2)))))


def test_gradient_size_is_a_running_mean_without_initial_bias() -> None:
    small, large = jnp.full((5, 2), 1.0), jnp.full((5, 2), 3.0)
    first = EMPTY.update(small)
    np.testing.assert_allclose(first.update(small).norm, first.norm, rtol=1e-6)
    after = first.update(large)
    expected = first.norm * np.sqrt((0.99 + 9.0) / 1.99)
    np.testing.assert_allclose(after.norm, expected, rtol=1e-5)
    outlier = small.at[0].set(1e6)  # the median of the batch ignores it
    np.testing.assert_allclose(EMPTY.update(outlier).norm, first.norm, rtol=1e-6)


def test_policy_does_not_depend_on_the_scale_of_rewards() -> None:
    actions = [act(AGENT, measured_state(scale), BATCH.obs) for scale in (1.0, 8.0)]
    np.testing.assert_array_equal(*actions)
    assert (np.abs(actions[0]) < 2).any()


def on_a_quadratic(updates: int, **fields: Any) -> np.ndarray:
    """Return chains of an agent whose Q is -‖a - 1‖²/2 and whose w gives it the spread 0.1."""

    class Quadratic(NCLQLAuto):
        def _followed(self, params: PyTree, obs: Array) -> Any:
            return lambda action, level: -jnp.square(action - 1.0).sum(axis=-1) / 2

    agent = Quadratic(Spec(3, 1, act_bound=2.0), **fields)
    state = agent.init(KEY)._replace(
        gradient=EMPTY.update(0.2 * jax.random.normal(KEY, (9_999, 1))),
        updates=jnp.asarray(updates),
    )
    return np.asarray(agent.trace(state, jnp.zeros((10_000, 3)), agent.noise(KEY, 10_000)))


def test_full_noise_nears_the_requested_deviation_with_more_steps() -> None:
    """One step per level leaves part of the noise of the first levels; three leave none."""
    for steps, low, high in ((1, 2.5, 4.0), (3, 0.7, 1.1)):
        end = on_a_quadratic(2_000, steps_per_level=steps, noise_scale=1.0)[-1]
        assert low < end.std() / 0.2 < high
    np.testing.assert_allclose(np.median(end), 1.0, atol=0.03)


def test_noise_falls_to_its_scale() -> None:
    """With the defaults actions are at first wider than the requested deviation, then narrower."""
    widths = [on_a_quadratic(updates)[-1].std() / 0.2 for updates in (2_000, 6_000, 10_000, 20_000)]
    assert widths[0] > widths[1] > widths[2] == widths[3]
    assert 2 < widths[0] < 3 and 0.3 < widths[3] < 0.7
    quarter, noise = measured_state()._replace(updates=jnp.asarray(10_000)), AGENT.noise(KEY, 16)
    fallen = AGENT.policy(quarter, BATCH.obs, noise, explore=True)
    scaled = noise._replace(steps=noise.steps * 0.25)
    constant = dataclasses.replace(AGENT, noise_scale=1.0)
    expected = constant.policy(quarter, BATCH.obs, scaled, explore=True)
    np.testing.assert_allclose(fallen, expected, atol=1e-6)


def test_calm_start_goes_from_the_prior_to_the_critic() -> None:
    """At β the score is that of exp(βwQ) prior^(1-β), both Gaussian here."""
    for updates in (0, 200, 2_000):
        beta, w, prior = updates / 2_000, 1 / 0.2**2, 1 / 0.8**2
        end = on_a_quadratic(updates, num_levels=2, steps_per_level=200, noise_scale=1.0)[-1]
        precision = beta * w + (1 - beta) * prior
        np.testing.assert_allclose(end.mean(), beta * w / precision, atol=0.03)


def test_no_axis_moves_further_than_the_levels_step_plus_noise() -> None:
    state, noise = measured_state(scale=100.0), AGENT.noise(KEY, 16)
    still = noise._replace(steps=jnp.zeros_like(noise.steps))
    path = np.asarray(AGENT.trace(state, BATCH.obs, still))
    furthest = np.abs(np.diff(path, axis=0)).max(axis=(1, 2))
    assert (furthest <= np.geomspace(2.0, 0.2, 5) + 1e-5).all()
    np.testing.assert_allclose(furthest[1], 2.0 * 0.1**0.25, rtol=1e-4)  # some reach it


def test_evaluation_climbs_the_slow_average_without_noise() -> None:
    state, obs, noise = measured_state(), BATCH.obs, AGENT.noise(KEY, 16)
    other = noise._replace(steps=noise.steps[::-1] + 0.5)

    def acted(state: State, noise: Any, explore: bool) -> np.ndarray:
        return np.asarray(AGENT.policy(state, obs, noise, explore=explore))

    climbed = acted(state, noise, explore=False)
    np.testing.assert_array_equal(climbed, acted(state, other, explore=False))
    np.testing.assert_array_equal(climbed, AGENT.refine(state, obs, other))
    swapped = state._replace(critic=state.critic._replace(params=state.slow_params))
    np.testing.assert_array_equal(climbed, acted(swapped, noise, explore=False))
    exploring = acted(state, noise, explore=True)
    assert not np.array_equal(exploring, acted(state, other, explore=True))
    assert not np.array_equal(exploring, acted(swapped, noise, explore=True))


def with_second(state: State, factor: float) -> State:
    """Return a state whose second critic is the first times `factor`, in weights and average."""

    def changed(params: PyTree) -> PyTree:
        params = jax.tree.map(lambda leaf: jnp.stack([leaf[0], leaf[0]]), params)
        last = params["body"]["layers"][-1]
        last["weight"] = last["weight"].at[1].multiply(factor)
        last["bias"] = last["bias"].at[1].multiply(factor)
        return params

    critic = state.critic._replace(params=changed(state.critic.params))
    return state._replace(critic=critic, slow_params=changed(state.slow_params))


def test_chain_follows_the_first_critic() -> None:
    state, noise = measured_state(), AGENT.noise(KEY, 16)
    actions = [
        AGENT.policy(with_second(state, factor), BATCH.obs, noise, explore=True)
        for factor in (1.0, -3.0)
    ]
    np.testing.assert_array_equal(*actions)


def test_evaluation_keeps_the_chain_that_the_smaller_critic_values_most() -> None:
    state, noise = with_second(measured_state(), 0.5), AGENT.noise(KEY, 16)
    singles = []
    for i in range(AGENT.best_of):
        alone = noise._replace(start=noise.start[:, i : i + 1])
        singles.append(np.asarray(AGENT.policy(state, BATCH.obs, alone, explore=False)))
    q = AGENT.critic.apply(state.slow_params, BATCH.obs, jnp.asarray(singles), AGENT.clean)
    best = np.asarray(q).min(axis=0).argmax(axis=0)
    kept = AGENT.policy(state, BATCH.obs, noise, explore=False)
    np.testing.assert_allclose(kept, np.stack(singles)[best, np.arange(16)], atol=1e-5)
    assert len(set(best.tolist())) > 1


def test_one_update_equals_the_formula() -> None:
    state, batch = measured_state(), BATCH
    q, params = AGENT.critic.apply, state.critic.params
    next_key, level_key, noise_key = jax.random.split(KEY, 3)
    # Noise falls in acting, not in the target.
    next_action = act(dataclasses.replace(AGENT, noise_scale=1.0), state, batch.next_obs, next_key)
    assert not np.array_equal(next_action, act(AGENT, state, batch.next_obs, next_key))
    next_q = np.asarray(q(state.critic.target_params, batch.next_obs, next_action, 4))
    y = 2.0 * np.asarray(batch.reward) + 0.99 * np.asarray(batch.bootstrap) * next_q.min(0)
    level = np.asarray(jax.random.randint(level_key, (8,), 0, 4))  # half of the rows
    z = np.asarray(jax.random.normal(noise_key, (8, 2)))
    sigmas = 0.3 * np.geomspace(2.0, 0.2, 5)  # of the steps, from the box to s
    noisy = jnp.asarray(np.asarray(batch.action)[:8] + sigmas[level, None] * z, jnp.float32)
    anchor = np.asarray(q(params, batch.obs, batch.action, 4)).mean(0)[:8]

    def loss(p: PyTree) -> Array:
        error = q(p, batch.obs, batch.action, 4) - y[None]
        smoothed = q(p, batch.obs[:8], noisy, jnp.asarray(level)) - anchor[None]
        return (jnp.square(error).mean(axis=1) + jnp.square(smoothed).mean(axis=1)).sum()

    value, grads = jax.jit(jax.value_and_grad(loss))(params)
    change, _ = optax.adam(1e-2).update(grads, state.critic.opt_state)
    expected = optax.apply_updates(params, change)
    after, metrics, _ = update(AGENT, state, batch)
    assert_near(after.critic.params, expected)
    target = optax.incremental_update(expected, state.critic.target_params, 0.05)
    assert_near(after.critic.target_params, target)
    slow = optax.incremental_update(expected, state.slow_params, 0.005)
    assert_near(after.slow_params, slow)
    assert int(after.updates) == 2_001
    np.testing.assert_allclose(metrics["critic/joint"], value, rtol=1e-4)
    # The gradient is measured where the next actions end, with the critics before this update.
    slope = jax.grad(lambda a: q(params, batch.next_obs, a, 4)[0].sum())
    gradient = slope(jnp.asarray(next_action))[:4]  # a quarter of the rows
    assert_near(after.gradient, state.gradient.update(gradient))
    np.testing.assert_allclose(metrics["temperature/weight"], AGENT.weight(after.gradient))
    np.testing.assert_allclose(AGENT.policy_weight(after), 2.0 * AGENT.weight(after.gradient))


def test_noise_of_the_target_has_its_own_factor() -> None:
    quarter = measured_state(updates=10_000)  # noise in acting has fallen to a quarter
    agent = dataclasses.replace(AGENT, target_noise=0.25, smoothing=0.0)
    next_action = act(agent, quarter, BATCH.next_obs, jax.random.split(KEY, 3)[0])
    q = agent.critic.apply(quarter.critic.target_params, BATCH.next_obs, next_action, 4).min(0)
    backup = update(agent, quarter, BATCH)[1]["critic/backup"]
    expected = 2.0 * BATCH.reward + 0.99 * BATCH.bootstrap * q
    np.testing.assert_allclose(backup, expected.mean(), rtol=1e-5)
    full = dataclasses.replace(agent, target_noise=1.0)
    assert update(full, quarter, BATCH)[1]["critic/backup"] != backup


def test_without_smoothing_levels_share_the_value_and_only_the_td_loss_is_left() -> None:
    agent, state = dataclasses.replace(AGENT, smoothing=0.0), measured_state()
    value = agent._followed(state.critic.params, BATCH.obs)
    np.testing.assert_array_equal(value(BATCH.action, 0), value(BATCH.action, agent.clean))
    noisy = dataclasses.replace(agent, noise_scale=1.0)  # as in the target
    next_action = act(noisy, state, BATCH.next_obs, jax.random.split(KEY, 3)[0])
    q = agent.critic.apply
    next_q = q(state.critic.target_params, BATCH.next_obs, jnp.asarray(next_action), 4).min(0)
    y = 2.0 * BATCH.reward + 0.99 * BATCH.bootstrap * next_q
    error = q(state.critic.params, BATCH.obs, BATCH.action, 4) - y[None]
    loss = update(agent, state, BATCH)[1]["critic/joint"]
    np.testing.assert_allclose(loss, jnp.square(error).mean(axis=1).sum(), rtol=1e-4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_levels": 1}, "num_levels is 1; expected at least 2"),
        ({"spread": 0.0}, "spread is 0; expected between 0 and 1"),
        ({"spread": 1.0}, "spread is 1; expected between 0 and 1"),
    ],
)
def test_levels_and_spread_are_validated(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        NCLQLAuto(SPEC, **fields)
