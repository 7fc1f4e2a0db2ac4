"""Chains that can be followed: every method's, and to the same end as unfollowed ones."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.samplers.diffusion import denoise, make_schedule, reverse
from langevinrl.samplers.flow import integrate
from langevinrl.samplers.langevin import constant_plan, walk
from langevinrl.studies.bandit.chains import trace
from langevinrl.studies.bandit.settings import TRAININGS, BanditConfig
from langevinrl.studies.bandit.training import run_settings
from langevinrl.types import Array, Spec

CONFIG = BanditConfig(quick=True).resolved()


@pytest.mark.parametrize("name", TRAININGS)
def test_chains_can_be_followed_from_any_start(name: str) -> None:
    made: Any = run_settings(CONFIG, name).make_agent(Spec(1, 2, 2.0))
    agent = dataclasses.replace(made, best_of=1)
    state = jax.eval_shape(agent.init, jax.random.key(0))
    start, key = jnp.zeros((7, 2)), jax.random.key(1)
    path = jax.eval_shape(partial(trace, agent), state, start, key)
    steps = {"sac": 1, "qsm": 50}.get(name, 10)
    assert path.shape == (steps + 1, 7, 2)


def test_a_followed_chain_ends_where_the_chain_ends() -> None:
    start, key = jnp.array([[0.5, -1.0], [1.5, 0.2]]), jax.random.key(2)
    schedule = make_schedule("vp", 3)

    def shrink(x: Array, t: Array) -> Array:
        return x * 0.3 + 0.01 * t

    def speed(x: Array, t: Array, rho: Array) -> Array:
        return -x * (1 + t + rho)

    chains = [
        partial(walk, shrink, start, constant_plan(3, 0.1), key),
        partial(reverse, shrink, schedule, start, key, 2.0),
        partial(denoise, shrink, schedule, start.shape, key, bound=2.0, start=start),
        partial(integrate, speed, start, 3),
    ]
    for chain in chains:
        path = chain(trace=True)
        assert path.shape == (4, 2, 2)
        np.testing.assert_array_equal(path[0], start)
        np.testing.assert_allclose(path[-1], chain(), atol=1e-6)
