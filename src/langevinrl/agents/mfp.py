"""MFP: mean-flow policy.

Mean Flow Policy with Instantaneous Velocity Constraint for One-step Action Generation (2026).
There is no public code.  From published summaries of the method: the mean-flow identity, the
constraint on the instantaneous velocity, best-of-N as the only improvement.  Inferred: twin
critics with target copies and their minimum, raw times as inputs, two uniform times in order, the
clip to the action box, the order critics, policy, targets, and that the candidates to imitate are
scored by critics already updated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import jax
import optax

from langevinrl.actors import MeanFlowActor
from langevinrl.agents.contract import Common
from langevinrl.agents.parts import TwinCritics
from langevinrl.agents.presets import Presets, short_with_actor
from langevinrl.learner import Learner, descend, init_learner, soft_update
from langevinrl.networks import MLP, Activation, Critic, StateActionNet
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner


@dataclass(frozen=True)
class MFP(Common):
    """Mean-flow policy: maps noise to action in a few steps and imitates its best candidates."""

    presets: ClassVar[Presets] = short_with_actor(1e-3)

    flow_steps: int = (
        20  # K: flow steps per action; 20 is the paper's table, 1 the method as published
    )
    constraint_weight: float = 1.0  # λ: weight of the instantaneous-velocity constraint
    imitate: Literal["best", "replay"] = "best"  # flow to: best candidate, or one summary's replay
    best_of: int = 32  # N: candidates per action, the most valuable is kept
    critic_learning_rate: float = 1e-4  # Adam's learning rate for the critics
    actor_learning_rate: float = 1e-4  # Adam's learning rate for the policy
    activation: Activation = "gelu"  # after each hidden layer

    @property
    def critics(self) -> TwinCritics:
        network = Critic(StateActionNet(self.spec, 1, self.hidden, self.activation))
        adam = optax.adam(self.critic_learning_rate)
        return TwinCritics(network, adam, self.gamma, self.reward_scale)

    @property
    def actor(self) -> MeanFlowActor:
        inputs = (self.spec.obs_dim, self.spec.act_dim, 1, 1)
        network = MLP(inputs, self.spec.act_dim, self.hidden, self.activation)
        return MeanFlowActor(network, self.flow_steps, self.spec.act_bound)

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.actor_learning_rate)

    def init(self, key: Key) -> State:
        critic_key, actor_key = jax.random.split(key)
        actor = init_learner(self.actor.init(actor_key), self.actor_optimiser)
        return State(self.critics.init(critic_key), actor)

    def noise(self, key: Key, num: int) -> Array:
        return self.actor.noise(key, num, self.best_of)

    def policy(self, state: State, obs: Array, noise: Array, *, explore: bool) -> Array:
        del explore  # the flow's own noise is the exploration; evaluation samples it too
        return self._choose(state.actor.params, state.critic.params, obs, noise)

    def refine(self, state: State, obs: Array, noise: Array) -> Array:
        return self.policy(state, obs, noise, explore=False)  # a flow has no noise after its start

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, best_key, flow_key = jax.random.split(key, 3)
        params = state.actor.params
        noise = self.noise(next_key, len(batch.next_obs))
        next_action = self._choose(params, state.critic.params, batch.next_obs, noise)
        backup = self.critics.backup(state.critic, batch, next_action)
        critic = self.critics.update_critic(state.critic, batch, backup)
        if self.imitate == "best":
            noise = self.noise(best_key, len(batch.obs))
            model = self._choose(params, critic.params, batch.obs, noise)
        else:
            model = batch.action

        def imitation(params: PyTree) -> Array:
            return self.actor.loss(params, batch.obs, model, self.constraint_weight, flow_key)

        actor = descend(state.actor, self.actor_optimiser, imitation)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/imitation": actor.loss,
        }
        return Update(State(soft_update(critic, self.target_rate), actor), metrics)

    def trace(self, state: State, obs: Array, noise: Array) -> Array:
        return self.actor.trace(state.actor.params, obs, noise)

    def _choose(self, actor: PyTree, critic: PyTree, obs: Array, noise: Array) -> Array:
        """Return the most valuable of N flows for each observation: (B, A)."""
        return self.critics.choose(critic, obs, self.actor.sample(actor, obs, noise))
