"""A network in training, step by step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from langevinrl.learner import (
    Learner,
    clip_members,
    count_parameters,
    decaying_adam,
    descend,
    init_learner,
    soft_update,
    when,
)
from langevinrl.types import Array


def quadratic(params: Array) -> Array:
    return jnp.square(params).sum()


def test_descend_steps_once_and_remembers_the_loss_before() -> None:
    fresh = init_learner(jnp.array([3.0, -1.0]), optax.sgd(0.1))
    learner = descend(fresh, optax.sgd(0.1), quadratic)
    np.testing.assert_allclose(learner.params, [2.4, -0.8], rtol=1e-6)
    assert float(learner.loss) == pytest.approx(10.0)
    np.testing.assert_array_equal(learner.target_params, [3.0, -1.0])


def test_track_moves_the_target_by_tau_of_the_difference() -> None:
    learner = init_learner(jnp.array([1.0]), optax.sgd(0.1))._replace(params=jnp.array([3.0]))
    assert float(soft_update(learner, 0.005).target_params[0]) == pytest.approx(1.01)


def test_when_does_the_work_only_where_it_is_due() -> None:
    optimiser = optax.adam(1e-2)
    learner = init_learner(jnp.array([1.0]), optimiser)

    def step(one: Learner) -> Learner:
        return descend(one, optimiser, quadratic)

    assert float(when(jnp.array(False), step, learner).params[0]) == 1.0
    assert float(when(jnp.array(True), step, learner).params[0]) < 1.0
    # A real branch, not a choice between two results.
    assert "cond" in str(jax.make_jaxpr(lambda d: when(d, step, learner))(jnp.array(True)))


def test_policy_decay_counts_its_own_updates() -> None:
    schedule = optax.linear_schedule(3e-4, 3e-5, 50_000, 25_000)
    rates = [float(schedule(count)) for count in (0, 25_000, 50_000, 75_000, 100_000)]
    np.testing.assert_allclose(rates, [3e-4, 3e-4, 1.65e-4, 3e-5, 3e-5], rtol=1e-5)
    # The optimiser follows it: under a constant gradient Adam moves by its rate at every update.
    optimiser = decaying_adam(0.1, 0.05, start=2)
    state, moves = optimiser.init(jnp.zeros(1)), []
    for _ in range(8):
        change, state = optimiser.update(jnp.ones(1), state)
        moves.append(float(-change[0]))
    np.testing.assert_allclose(moves, [0.1, 0.1, 0.1, 0.0875, 0.075, 0.0625, 0.05, 0.05], rtol=1e-4)


def test_each_member_is_clipped_by_its_own_norm() -> None:
    grads = {"a": jnp.array([[3.0, 0.0], [0.3, 0.0]]), "b": jnp.array([[4.0], [0.4]])}
    clip = clip_members(2.0)
    clipped, _ = clip.update(grads, clip.init(grads))
    np.testing.assert_allclose(clipped["a"], [[1.2, 0.0], [0.3, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(clipped["b"], [[1.6], [0.4]], rtol=1e-6)


def test_scalar_temperatures_are_not_counted() -> None:
    critic = init_learner({"w": jnp.zeros((3, 4)), "b": jnp.zeros(4)}, optax.sgd(0.1))
    alpha = init_learner(jnp.zeros(()), optax.sgd(0.1))
    assert count_parameters((critic, alpha, jnp.zeros(7))) == 16
