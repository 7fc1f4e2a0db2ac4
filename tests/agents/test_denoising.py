"""What SDAC, DPMD and QVPO share: sizes, draws, targets, delays, rates and temperature."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from langevinrl.agents.dpmd import DPMD
from langevinrl.agents.qvpo import QVPO
from langevinrl.agents.sdac import SDAC
from langevinrl.errors import UserError
from langevinrl.learner import count_parameters, descend, init_learner
from langevinrl.losses import gaussian_entropy, td_backup
from langevinrl.types import Array, Batch, Spec

SPEC = Spec(obs_dim=3, act_dim=2, act_bound=2.0)
KEY = jax.random.key(5)
# Rates so large that before and after a step are far apart.
SMALL: dict[str, Any] = {
    "hidden": (8, 8), "num_steps": 3, "best_of": 3, "embedding_size": 4,
    "critic_learning_rate": 0.03, "actor_learning_rate": 0.03, "target_rate": 0.25,
}  # fmt: skip
AGENTS: list[Any] = [
    SDAC(SPEC, **SMALL, num_noises=4),
    DPMD(SPEC, **SMALL),
    QVPO(SPEC, **SMALL, weights="advantage", num_uniform=2),
]
SHAPES = ((6, 3), (6, 2), (6,), (6,), (6, 3))
BATCH = Batch(
    *(jax.random.normal(jax.random.fold_in(KEY, i), shape) for i, shape in enumerate(SHAPES)),
    row=jnp.arange(6),
    extra={},
)._replace(bootstrap=jnp.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0]))

each = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)


@cache
def apart(agent: Any) -> Any:
    """A state whose target copies differ from its weights."""
    init = jax.jit(agent.init)
    state, slow = init(jax.random.key(0)), init(jax.random.key(1))
    return state._replace(
        critic=state.critic._replace(target_params=slow.critic.params),
        actor=state.actor._replace(target_params=slow.actor.params),
    )


@cache
def updating(agent: Any) -> Any:
    """The agent's update, compiled once for all tests."""
    return jax.jit(agent.update)


@cache
def acting(agent: Any) -> Any:
    return jax.jit(agent.act, static_argnames="explore")


def chooser(agent: Any) -> Any:
    """How an agent takes the best of its chains."""
    return agent._choose if isinstance(agent, QVPO) else agent.policy.choose


def same(left: Any, right: Any) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("kind", [SDAC, DPMD, QVPO])
def test_parameter_totals_on_humanoid(kind: Any) -> None:
    state = jax.eval_shape(kind(Spec(376, 17)).init, KEY)
    assert count_parameters(state) == 707_395


@each
def test_acting_draws_from_the_slow_policy(agent: Any) -> None:
    state, obs = apart(agent), BATCH.obs
    act = acting(agent)
    action = act(state, obs, KEY, explore=False)
    swapped = state._replace(actor=state.actor._replace(params=state.actor.target_params))
    np.testing.assert_array_equal(action, act(swapped, obs, KEY, explore=False))
    chosen = jax.jit(chooser(agent))(state.actor.target_params, state.critic.params, obs, KEY)
    np.testing.assert_allclose(action, chosen, atol=1e-6)
    assert action.shape == (6, 2) and float(jnp.abs(action).max()) <= 2.0
    assert act(state, obs[:1], KEY, explore=True).shape == (1, 2)


def test_choice_is_the_candidate_both_critics_grant_most() -> None:
    agent: Any = AGENTS[0]
    single = replace(agent, best_of=1)
    critic, actor = apart(agent).critic.params, apart(agent).actor.params

    @jax.jit
    def draw() -> tuple[Array, ...]:
        candidates = agent.actor.sample(actor, BATCH.obs, 3, KEY)
        q = jnp.stack([agent.critic.apply(critic, BATCH.obs, c) for c in candidates])
        chosen, alone = (chooser(a)(actor, critic, BATCH.obs, KEY) for a in (agent, single))
        return candidates, q, chosen, alone, agent.actor.sample(actor, BATCH.obs, 1, KEY)[0]

    candidates, q, chosen, alone, only = (np.asarray(x) for x in draw())
    best = np.minimum(q[:, 0], q[:, 1]).argmax(axis=0)
    assert len(set(best)) > 1
    np.testing.assert_allclose(chosen, candidates[best, np.arange(6)], atol=1e-6)
    np.testing.assert_allclose(alone, only, atol=1e-6)


