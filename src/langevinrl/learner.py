"""A network in training, and the three things done to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.types import Array, PyTree


class Learner(NamedTuple):
    """A network in training: weights, their slow (target) copy, the optimiser's state."""

    params: PyTree
    target_params: PyTree
    opt_state: optax.OptState


def enrol(params: PyTree, optimiser: optax.GradientTransformation) -> Learner:
    """A fresh learner; the target copy starts equal to the weights."""
    return Learner(params, params, optimiser.init(params))


def descend(
    learner: Learner, optimiser: optax.GradientTransformation, loss: Callable[[PyTree], Array]
) -> tuple[Learner, Array]:
    """One optimiser step down `loss(params)`; returns the loss before it."""
    value, grads = jax.value_and_grad(loss)(learner.params)
    change, opt_state = optimiser.update(grads, learner.opt_state, learner.params)
    params = optax.apply_updates(learner.params, change)
    return learner._replace(params=params, opt_state=opt_state), value


def track(learner: Learner, target_rate: float) -> Learner:
    """Move the target copy a fraction `target_rate` of the way to the weights."""
    target_params = optax.incremental_update(learner.params, learner.target_params, target_rate)
    return learner._replace(target_params=target_params)
