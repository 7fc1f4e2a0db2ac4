"""Networks in training: optimiser steps and target copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.types import Array, PyTree


class Learner(NamedTuple):
    """A network in training: weights, target copy, optimiser state and last loss."""

    params: PyTree
    target_params: PyTree
    opt_state: optax.OptState
    loss: Array  # before the last step; kept for logging updates that skip this learner


def init_learner(params: PyTree, optimiser: optax.GradientTransformation) -> Learner:
    """Return a fresh learner whose target copy equals the weights."""
    return Learner(params, params, optimiser.init(params), jnp.zeros(()))


def descend(
    learner: Learner,
    optimiser: optax.GradientTransformation,
    loss: Callable[[PyTree], Array],
    at: PyTree | None = None,
) -> Learner:
    """Take one optimiser step on `loss(params)`, with the gradient `at` other weights if given."""
    value, grads = jax.value_and_grad(loss)(learner.params if at is None else at)
    change, opt_state = optimiser.update(grads, learner.opt_state, learner.params)
    params = optax.apply_updates(learner.params, change)
    return learner._replace(params=params, opt_state=opt_state, loss=value)


def soft_update(learner: Learner, target_rate: float) -> Learner:
    """Move the target copy a fraction `target_rate` (τ) of the way to the weights."""
    target_params = optax.incremental_update(learner.params, learner.target_params, target_rate)
    return learner._replace(target_params=target_params)


def update_target(due: Array, learner: Learner, target_rate: float) -> Learner:
    """Move the target copy if `due`."""
    return when(due, lambda moved: soft_update(moved, target_rate), learner)


def when(due: Array, step: Callable[[Learner], Learner], learner: Learner) -> Learner:
    """Return `step(learner)` if `due`, else the learner; the step is skipped, not masked."""
    return jax.lax.cond(due, step, lambda unchanged: unchanged, learner)


def decaying_adam(
    learning_rate: float, final_rate: float, start: int
) -> optax.GradientTransformation:
    """Return Adam whose rate falls linearly after `start` steps, for twice as many steps."""
    return optax.adam(optax.linear_schedule(learning_rate, final_rate, 2 * start, start))


def clip_members(max_norm: float) -> optax.GradientTransformation:
    """Return a transformation that clips each ensemble member by its own norm."""
    clip = optax.clip_by_global_norm(max_norm)

    def update(
        grads: PyTree, state: optax.OptState, params: PyTree | None = None
    ) -> tuple[PyTree, optax.OptState]:
        del params
        return jax.vmap(lambda member: clip.update(member, state)[0])(grads), state

    return optax.GradientTransformation(clip.init, update)


def without_optimiser(state: PyTree) -> PyTree:
    """Return the state without optimiser state, which policies do not use."""

    def light(node: PyTree) -> PyTree:
        return node._replace(opt_state=None) if isinstance(node, Learner) else node

    return jax.tree.map(light, state, is_leaf=lambda node: isinstance(node, Learner))


def count_parameters(state: PyTree) -> int:
    """Count the online weights of a state's learners, without scalar temperatures."""
    learners = jax.tree.leaves(state, is_leaf=lambda node: isinstance(node, Learner))
    weights = [jax.tree.leaves(node.params) for node in learners if isinstance(node, Learner)]
    return sum(leaf.size for leaves in weights for leaf in leaves if leaf.ndim)
