"""A network in training, and what is done to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.types import Array, PyTree


class Learner(NamedTuple):
    """A network in training: weights, their slow (target) copy, optimiser state, last loss."""

    params: PyTree
    target_params: PyTree
    opt_state: optax.OptState
    loss: Array  # before the last step; carried so that a delayed learner still has one to report


def init_learner(params: PyTree, optimiser: optax.GradientTransformation) -> Learner:
    """A fresh learner; the target copy starts equal to the weights."""
    return Learner(params, params, optimiser.init(params), jnp.zeros(()))


def descend(
    learner: Learner,
    optimiser: optax.GradientTransformation,
    loss: Callable[[PyTree], Array],
    at: PyTree | None = None,
) -> Learner:
    """One optimiser step down `loss(params)`; along its gradient `at` other weights, if given."""
    value, grads = jax.value_and_grad(loss)(learner.params if at is None else at)
    change, opt_state = optimiser.update(grads, learner.opt_state, learner.params)
    params = optax.apply_updates(learner.params, change)
    return learner._replace(params=params, opt_state=opt_state, loss=value)


def soft_update(learner: Learner, target_rate: float) -> Learner:
    """Move the target copy a fraction `target_rate` (τ) of the way to the weights."""
    target_params = optax.incremental_update(learner.params, learner.target_params, target_rate)
    return learner._replace(target_params=target_params)


def update_target(due: Array, learner: Learner, target_rate: float) -> Learner:
    """Move the target copy, on the updates where that is due."""
    return when(due, lambda moved: soft_update(moved, target_rate), learner)


def when(due: Array, step: Callable[[Learner], Learner], learner: Learner) -> Learner:
    """`step(learner)` on the updates where it is due; on the others its work is not done at all."""
    return jax.lax.cond(due, step, lambda unchanged: unchanged, learner)


def decaying_adam(
    learning_rate: float, final_rate: float, start: int
) -> optax.GradientTransformation:
    """Adam whose rate falls linearly, after `start` of its steps and for twice as many more."""
    return optax.adam(optax.linear_schedule(learning_rate, final_rate, 2 * start, start))


def clip_members(max_norm: float) -> optax.GradientTransformation:
    """Clips each ensemble member by its own norm, as if it were trained alone."""
    clip = optax.clip_by_global_norm(max_norm)

    def update(
        grads: PyTree, state: optax.OptState, params: PyTree | None = None
    ) -> tuple[PyTree, optax.OptState]:
        del params
        return jax.vmap(lambda member: clip.update(member, state)[0])(grads), state

    return optax.GradientTransformation(clip.init, update)


def count_parameters(state: PyTree) -> int:
    """Online weights of a state's learners; scalar temperatures do not count."""
    learners = jax.tree.leaves(state, is_leaf=lambda node: isinstance(node, Learner))
    weights = [jax.tree.leaves(node.params) for node in learners if isinstance(node, Learner)]
    return sum(leaf.size for leaves in weights for leaf in leaves if leaf.ndim)
