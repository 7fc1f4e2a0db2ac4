"""SAC: soft actor-critic.

Soft Actor-Critic Algorithms and Applications (2018), arXiv 1812.05905.  With `squash_correction`
off, its updates are those of the SDAC project's released baseline (tests/parity).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import TanhGaussianActor
from langevinrl.agents import scaling
from langevinrl.agents.contract import Common
from langevinrl.agents.parts import Temperature, TwinCritics
from langevinrl.agents.presets import SAC_FAST
from langevinrl.agents.scaling import Scales
from langevinrl.learner import Learner, descend, init_learner, soft_update
from langevinrl.losses import td_backup
from langevinrl.networks import MLP, Activation, Critic, Norm, StateActionNet
from langevinrl.samplers.choose import best_of
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    temperature: Learner  # params is the scalar log α
    scales: Scales = Scales()  # what batches are scaled by, where that is asked for


@dataclass(frozen=True)
class SAC(Common):
    """Soft actor-critic: a squashed Gaussian climbs the critics and is paid for its entropy."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {"fast": SAC_FAST}

    critic_learning_rate: float = 3e-4  # Adam's rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's rate for the policy
    temperature_learning_rate: float = 3e-4  # Adam's rate for log α
    initial_alpha: float = math.e  # α at the start: log α = 1 (released baseline code)
    target_entropy_scale: float = 1.0  # H̄ = -scale x action axes (paper: -m)
    squash_correction: bool = True  # tanh counts in log π (released baseline code: it does not)
    activation: Activation = "gelu"  # after each hidden layer
    best_of: int = 1  # N: draws per action, the most valuable kept; evaluation takes the mode
    critic_norm: Norm = "none"  # norm of critics' hidden layers: layer, or rms (without centring)
    obs_norm: bool = False  # scale observations by their running mean and deviation in replay
    reward_norm: bool = False  # divide rewards by the root mean square of the first in replay

    @property
    def critic(self) -> Critic:
        how = (self.hidden, self.activation, None, self.critic_norm)
        return Critic(StateActionNet(self.spec, 1, *how))

    @property
    def critics(self) -> TwinCritics:
        adam = optax.adam(self.critic_learning_rate)
        return TwinCritics(self.critic, adam, self.gamma, self.reward_scale)

    @property
    def actor(self) -> TanhGaussianActor:
        spec = self.spec
        network = MLP((spec.obs_dim,), 2 * spec.act_dim, self.hidden, self.activation)
        return TanhGaussianActor(network, spec.act_bound, self.squash_correction)

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.actor_learning_rate)

    @property
    def temperature(self) -> Temperature:
        target_entropy = -self.target_entropy_scale * self.spec.act_dim
        return Temperature(self.initial_alpha, self.temperature_learning_rate, target_entropy)

    def init(self, key: Key) -> State:
        critic_key, actor_key = jax.random.split(key)
        actor = init_learner(self.actor.init(actor_key), self.actor_optimiser)
        scales = scaling.init(self.obs_norm, self.reward_norm, self.spec.obs_dim)
        return State(self.critics.init(critic_key), actor, self.temperature.init(), scales)

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        obs = scaling.scale_obs(state.scales, obs)
        if not explore:
            return self.actor.mode(state.actor.params, obs)
        return self._draw(state, obs, key)[0]

    def refine(self, state: State, obs: Array, key: Key) -> Array:
        return self.act(state, obs, key, explore=False)  # the mode, without chance

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, noise_key = jax.random.split(key)
        alpha = jnp.exp(state.temperature.params)
        scales, batch = scaling.measure_and_scale(state.scales, batch)
        next_action, next_log_prob = self._draw(state, batch.next_obs, next_key)
        next_q = self.critic.apply(state.critic.target_params, batch.next_obs, next_action)
        soft_q = next_q - alpha * next_log_prob[None]
        backup = td_backup(soft_q, batch, self.gamma, self.reward_scale)

        critic = self.critics.update_critic(state.critic, batch, backup)
        noise = jax.random.normal(noise_key, batch.action.shape)

        def improvement(params: PyTree) -> Array:  # by critics already updated
            action, log_prob = self.actor.sample_with_log_prob(params, batch.obs, noise)
            q = self.critics.value(critic.params, batch.obs, action)
            return (alpha * log_prob - q).mean()

        actor = descend(state.actor, self.actor_optimiser, improvement)
        log_prob = self.actor.sample_with_log_prob(state.actor.params, batch.obs, noise)[1]
        entropy = -log_prob.mean()
        temperature = self.temperature.update_temperature(state.temperature, entropy)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/improvement": actor.loss,
            "policy/entropy": entropy,
            "temperature/loss": temperature.loss,
            "temperature/alpha": alpha,
        }
        critic = soft_update(critic, self.target_rate)
        return Update(State(critic, actor, temperature, scales), metrics)

    def trace(self, state: State, obs: Array, key: Key, start: Array | None = None) -> Array:
        obs = scaling.scale_obs(state.scales, obs)
        return self.actor.trace(state.actor.params, obs, key, start)

    def policy_weight(self, state: State) -> Array:
        factor = self.reward_scale / scaling.reward_size(state.scales)
        return factor / jnp.exp(state.temperature.params)

    def _draw(self, state: State, obs: Array, key: Key) -> tuple[Array, Array]:
        """An action for each observation (B, A) and its log-probability under the Gaussian (B,)."""

        def value(noise: Array) -> Array:
            action = self.actor.sample_with_log_prob(state.actor.params, obs, noise)[0]
            return self.critics.value(state.critic.params, obs, action)

        # The noise is chosen, not the action: the log-probability follows from it.
        candidates = jax.random.normal(key, (self.best_of, len(obs), self.spec.act_dim))
        noise = best_of(candidates, value)
        return self.actor.sample_with_log_prob(state.actor.params, obs, noise)
