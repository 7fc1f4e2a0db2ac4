"""SAC: soft actor-critic.

Soft Actor-Critic Algorithms and Applications (2018), arXiv 1812.05905. With `squash_correction`
off, its updates equal those of the SDAC project's released baseline (tests/parity).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import TanhGaussianActor
from langevinrl.agents.contract import Common
from langevinrl.agents.parts import Temperature, TwinCritics
from langevinrl.agents.presets import Presets, short
from langevinrl.learner import Learner, descend, init_learner, soft_update
from langevinrl.losses import td_backup
from langevinrl.networks import MLP, Activation, Critic, StateActionNet
from langevinrl.samplers.choose import best_of
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    temperature: Learner  # params is the scalar log α


@dataclass(frozen=True)
class SAC(Common):
    """Soft actor-critic: a tanh-squashed Gaussian policy with an entropy bonus."""

    presets: ClassVar[Presets] = short(
        critic_learning_rate=2e-3,
        actor_learning_rate=2e-3,
        temperature_learning_rate=2e-3,
        initial_alpha=0.2,  # e, the default, takes thousands of updates to fall
    )

    critic_learning_rate: float = 3e-4  # Adam's learning rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's learning rate for the policy
    temperature_learning_rate: float = 3e-4  # Adam's learning rate for log α
    initial_alpha: float = math.e  # α at the start: log α = 1 (released baseline code)
    target_entropy_scale: float = 1.0  # H̄ = -scale x action axes (paper: -m)
    squash_correction: bool = True  # include tanh in log π (released baseline code does not)
    activation: Activation = "gelu"  # after each hidden layer
    best_of: int = 1  # N: draws per action, the most valuable is kept; evaluation uses the mode

    @property
    def critic(self) -> Critic:
        return Critic(StateActionNet(self.spec, 1, self.hidden, self.activation))

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
        return State(self.critics.init(critic_key), actor, self.temperature.init())

    def noise(self, key: Key, num: int) -> Array:
        draws = jax.random.normal(key, (self.best_of, num, self.spec.act_dim))
        return jnp.moveaxis(draws, 1, 0)  # (B, N, A)

    def policy(self, state: State, obs: Array, noise: Array, *, explore: bool) -> Array:
        if not explore:
            return self.actor.mode(state.actor.params, obs)
        return self._sample(state, obs, noise)[0]

    def refine(self, state: State, obs: Array, noise: Array) -> Array:
        return self.policy(state, obs, noise, explore=False)  # the mode has no noise

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, noise_key = jax.random.split(key)
        alpha = jnp.exp(state.temperature.params)
        next_noise = self.noise(next_key, len(batch.next_obs))
        next_action, next_log_prob = self._sample(state, batch.next_obs, next_noise)
        next_q = self.critic.apply(state.critic.target_params, batch.next_obs, next_action)
        soft_q = next_q - alpha * next_log_prob[None]
        backup = td_backup(soft_q, batch, self.gamma, self.reward_scale)

        critic = self.critics.update_critic(state.critic, batch, backup)
        noise = jax.random.normal(noise_key, batch.action.shape)

        def improvement(params: PyTree) -> Array:  # with the updated critics
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
        return Update(State(critic, actor, temperature), metrics)

    def trace(self, state: State, obs: Array, noise: Array) -> Array:
        return self.actor.trace(state.actor.params, obs, noise)

    def policy_weight(self, state: State) -> Array:
        return self.reward_scale / jnp.exp(state.temperature.params)

    def _sample(self, state: State, obs: Array, noise: Array) -> tuple[Array, Array]:
        """Return an action for each observation (B, A) and its log-probability (B,)."""

        def value(noise: Array) -> Array:
            action = self.actor.sample_with_log_prob(state.actor.params, obs, noise)[0]
            return self.critics.value(state.critic.params, obs, action)

        # Choose the noise instead of the action: the log-probability follows from it.
        chosen = best_of(jnp.moveaxis(noise, 0, 1), value)
        return self.actor.sample_with_log_prob(state.actor.params, obs, chosen)
