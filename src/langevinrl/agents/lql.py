"""LQL: Langevin Q-learning.

Direct Soft-Policy Sampling via Langevin Dynamics (2026), arXiv 2602.07873. No code was released for
LQL; what its description leaves open follows the released NC-LQL code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import optax

from langevinrl.agents.contract import Common
from langevinrl.agents.parts import TwinCritics
from langevinrl.agents.presets import Presets, short
from langevinrl.learner import Learner, soft_update
from langevinrl.networks import Activation, Critic, StateActionNet
from langevinrl.samplers.langevin import (
    Plan,
    action_gradient,
    constant_plan,
    langevin_in_box,
    path_gradients,
    unit,
)
from langevinrl.samplers.noise import ChainNoise, StartDistribution, draw_chain_noise
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner


@dataclass(frozen=True)
class LQL(Common):
    """Langevin Q-learning: actions follow the critic's gradient; there is no actor.

    Twenty steps move an action by half a unit, a quarter of the box, so the start decides which
    actions can be reached. The paper does not specify it. Of the three tried, zero learned most
    (results/lql_start); uniform starts leave most actions where they began.
    """

    presets: ClassVar[Presets] = short(learning_rate=1e-3)

    inverse_temperature: float = 500.0  # w: drift of the chain along the critic's gradient
    step_size: float = 1e-4  # ε: Langevin step size
    num_steps: int = 20  # T: Langevin steps per action
    # distribution of the first action: zero, uniform (NC-LQL's code) or normal (paper's bandit)
    start: StartDistribution = "zero"
    clip: bool = True  # clip the chain to the action box at every step (code; paper silent)
    normalise: bool = True  # follow the gradient's direction only (paper, App. E)
    best_of: int = 1  # N: chains per action, the most valuable is kept
    learning_rate: float = 1e-4  # Adam's learning rate for the critics
    activation: Activation = "mish"  # after each hidden layer

    @property
    def critic(self) -> Critic:
        return Critic(StateActionNet(self.spec, 1, self.hidden, self.activation))

    @property
    def critics(self) -> TwinCritics:
        adam = optax.adam(self.learning_rate)
        return TwinCritics(self.critic, adam, self.gamma, self.reward_scale)

    @property
    def plan(self) -> Plan:
        return constant_plan(self.num_steps, self.step_size)

    def init(self, key: Key) -> State:
        return State(self.critics.init(key))

    def noise(self, key: Key, num: int) -> ChainNoise:
        return draw_chain_noise(key, num, self.num_steps, self.best_of, self.spec, self.start)

    def policy(self, state: State, obs: Array, noise: ChainNoise, *, explore: bool) -> Array:
        del explore  # the chain is the policy: evaluation samples it too
        return self._sample(state.critic.params, obs, *noise.for_chains())

    def refine(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        return self._sample(state.critic.params, obs, noise.for_chains()[0], None)

    def _sample(self, params: PyTree, obs: Array, start: Array, steps: Array | None) -> Array:
        """Return the most valuable of N chains for each observation: (B, A)."""
        candidates = self._chain(params, obs, start, steps)
        return self.critics.choose(params, obs, candidates)

    def _chain(
        self, params: PyTree, obs: Array, start: Array, steps: Array | None, trace: bool = False
    ) -> Array:
        """Run Langevin dynamics along the critics' gradient (Def. 1)."""
        q = partial(self._value, params, obs)

        def score(action: Array, level: Array) -> Array:  # w ∇_a (Q₁ + Q₂), or along its direction
            gradient = action_gradient(q, action, level)
            return self.inverse_temperature * (unit(gradient) if self.normalise else gradient)

        bound, clip = self.spec.act_bound, self.clip
        return langevin_in_box(score, start, self.plan, steps, bound, clip=clip, trace=trace)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        noise = self.noise(key, len(batch.next_obs))
        next_action = self._sample(state.critic.params, batch.next_obs, *noise.for_chains())
        backup = self.critics.backup(state.critic, batch, next_action)
        critic = self.critics.update_critic(state.critic, batch, backup)
        metrics = {"critic/bellman": critic.loss, "critic/backup": backup.mean()}
        return Update(State(soft_update(critic, self.target_rate)), metrics)

    def trace(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        return self._chain(state.critic.params, obs, *noise.first_chain(), trace=True)

    def trace_scores(self, state: State, obs: Array, path: Array) -> Array:
        return path_gradients(partial(self._value, state.critic.params, obs), path, self.plan)

    def policy_weight(self, state: State) -> float:
        return self.inverse_temperature

    def _value(self, params: PyTree, obs: Array, action: Array, level: Array) -> Array:
        """Return both critics' values; there is one level only."""
        del level
        return self.critic.apply(params, obs, action)
