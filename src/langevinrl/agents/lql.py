"""LQL: Langevin Q-learning."""

from __future__ import annotations

from dataclasses import dataclass

from langevinrl.agents.langevin import Langevin, State
from langevinrl.learner import descend, track
from langevinrl.losses import squared, td_backup
from langevinrl.samplers.langevin import Plan, constant_plan
from langevinrl.types import Array, Batch, Key, PyTree, Update


@dataclass(frozen=True)
class LQL(Langevin):
    """Langevin Q-learning: actions walk up the critic's gradient; there is no actor."""

    num_steps: int = 20  # T: Langevin steps per action

    @property
    def plan(self) -> Plan:
        return constant_plan(self.num_steps, self.step_size)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_action = self.sample(state.critic.params, batch.next_obs, key)
        next_q = self.critic.apply(state.critic.target_params, batch.next_obs, next_action)
        backup = td_backup(next_q, batch, self.gamma, self.reward_scale)

        def bellman(params: PyTree) -> Array:
            return squared(self.critic.apply(params, batch.obs, batch.action) - backup[None])

        critic = descend(state.critic, self.optimiser, bellman)
        metrics = {"critic/bellman": critic.loss, "critic/backup": backup.mean()}
        return Update(State(track(critic, self.target_rate)), metrics)
