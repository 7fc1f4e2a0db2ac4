"""Behaviour shared by SDAC, DPMD and QVPO: choice, targets, delays, rates and temperature."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parts import KEY, SPEC, act, assert_bellman, assert_moved, make_batch, make_state, update

from langevinrl.agents.dacer import DACER
from langevinrl.agents.dpmd import DPMD
from langevinrl.agents.qsm import QSM
from langevinrl.agents.qvpo import QVPO
from langevinrl.agents.sdac import SDAC
from langevinrl.errors import UserError
from langevinrl.types import Array, Spec

# Rates so large that weights before and after a step differ clearly.
SMALL: dict[str, Any] = {
    "hidden": (8, 8), "num_steps": 3, "best_of": 3, "embedding_size": 4,
    "critic_learning_rate": 0.03, "actor_learning_rate": 0.03, "target_rate": 0.25,
}  # fmt: skip
AGENTS: list[Any] = [
    SDAC(SPEC, **SMALL, num_noises=4),
    DPMD(SPEC, **SMALL),
    QVPO(SPEC, **SMALL, weights="advantage", num_uniform=2),
]
SDAC_AGENT: SDAC = AGENTS[0]
BATCH = make_batch(6)
each = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)


def best_by_hand(agent: Any, state: Any, actor: Any, obs: Array, key: Array) -> np.ndarray:
    """Return the candidate of each row with the highest minimum of both critics."""
    noise = agent.noise(key, len(obs))
    chain = noise if isinstance(agent, QVPO) else noise.chain
    candidates = agent.actor.sample(actor, obs, chain)
    q = np.stack([agent.critics.network.apply(state.critic.params, obs, c) for c in candidates])
    best = np.minimum(q[:, 0], q[:, 1]).argmax(axis=0)
    assert len(set(best)) > 1
    return np.asarray(candidates)[best, np.arange(len(obs))]


@each
def test_evaluation_takes_the_best_chain_of_the_target_policy(agent: Any) -> None:
    state = make_state(agent)
    action = act(agent, state, BATCH.obs, explore=False)
    expected = best_by_hand(agent, state, state.actor.target_params, BATCH.obs, KEY)
    np.testing.assert_allclose(action, expected, atol=1e-5)
    single = replace(agent, best_of=1, weights="cutoff") if isinstance(agent, QVPO) else None
    single = single or replace(agent, best_of=1)
    noise = single.noise(KEY, 6)
    path = single.trace(state, BATCH.obs, noise)
    np.testing.assert_allclose(
        single.policy(state, BATCH.obs, noise, explore=False), path[-1], atol=1e-5
    )


@each
def test_backup_uses_the_online_policy_and_the_target_critics(agent: Any) -> None:
    state, next_key = make_state(agent), jax.random.split(KEY)[0]
    action = best_by_hand(agent, state, state.actor.params, BATCH.next_obs, next_key)
    if not isinstance(agent, QVPO):  # the target includes the exploration noise
        action = action + 0.1 * 5.0 * np.asarray(agent.noise(next_key, 6).action)
    done = update(agent, state, BATCH)
    assert_bellman(agent, agent.critics.network, state, BATCH, action, done)


@each
def test_policy_and_targets_move_every_second_update(agent: Any) -> None:
    states = [make_state(agent)]
    for seed in range(3):
        states.append(update(agent, states[-1], BATCH, jax.random.key(seed)).state)
    assert [int(state.updates) for state in states] == [0, 1, 2, 3]
    for k, (old, new) in enumerate(pairwise(states)):
        assert not same(old.critic.params, new.critic.params)
        assert same(old.actor, new.actor) == (k == 1)
        assert same(old.critic.target_params, new.critic.target_params) == (k == 1)
        if k != 1:  # from the weights after every step of this update
            assert_moved(old.critic, new.critic, 0.25)
            assert_moved(old.actor, new.actor, 0.25)


def same(left: Any, right: Any) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@each
def test_a_policy_step_that_is_not_due_runs_no_chain(agent: Any) -> None:
    state = jax.eval_shape(agent.init, KEY)
    equations = jax.make_jaxpr(agent.update)(state, BATCH, KEY).eqns
    names = [equation.primitive.name for equation in equations]
    assert names.count("scan") == 1  # the target's; the policy's is inside a condition
    assert names.count("cond") >= 3


@each
def test_critics_step_once_or_twice_along_one_gradient(agent: Any) -> None:
    state, num_steps = make_state(agent), 2 if isinstance(agent, DPMD) else 1
    after = update(agent, state, BATCH).state.critic
    assert int(after.opt_state[0].count) == num_steps
    # Adam's first step is the rate times the gradient's sign, and so is its second along it.
    change = jax.tree.map(lambda new, old: np.abs(new - old), after.params, state.critic.params)
    largest = max(float(leaf.max()) for leaf in jax.tree.leaves(change))
    np.testing.assert_allclose(largest, 0.03 * num_steps, rtol=1e-3)


@pytest.mark.parametrize(
    ("kind", "final", "rates"),
    [
        *((kind, 3e-5, (3e-4, 1.65e-4, 3e-5)) for kind in (SDAC, DPMD, QSM, DACER)),
        (QVPO, 5e-5, (3e-4, 1.75e-4, 5e-5)),
        (QVPO, 3e-4, (3e-4, 3e-4, 3e-4)),
    ],
)
def test_policy_rate_decays_to_its_final_value(
    kind: Any, final: float, rates: tuple[float, ...]
) -> None:
    optimiser = kind(SPEC, final_actor_learning_rate=final).actor_optimiser
    weight = jnp.zeros(())
    for count, rate in zip((25_000, 50_000, 75_000), rates, strict=True):
        adam, schedule = optimiser.init(weight)
        change, _ = optimiser.update(jnp.ones(()), (adam, schedule._replace(count=count)), weight)
        np.testing.assert_allclose(-change, rate, rtol=1e-4)


def test_exploration_noise_is_proportional_to_the_temperature() -> None:
    state, obs, noise = make_state(SDAC_AGENT), BATCH.obs, SDAC_AGENT.noise(KEY, 6)
    clipped = replace(SDAC_AGENT, clip_noise=True)
    chosen = np.asarray(SDAC_AGENT.policy(state, obs, noise, explore=False))
    for alpha in (4.0, 200.0):
        warm = state._replace(temperature=state.temperature._replace(params=jnp.log(alpha)))
        noisy = SDAC_AGENT.policy(warm, obs, noise, explore=True)
        np.testing.assert_allclose(noisy, chosen + 0.1 * alpha * noise.action, rtol=1e-4, atol=1e-4)
        held = clipped.policy(warm, obs, noise, explore=True)
        np.testing.assert_allclose(held, np.clip(noisy, -2.0, 2.0), atol=1e-5)
    assert float(jnp.abs(noisy).max()) > 2.5  # the released code does not clip


@pytest.mark.parametrize(("kind", "act_dim"), [(SDAC, 1), (DPMD, 17)])
def test_temperature_follows_a_fixed_curve(kind: Any, act_dim: int) -> None:
    sampler = kind(Spec(3, act_dim)).sampler

    def step(temperature: Any, updates: Array) -> tuple[Any, Array]:
        cooler = sampler.update_temperature(temperature, updates)
        return cooler, jnp.exp(cooler.params)

    alphas = jax.lax.scan(step, sampler.temperature.init(), 250 * jnp.arange(800))[1]
    seen = alphas[jnp.array([1, 50, 100, 200, 400, 800]) - 1]
    np.testing.assert_allclose(seen, [4.965, 3.558, 2.632, 1.653, 1.075, 0.984], atol=6e-4)


def test_temperature_moves_every_250_updates() -> None:
    start = SDAC_AGENT.temperature.init()
    move = jax.jit(SDAC_AGENT.sampler.update_temperature)
    np.testing.assert_allclose(jnp.exp(start.params), 5.0, rtol=1e-6)
    for updates, moves in ((0, True), (1, False), (249, False), (250, True), (500, True)):
        cooler = move(start, jnp.asarray(updates))
        assert (float(cooler.params) != float(start.params)) == moves


@pytest.mark.parametrize("kind", [SDAC, DPMD])
def test_zero_noise_scale_is_rejected(kind: Any) -> None:
    with pytest.raises(UserError, match="noise_scale is 0"):
        kind(SPEC, noise_scale=0.0)
