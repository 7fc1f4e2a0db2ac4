"""SAC: soft actor-critic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl import losses
from langevinrl.actors import TanhGaussianActor
from langevinrl.agents.actor_critic import ActorCritic
from langevinrl.learner import Learner, descend, enrol, track
from langevinrl.networks import MLP, Activation
from langevinrl.samplers.choose import best_of
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    temperature: Learner  # params is the scalar log α


@dataclass(frozen=True)
class SAC(ActorCritic):
    """Soft actor-critic: a squashed Gaussian climbs the critics and is paid for its entropy."""

    temperature_learning_rate: float = 3e-4  # Adam's rate for log α
    initial_alpha: float = math.e  # α at the start: log α = 1 (released baseline code)
    target_entropy_scale: float = 1.0  # H̄ = -scale x action axes (paper: -m)
    squash_correction: bool = True  # tanh counts in log π (released baseline code: it does not)
    activation: Activation = "gelu"  # after each hidden layer
    best_of: int = 1  # N: draws per action, the most valuable kept; evaluation takes the mode

    @property
    def actor(self) -> TanhGaussianActor:
        spec = self.spec
        network = MLP((spec.obs_dim,), 2 * spec.act_dim, self.hidden, self.activation)
        return TanhGaussianActor(network, spec.act_bound, self.squash_correction)

    @property
    def temperature_optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.temperature_learning_rate)

    @property
    def target_entropy(self) -> float:
        return -self.target_entropy_scale * self.spec.act_dim

    def init(self, key: Key) -> State:
        temperature = enrol(jnp.log(jnp.asarray(self.initial_alpha)), self.temperature_optimiser)
        return State(*self.enrol_networks(self.actor, key), temperature)

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        if not explore:
            return self.actor.mode(state.actor.params, obs)
        return self._draw(state, obs, key)[0]

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, noise_key = jax.random.split(key)
        alpha = jnp.exp(state.temperature.params)
        next_action, next_log_prob = self._draw(state, batch.next_obs, next_key)
        next_q = self.critic.apply(state.critic.target_params, batch.next_obs, next_action)
        soft_q = next_q - alpha * next_log_prob[None]
        backup = losses.td_backup(soft_q, batch, self.gamma, self.reward_scale)

        critic = self.regress(state.critic, batch, backup)
        noise = jax.random.normal(noise_key, batch.action.shape)

        def improvement(params: PyTree) -> Array:  # by critics already updated
            action, log_prob = self.actor.place(params, batch.obs, noise)
            q = self.value(critic.params, batch.obs, action)
            return (alpha * log_prob - q).mean()

        actor = descend(state.actor, self.actor_optimiser, improvement)
        entropy = -self.actor.place(state.actor.params, batch.obs, noise)[1].mean()

        def balance(log_alpha: Array) -> Array:
            return losses.temperature(log_alpha, entropy, self.target_entropy)

        temperature = descend(state.temperature, self.temperature_optimiser, balance)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/improvement": actor.loss,
            "policy/entropy": entropy,
            "temperature/loss": temperature.loss,
            "temperature/alpha": alpha,
        }
        return Update(State(track(critic, self.target_rate), actor, temperature), metrics)

    def _draw(self, state: State, obs: Array, key: Key) -> tuple[Array, Array]:
        """An action for each observation (B, A) and its log-probability under the Gaussian (B,)."""

        def value(noise: Array) -> Array:
            action = self.actor.place(state.actor.params, obs, noise)[0]
            return self.value(state.critic.params, obs, action)

        # The noise is chosen, not the action: the log-probability follows from it.
        candidates = jax.random.normal(key, (self.best_of, len(obs), self.spec.act_dim))
        return self.actor.place(state.actor.params, obs, best_of(candidates, value))
