"""The straightforward versions compute the same numbers as the agents they are timed against."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langevinrl.bench.agents import draw_batch
from langevinrl.bench.plain import PLAIN
from langevinrl.learner import Learner
from langevinrl.registry import METHODS
from langevinrl.types import Spec

ROWS = 8
SMALL: dict[str, dict[str, Any]] = {
    # Long steps, and chains that do not all end in one corner: so it shows which weights are used.
    "nclql": {"num_levels": 3, "learning_rate": 0.01, "inverse_temperature": 10.0},
    "sac": {"critic_learning_rate": 0.01, "actor_learning_rate": 0.01},
}


def make_state(agent: Any) -> Any:
    """A state whose target weights and temperature differ from the initial ones."""
    state, other = (jax.jit(agent.init)(jax.random.key(seed)) for seed in (0, 1))
    learners = {
        name: learner._replace(target_params=getattr(other, name).params)
        for name, learner in state._asdict().items()
        if isinstance(learner, Learner)
    }
    if "temperature" in learners:
        learners["temperature"] = learners["temperature"]._replace(params=jnp.asarray(0.4))
    return state._replace(**learners)


def assert_close(a: Any, b: Any) -> None:
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5), a, b)


@pytest.mark.parametrize("name", PLAIN)
def test_update_and_action_equal_the_agents(name: str) -> None:
    spec = Spec(5, 2, act_bound=1.5)
    agent: Any = METHODS[name].load()(spec, hidden=(16, 16), **SMALL[name])
    state, batch = make_state(agent), draw_batch(agent, ROWS)
    batch = batch._replace(bootstrap=jnp.arange(ROWS, dtype=jnp.float32) % 3 / 2)
    key = jax.random.key(2)
    update = jax.jit(agent.update)(state, batch, key)
    assert_close(update, jax.jit(partial(PLAIN[name].update, agent))(state, batch, key))
    act = jax.jit(partial(agent.act, explore=True))
    plain_act = jax.jit(partial(PLAIN[name].act, agent))
    assert_close(act(update.state, batch.obs, key), plain_act(update.state, batch.obs, key))
