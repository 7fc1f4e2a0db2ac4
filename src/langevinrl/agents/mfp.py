"""MFP: mean-flow policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax

from langevinrl.actors import MeanFlowActor
from langevinrl.agents.actor_critic import ActorCritic
from langevinrl.learner import Learner, descend, track
from langevinrl.networks import MLP, Activation
from langevinrl.samplers.choose import best_of
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner


@dataclass(frozen=True)
class MFP(ActorCritic):
    """Mean-flow policy: jumps from noise to action, and imitates the best of its own candidates.

    There is no public code.  From published summaries of the method: the mean-flow identity, the
    constraint on the instantaneous velocity, best-of-N as the only improvement.  Inferred: twin
    critics with target copies and their minimum, raw times as inputs, two uniform times in order,
    the clip to the action box, the order critics, policy, targets, and that the candidates to
    imitate are scored by critics already updated.
    """

    flow_steps: int = 20  # K: jumps per action; 20 is the paper's table, 1 the method as published
    constraint_weight: float = 1.0  # λ: weight of the instantaneous-velocity constraint
    imitate: Literal["best", "replay"] = "best"  # flow to: best candidate, or one summary's replay
    critic_learning_rate: float = 1e-4  # Adam's rate for the critics
    actor_learning_rate: float = 1e-4  # Adam's rate for the policy
    activation: Activation = "gelu"  # after each hidden layer
    best_of: int = 32  # N: candidates per action, the most valuable kept

    @property
    def actor(self) -> MeanFlowActor:
        inputs = (self.spec.obs_dim, self.spec.act_dim, 1, 1)
        network = MLP(inputs, self.spec.act_dim, self.hidden, self.activation)
        return MeanFlowActor(network, self.flow_steps, self.spec.act_bound)

    def init(self, key: Key) -> State:
        return State(*self.enrol_networks(self.actor, key))

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        del explore  # the flow's own noise is the exploration; evaluation samples it too
        return self._sample(state, obs, key)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, best_key, flow_key = jax.random.split(key, 3)
        next_action = self._sample(state, batch.next_obs, next_key)
        backup = self.backup(state.critic, batch, next_action)
        critic = self.regress(state.critic, batch, backup)
        if self.imitate == "best":
            model = self._sample(state._replace(critic=critic), batch.obs, best_key)
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
        return Update(State(track(critic, self.target_rate), actor), metrics)

    def _sample(self, state: State, obs: Array, key: Key) -> Array:
        candidates = self.actor.sample(state.actor.params, obs, self.best_of, key)
        return best_of(candidates, lambda a: self.value(state.critic.params, obs, a))