@each
def test_backup_has_the_fast_policy_and_the_slow_critics(agent: Any) -> None:
    state = apart(agent)
    next_key = jax.random.split(KEY)[0]

    @jax.jit
    def values() -> tuple[Array, Array]:
        if isinstance(agent, SDAC | DPMD):
            action = agent._explore(state, BATCH.next_obs, next_key)
        else:
            actor, critic = state.actor.params, state.critic.params
            action = chooser(agent)(actor, critic, BATCH.next_obs, next_key)
        next_q = agent.critic.apply(state.critic.target_params, BATCH.next_obs, action)
        return next_q, agent.critic.apply(state.critic.params, BATCH.obs, BATCH.action)

    next_q, q = values()
    backup = td_backup(next_q, BATCH, 0.99, 0.2)
    metrics = updating(agent)(state, BATCH, KEY).metrics
    np.testing.assert_allclose(metrics["critic/backup"], backup.mean(), rtol=1e-5)
    error = np.asarray(q) - np.asarray(backup)[None]
    np.testing.assert_allclose(metrics["critic/bellman"], (error**2).mean(axis=1).sum(), rtol=1e-4)


@each
def test_policy_and_targets_wait_and_critics_do_not(agent: Any) -> None:
    update = updating(agent)
    first = apart(agent)
    second, metrics, _ = update(first, BATCH, KEY)
    third, later, _ = update(second, BATCH, jax.random.key(8))
    fourth = update(third, BATCH, KEY).state
    assert [int(s.updates) for s in (first, second, third, fourth)] == [0, 1, 2, 3]
    assert not same(first.actor.params, second.actor.params)
    assert same(second.actor, third.actor) and not same(third.actor.params, fourth.actor.params)
    assert same(second.critic.target_params, third.critic.target_params)
    assert not same(second.critic.params, third.critic.params)
    assert all(np.isfinite(v) and v.shape == () for v in (*metrics.values(), *later.values()))
    for name in ("critic", "actor"):  # a quarter of the way, from after every step of this update
        before, after = getattr(first, name), getattr(second, name)
        moved = jax.tree.map(
            lambda old, new: 0.75 * old + 0.25 * new, before.target_params, after.params
        )
        for slow, by_hand in zip(
            jax.tree.leaves(after.target_params), jax.tree.leaves(moved), strict=True
        ):
            np.testing.assert_allclose(slow, by_hand, atol=1e-6)


@each
def test_a_policy_not_due_costs_no_chain(agent: Any) -> None:
    state = jax.eval_shape(agent.init, KEY)
    equations = jax.make_jaxpr(agent.update)(state, BATCH, KEY).eqns
    names = [equation.primitive.name for equation in equations]
    assert names.count("scan") == 1  # the target's; the policy's is inside a condition
    assert names.count("cond") >= 3


@each
def test_critic_steps_along_one_gradient(agent: Any) -> None:
    state, num_steps = apart(agent), 2 if isinstance(agent, DPMD) else 1
    after = updating(agent)(state, BATCH, KEY).state.critic
    assert int(after.opt_state[0].count) == num_steps
    # Adam's first step is the rate times the gradient's sign, and so is its second along it.
    change = jax.tree.map(lambda new, old: np.abs(new - old), after.params, state.critic.params)
    biggest = max(float(leaf.max()) for leaf in jax.tree.leaves(change))
    np.testing.assert_allclose(biggest, 0.03 * num_steps, rtol=1e-3)


def test_descent_along_a_gradient_taken_elsewhere() -> None:
    optimiser = optax.sgd(0.1)
    learner = init_learner(jnp.asarray(3.0), optimiser)
    after = descend(learner, optimiser, lambda x: x**2, at=jnp.asarray(5.0))
    np.testing.assert_allclose((after.params, after.loss), (3.0 - 0.1 * 10.0, 25.0), rtol=1e-6)


