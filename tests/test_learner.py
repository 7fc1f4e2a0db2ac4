"""Optimiser steps, target copies and delayed updates of one network."""

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


def test_descend_takes_one_step_and_stores_the_loss_before_it() -> None:
    fresh = init_learner(jnp.array([3.0, -1.0]), optax.sgd(0.1))
    learner = descend(fresh, optax.sgd(0.1), quadratic)
    np.testing.assert_allclose(learner.params, [2.4, -0.8], rtol=1e-6)
    assert float(learner.loss) == pytest.approx(10.0)
    np.testing.assert_array_equal(learner.target_params, [3.0, -1.0])
    # Along the gradient at other weights.
    elsewhere = descend(fresh, optax.sgd(0.1), quadratic, at=jnp.array([5.0, 0.0]))
    np.testing.assert_allclose(elsewhere.params, [2.0, -1.0], rtol=1e-6)
    assert float(elsewhere.loss) == pytest.approx(25.0)


def test_soft_update_moves_the_target_by_tau_of_the_difference() -> None:
    learner = init_learner(jnp.array([1.0]), optax.sgd(0.1))._replace(params=jnp.array([3.0]))
    assert float(soft_update(learner, 0.005).target_params[0]) == pytest.approx(1.01)


def test_when_skips_a_step_that_is_not_due() -> None:
    optimiser = optax.adam(1e-2)
    learner = init_learner(jnp.array([1.0]), optimiser)

    def step(one: Learner) -> Learner:
        return descend(one, optimiser, quadratic)

    assert float(when(jnp.array(False), step, learner).params[0]) == 1.0
    assert float(when(jnp.array(True), step, learner).params[0]) < 1.0
    # A branch: a step that is not due costs nothing.
    assert "cond" in str(jax.make_jaxpr(lambda d: when(d, step, learner))(jnp.array(True)))


def test_decaying_adam_counts_its_own_steps() -> None:
    schedule = optax.linear_schedule(3e-4, 3e-5, 50_000, 25_000)
    rates = [float(schedule(count)) for count in (0, 25_000, 50_000, 75_000, 100_000)]
    np.testing.assert_allclose(rates, [3e-4, 3e-4, 1.65e-4, 3e-5, 3e-5], rtol=1e-5)
    # Under a constant gradient Adam moves by its rate at every step.
    optimiser = decaying_adam(0.1, 0.05, start=2)
    state, moves = optimiser.init(jnp.zeros(1)), []
    for _ in range(8):
        change, state = optimiser.update(jnp.ones(1), state)
        moves.append(float(-change[0]))
    np.testing.assert_allclose(moves, [0.1, 0.1, 0.1, 0.0875, 0.075, 0.0625, 0.05, 0.05], rtol=1e-4)


def test_gradient_of_each_member_is_clipped_by_its_own_norm() -> None:
    grads = {"a": jnp.array([[3.0, 0.0], [0.3, 0.0]]), "b": jnp.array([[4.0], [0.4]])}
    clip = clip_members(2.0)
    clipped, _ = clip.update(grads, clip.init(grads))
    np.testing.assert_allclose(clipped["a"], [[1.2, 0.0], [0.3, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(clipped["b"], [[1.6], [0.4]], rtol=1e-6)


def test_scalar_temperatures_are_not_counted() -> None:
    critic = init_learner({"w": jnp.zeros((3, 4)), "b": jnp.zeros(4)}, optax.sgd(0.1))
    alpha = init_learner(jnp.zeros(()), optax.sgd(0.1))
    assert count_parameters((critic, alpha, jnp.zeros(7))) == 16
