"""What the methods with a policy network have in common: twin critics, and Adam for both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax
import optax

from langevinrl.agents.contract import Common
from langevinrl.learner import Learner, descend, enrol
from langevinrl.losses import squared, td_backup
from langevinrl.networks import Activation, Critic, Field
from langevinrl.samplers.choose import blockwise
from langevinrl.types import Array, Batch, Key, PyTree


class Network(Protocol):
    """Anything whose weights can be drawn."""

    def init(self, key: Key) -> PyTree: ...


@dataclass(frozen=True)
class ActorCritic(Common):
    """Twin critics regressed on the lesser of their slow copies, beside a policy of any kind."""

    critic_learning_rate: float = 3e-4  # Adam's rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's rate for the policy
    activation: Activation = "mish"  # after each hidden layer

    @property
    def critic(self) -> Critic:
        return Critic(Field(self.spec, 1, self.hidden, self.activation))

    @property
    def critic_optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.critic_learning_rate)

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.actor_learning_rate)

    def enrol_networks(self, actor: Network, key: Key) -> tuple[Learner, Learner]:
        """Fresh critics and policy."""
        critic_key, actor_key = jax.random.split(key)
        critic = enrol(self.critic.init(critic_key), self.critic_optimiser)
        return critic, enrol(actor.init(actor_key), self.actor_optimiser)

    def value(self, params: PyTree, obs: Array, action: Array) -> Array:
        """The lesser of the critics' values, (..., B)."""
        return blockwise(lambda some: self.critic.apply(params, obs, some).min(axis=0), action)

    def backup(self, critic: Learner, batch: Batch, next_action: Array) -> Array:
        """What the critics regress on: (B,)."""
        next_q = self.critic.apply(critic.target_params, batch.next_obs, next_action)
        return td_backup(next_q, batch, self.gamma, self.reward_scale)

    def regress(
        self, critic: Learner, batch: Batch, backup: Array, at: PyTree | None = None
    ) -> Learner:
        """One step of the critics to the backup, along the gradient `at` other weights if given."""

        def bellman(params: PyTree) -> Array:
            return squared(self.critic.apply(params, batch.obs, batch.action) - backup[None])

        return descend(critic, self.critic_optimiser, bellman, at)
