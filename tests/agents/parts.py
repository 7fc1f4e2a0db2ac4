"""What tests of several agents build and compare."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from langevinrl.learner import Learner
from langevinrl.types import Batch, Spec

SPEC = Spec(obs_dim=3, act_dim=2, act_bound=2.0)


def make_batch(size: int) -> Batch:
    """Transitions of a task of those sizes; some truly end."""
    rng = np.random.default_rng(0)
    return Batch(
        obs=jnp.asarray(rng.normal(size=(size, 3)), jnp.float32),
        action=jnp.asarray(rng.uniform(-2, 2, size=(size, 2)), jnp.float32),
        reward=jnp.asarray(rng.normal(size=size), jnp.float32),
        bootstrap=jnp.asarray(rng.integers(0, 2, size), jnp.float32),
        next_obs=jnp.asarray(rng.normal(size=(size, 3)), jnp.float32),
        row=jnp.arange(size),
        extra={},
    )


def set_apart(learner: Learner) -> Learner:
    """The same with a target copy that differs from the weights, so that mixing them up shows."""
    moved = jax.tree.map(lambda x: np.asarray(x) + np.float32(0.1), learner.params)
    return learner._replace(target_params=moved)


def gradient(opt_state: optax.OptState) -> Any:
    """What Adam was given on its first step: a tenth of it is its first moment."""
    return jax.tree.map(lambda mu: 10 * mu, optax.tree_utils.tree_get(opt_state, "mu"))


def close(left: Any, right: Any) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in pairs)
