"""LQL: Langevin Q-learning.

Direct Soft-Policy Sampling via Langevin Dynamics (2026), arXiv 2602.07873.  No code was
released for LQL; what its description leaves open is as in the released NC-LQL code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import optax

from langevinrl.agents import scaling
from langevinrl.agents.contract import Common
from langevinrl.agents.parts import TwinCritics
from langevinrl.agents.presets import LQL_FAST
from langevinrl.agents.scaling import Scales
from langevinrl.learner import Learner, soft_update
from langevinrl.networks import Activation, Critic, Norm, StateActionNet
from langevinrl.samplers.langevin import Chain, StartLaw, constant_plan, draw, slopes
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    scales: Scales = Scales()  # what batches are scaled by, where that is asked for


@dataclass(frozen=True)
class LQL(Common):
    """Langevin Q-learning: actions walk up the critic's gradient; there is no actor.

    Twenty steps move an action by half a unit, a quarter of the box, so where the chain starts
    decides what it can reach.  The paper gives no law.  Of three tried (docs/results.md), uniform
    starts leave most actions where chance put them, and zero learned most.
    """

    presets: ClassVar[dict[str, dict[str, Any]]] = {"fast": LQL_FAST}

    inverse_temperature: float = 500.0  # w: drift of the chain along the critic's gradient
    step_size: float = 1e-4  # ε: Langevin step size
    num_steps: int = 20  # T: Langevin steps per action
    # law of the first action: zero learns best; or uniform (NC-LQL's code), normal (paper's bandit)
    start: StartLaw = "zero"
    clip: bool = True  # hold the chain in the action box at every step (code; paper silent)
    normalise: bool = True  # follow the gradient's direction only (paper, App. E)
    best_of: int = 1  # N: chains per action, the most valuable kept
    learning_rate: float = 1e-4  # Adam's rate for the critics
    activation: Activation = "mish"  # after each hidden layer
    critic_norm: Norm = "none"  # norm of critics' hidden layers: layer, or rms (without centring)
    obs_norm: bool = False  # scale observations by their running mean and deviation in replay
    reward_norm: bool = False  # divide rewards by the root mean square of the first in replay

    @property
    def critic(self) -> Critic:
        how = (self.hidden, self.activation, None, self.critic_norm)
        return Critic(StateActionNet(self.spec, 1, *how))

    @property
    def critics(self) -> TwinCritics:
        adam = optax.adam(self.learning_rate)
        return TwinCritics(self.critic, adam, self.gamma, self.reward_scale)

    @property
    def chain(self) -> Chain:
        plan = constant_plan(self.num_steps, self.step_size)
        w, bound = self.inverse_temperature, self.spec.act_bound
        return Chain(plan, w, bound, self.start, self.clip, self.normalise)

    def init(self, key: Key) -> State:
        scales = scaling.init(self.obs_norm, self.reward_norm, self.spec.obs_dim)
        return State(self.critics.init(key), scales)

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        del explore  # the chain is already the policy; evaluation samples it too
        return self._sample(state.critic.params, scaling.scale_obs(state.scales, obs), key)

    def refine(self, state: State, obs: Array, key: Key) -> Array:
        obs = scaling.scale_obs(state.scales, obs)
        return self._sample(state.critic.params, obs, key, noisy=False)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        scales, batch = scaling.measure_and_scale(state.scales, batch)
        next_action = self._sample(state.critic.params, batch.next_obs, key)
        backup = self.critics.backup(state.critic, batch, next_action)
        critic = self.critics.update_critic(state.critic, batch, backup)
        metrics = {"critic/bellman": critic.loss, "critic/backup": backup.mean()}
        return Update(State(soft_update(critic, self.target_rate), scales), metrics)

    def trace(self, state: State, obs: Array, key: Key, start: Array | None = None) -> Array:
        value = partial(self._value, state.critic.params, scaling.scale_obs(state.scales, obs))
        shape = (len(obs), self.spec.act_dim)
        return draw(value, shape, self.chain, key, start=start, trace=True)

    def trace_scores(self, state: State, obs: Array, path: Array) -> Array:
        value = partial(self._value, state.critic.params, scaling.scale_obs(state.scales, obs))
        return slopes(value, path, self.chain.plan)

    def policy_weight(self, state: State) -> float:
        return self.inverse_temperature

    def _sample(self, params: PyTree, obs: Array, key: Key, *, noisy: bool = True) -> Array:
        """The most valuable of N chains for each observation: (B, A)."""
        shape = (self.best_of, len(obs), self.spec.act_dim)
        chain = self.chain._replace(noisy=noisy)
        candidates = draw(partial(self._value, params, obs), shape, chain, key)
        return self.critics.choose(params, obs, candidates)

    def _value(self, params: PyTree, obs: Array, action: Array, level: Array) -> Array:
        """Both critics' values, whose sum the chain climbs; there is one level only."""
        del level
        return self.critic.apply(params, obs, action)
