"""Soft values of experiments/soft_values.py, against numerical integration."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parts import KEY, SPEC, make_batch, make_state, update

from langevinrl.agents.nclql_auto import NCLQLAuto

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
from soft_values import SoftNCLQLAuto, log_integral  # type: ignore[import-not-found]


@pytest.mark.parametrize("num_axes", [1, 2])
@pytest.mark.parametrize("centre", [0.2, 0.97], ids=["inside", "at the bound"])
def test_integral_equals_numerical_integration(num_axes: int, centre: float) -> None:
    def log_density(action: jax.Array) -> jax.Array:
        peak = -jnp.square(action - centre).sum(axis=-1) / (2 * 0.15**2)
        return peak + 0.3 * jnp.sin(8 * action).sum(axis=-1)

    line = np.linspace(-1, 1, 801)
    grid = np.stack(np.meshgrid(*[line] * num_axes), axis=-1)
    exact = np.exp(np.asarray(log_density(jnp.asarray(grid))))
    for _ in range(num_axes):
        exact = np.trapezoid(exact, line, axis=-1)
    at, std = jnp.full((4_000, num_axes), centre), jnp.asarray(0.1)

    many = jax.random.uniform(KEY, (20_000, 1, num_axes))
    found = np.exp(log_integral(log_density, at[:1], std, 1.0, many))
    np.testing.assert_allclose(found, exact, rtol=0.02)
    few = jax.random.uniform(KEY, (4, 4_000, num_axes))
    mean = np.exp(log_integral(log_density, at, std, 1.0, few)).mean()
    np.testing.assert_allclose(mean, exact, rtol=0.02)  # unbiased with four particles, too


@pytest.mark.parametrize("soft", [False, True])
def test_soft_update_adds_the_bonus_to_the_backup(soft: bool) -> None:
    agent = SoftNCLQLAuto(SPEC, hidden=(8, 8), soft=soft)
    state, batch = make_state(agent), make_batch(16)
    state = state._replace(gradient=state.gradient.update(batch.action))
    plain = update(NCLQLAuto(SPEC, hidden=(8, 8)), state, batch)[1]["critic/backup"]
    bonus = agent.entropy_bonus(state, batch, KEY)
    assert abs(float(bonus.mean())) > 0.01
    expected = plain + soft * float((0.99 * batch.bootstrap * bonus).mean())
    np.testing.assert_allclose(update(agent, state, batch)[1]["critic/backup"], expected, rtol=1e-4)