@pytest.mark.parametrize(
    ("agent", "rates"),
    [
        (SDAC(SPEC), (3e-4, 1.65e-4, 3e-5)),
        (DPMD(SPEC), (3e-4, 1.65e-4, 3e-5)),
        (QVPO(SPEC), (3e-4, 1.75e-4, 5e-5)),
        (QVPO(SPEC, final_actor_learning_rate=3e-4), (3e-4, 3e-4, 3e-4)),
    ],
)
def test_policy_rate_decays(agent: Any, rates: tuple[float, ...]) -> None:
    optimiser, weight = agent.actor_optimiser, jnp.zeros(())
    for count, rate in zip((25_000, 50_000, 75_000), rates, strict=True):
        adam, schedule = optimiser.init(weight)
        change, _ = optimiser.update(jnp.ones(()), (adam, schedule._replace(count=count)), weight)
        np.testing.assert_allclose(-change, rate, rtol=1e-4)


def test_exploration_noise_follows_the_temperature() -> None:
    agent, obs = AGENTS[0], jnp.tile(BATCH.obs[:1], (4_000, 1))
    state = apart(agent)
    held = replace(agent, clip_noise=True)

    @jax.jit
    def act(alpha: Array) -> tuple[Array, Array, Array]:
        warm = state._replace(temperature=state.temperature._replace(params=jnp.log(alpha)))
        chain_key = jax.random.split(KEY)[0]
        clean = agent.act(warm, obs, chain_key, explore=False)
        return (
            clean,
            agent.act(warm, obs, KEY, explore=True),
            held.act(warm, obs, KEY, explore=True),
        )

    clean, noisy, _ = act(jnp.asarray(4.0))
    np.testing.assert_allclose(np.asarray(noisy - clean).std(), 0.1 * 4.0, rtol=0.03)
    _, noisy, clipped = act(jnp.asarray(20.0))
    assert float(jnp.abs(noisy).max()) > 2.5  # the released code does not clip
    np.testing.assert_allclose(clipped, jnp.clip(noisy, -2.0, 2.0), atol=1e-5)


@pytest.mark.parametrize(("kind", "act_dim"), [(SDAC, 1), (DPMD, 17)])
def test_temperature_curve_needs_no_data(kind: Any, act_dim: int) -> None:
    agent: SDAC | DPMD = kind(Spec(3, act_dim))

    def fire(temperature: Any, updates: Array) -> tuple[Any, Array]:
        cooler = agent.policy.update_temperature(temperature, updates)
        return cooler, jnp.exp(cooler.params)

    alphas = jax.lax.scan(fire, agent.temperature.init(), 250 * jnp.arange(800))[1]
    seen = alphas[jnp.array([1, 50, 100, 200, 400, 800]) - 1]
    np.testing.assert_allclose(seen, [4.965, 3.558, 2.632, 1.653, 1.075, 0.984], atol=6e-4)


def test_temperature_waits_its_turn() -> None:
    agent: SDAC = AGENTS[0]
    start, cool = agent.temperature.init(), jax.jit(agent.policy.update_temperature)
    np.testing.assert_allclose(jnp.exp(start.params), 5.0, rtol=1e-6)
    for updates, moves in ((0, True), (1, False), (249, False), (250, True), (500, True)):
        cooler = cool(start, jnp.asarray(updates))
        assert (float(cooler.params) != float(start.params)) == moves


def test_temperature_needs_noise() -> None:
    with pytest.raises(UserError, match="noise_scale"):
        SDAC(SPEC, noise_scale=0.0)


def test_entropy_of_gaussian_noise() -> None:
    # One axis of spread 1 has log sqrt(2πe) = 1.4189385 nats; spread 0.1 takes log 10 away.
    np.testing.assert_allclose(gaussian_entropy(jnp.asarray(1.0), 1), 1.4189385, rtol=1e-6)
    np.testing.assert_allclose(
        gaussian_entropy(jnp.asarray(0.1), 3), 3 * (1.4189385 - 2.3025851), rtol=1e-5
    )
