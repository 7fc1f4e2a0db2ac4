"""What several methods do, as parts they call: twin critics, and a temperature that is learned."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import optax

from langevinrl.learner import Learner, descend, init_learner
from langevinrl.losses import squared, td_backup, temperature
from langevinrl.networks import Critic
from langevinrl.samplers.choose import best_of, blockwise
from langevinrl.types import Array, Batch, Key, PyTree


@dataclass(frozen=True)
class TwinCritics:
    """Two value networks of one output, regressed on the lesser of their slow copies."""

    network: Critic
    optimiser: optax.GradientTransformation
    gamma: float
    reward_scale: float

    def init(self, key: Key) -> Learner:
        return init_learner(self.network.init(key), self.optimiser)

    def value(self, params: PyTree, obs: Array, action: Array) -> Array:
        """The lesser of the two values, (..., B)."""
        return blockwise(lambda some: self.network.apply(params, obs, some).min(axis=0), action)

    def choose(self, params: PyTree, obs: Array, candidates: Array) -> Array:
        """The most valuable of candidates (N, B, A) for each observation: (B, A)."""
        return best_of(candidates, lambda action: self.value(params, obs, action))

    def backup(self, learner: Learner, batch: Batch, next_action: Array) -> Array:
        """What both regress on: (B,)."""
        next_q = self.network.apply(learner.target_params, batch.next_obs, next_action)
        return td_backup(next_q, batch, self.gamma, self.reward_scale)

    def update_critic(
        self, learner: Learner, batch: Batch, backup: Array, at: PyTree | None = None
    ) -> Learner:
        """One step to the backup (B,), along the gradient `at` other weights if given."""

        def bellman(params: PyTree) -> Array:
            return squared(self.network.apply(params, batch.obs, batch.action) - backup[None])

        return descend(learner, self.optimiser, bellman, at)


@dataclass(frozen=True)
class Temperature:
    """log α as a learner of one number, moved until an entropy meets its target."""

    initial_alpha: float
    learning_rate: float
    target_entropy: float

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def init(self) -> Learner:
        return init_learner(jnp.log(jnp.asarray(self.initial_alpha)), self.optimiser)

    def update_temperature(self, learner: Learner, entropy: Array) -> Learner:
        """One step of log α at this entropy."""

        def balance(log_alpha: Array) -> Array:
            return temperature(log_alpha, entropy, self.target_entropy)

        return descend(learner, self.optimiser, balance)
