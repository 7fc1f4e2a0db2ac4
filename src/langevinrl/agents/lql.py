"""LQL: Langevin Q-learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import optax

from langevinrl.agents.contract import Common
from langevinrl.learner import Learner, descend, enrol, track
from langevinrl.losses import squared, td_backup
from langevinrl.networks import Activation, Critic, Field
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.langevin import Chain, StartLaw, constant_plan, draw
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner


@dataclass(frozen=True)
class LQL(Common):
    """Langevin Q-learning: actions walk up the critic's gradient; there is no actor."""

    inverse_temperature: float = 500.0  # w: drift of the chain along the critic's gradient
    num_steps: int = 20  # T: Langevin steps per action
    step_size: float = 1e-4  # ε: Langevin step size
    learning_rate: float = 1e-4  # Adam's rate for the critics
    activation: Activation = "mish"  # after each hidden layer
    start: StartLaw = "uniform"  # law of the first action: uniform (NC-LQL) or normal (bandit)
    clip: bool = True  # hold the chain in the action box at every step (released NC-LQL)
    normalise: bool = True  # follow the gradient's direction only (paper, App. E)
    best_of: int = 1  # N: chains per action, the most valuable kept

    @property
    def critic(self) -> Critic:
        return Critic(Field(self.spec, 1, self.hidden, self.activation))

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    @property
    def chain(self) -> Chain:
        plan = constant_plan(self.num_steps, self.step_size)
        return Chain(
            plan,
            self.inverse_temperature,
            self.spec.act_bound,
            self.start,
            self.clip,
            self.normalise,
        )

    def init(self, key: Key) -> State:
        return State(enrol(self.critic.init(key), self.optimiser))

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        del explore  # the chain is already the policy; evaluation samples it too
        return self._sample(state.critic.params, obs, key)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_action = self._sample(state.critic.params, batch.next_obs, key)
        next_q = self.critic.apply(state.critic.target_params, batch.next_obs, next_action)
        backup = td_backup(next_q, batch, self.gamma, self.reward_scale)

        def bellman(params: PyTree) -> Array:
            q = self.critic.apply(params, batch.obs, batch.action)
            return squared(q - backup[None])

        critic = descend(state.critic, self.optimiser, bellman)
        metrics = {"critic/bellman": critic.loss, "critic/backup": backup.mean()}
        return Update(State(track(critic, self.target_rate)), metrics)

    def _sample(self, params: PyTree, obs: Array, key: Key) -> Array:
        def value(action: Array, level: Array | None = None) -> Array:
            del level  # one landscape only
            return self.critic.apply(params, obs, action)

        candidates = draw(value, (self.best_of, len(obs), self.spec.act_dim), self.chain, key)
        return best_of(candidates, lambda action: value(action).min(axis=0))
