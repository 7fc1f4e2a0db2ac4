"""What SDAC, DPMD, QVPO and DACER have in common: a denoising policy under twin critics."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import DenoisingActor
from langevinrl.agents.actor_critic import ActorCritic
from langevinrl.errors import UserError
from langevinrl.learner import Learner, decaying_adam, descend, enrol, track, when
from langevinrl.losses import noise_temperature
from langevinrl.networks import Embedding, Field
from langevinrl.samplers.choose import best_of, jitter
from langevinrl.samplers.diffusion import ScheduleName
from langevinrl.types import Array, Key, PyTree


@dataclass(frozen=True)
class Denoising(ActorCritic):
    """A denoising policy whose candidates twin critics choose among; delayed steps and targets."""

    num_steps: int = 20  # T: denoising steps per action
    schedule: ScheduleName = "linear"  # noise rates: linear (released code), vp or cosine
    schedule_scale: float = 0.8  # c: factor on the linear schedule (released code)
    start_std: float = 0.5  # spread of the noise a chain starts from (released code; originals: 1)
    final_actor_learning_rate: float = 3e-5  # after the decay (released code; the paper has none)
    delay: int = 2  # updates per step of the policy and of the target copies (released code)
    embedding_size: int = 16  # width of the denoising step's embedding
    best_of: int = 32  # N: chains per action, the most valuable kept

    @property
    def actor(self) -> DenoisingActor:
        spec, embedding = self.spec, Embedding(self.embedding_size, self.activation)
        network = Field(spec, spec.act_dim, self.hidden, self.activation, embedding)
        return DenoisingActor(
            network, self.num_steps, self.schedule, self.schedule_scale, self.start_std
        )

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        return decaying_adam(self.actor_learning_rate, self.final_actor_learning_rate)

    def choose(self, actor_params: PyTree, critic_params: PyTree, obs: Array, key: Key) -> Array:
        """The most valuable of N chains for each observation: (B, A)."""
        candidates = self.actor.sample(actor_params, obs, self.best_of, key)
        return best_of(candidates, lambda action: self.value(critic_params, obs, action))

    def follow(self, due: Array, learner: Learner) -> Learner:
        """Move the target copy, if due."""
        return when(due, lambda moved: track(moved, self.target_rate), learner)


@dataclass(frozen=True)
class Tempered(Denoising):
    """SDAC and DPMD: exploration noise as wide as a temperature that cools towards an entropy."""

    initial_alpha: float = 5.0  # α at the start
    temperature_learning_rate: float = 7e-3  # Adam's rate for log α
    temperature_delay: int = 250  # updates per step of log α
    target_entropy_scale: float = 0.9  # H̄ = -scale x action axes
    noise_scale: float = 0.1  # exploration noise per unit of α
    clip_noise: bool = False  # hold noisy actions in the box (released code: it does not)

    def __post_init__(self) -> None:
        if self.noise_scale == 0:
            raise UserError("noise_scale is 0; expected more, for its entropy sets the temperature")

    @property
    def temperature_optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.temperature_learning_rate)

    def enrol_temperature(self) -> Learner:
        return enrol(jnp.log(jnp.asarray(self.initial_alpha)), self.temperature_optimiser)

    def act(self, state: PyTree, obs: Array, key: Key, *, explore: bool) -> Array:
        slow_actor = state.actor.target_params
        if explore:
            return self.explore(slow_actor, state, obs, key)
        return self.choose(slow_actor, state.critic.params, obs, key)

    def explore(self, actor_params: PyTree, state: PyTree, obs: Array, key: Key) -> Array:
        """The choice with noise on it: for acting, for the target and as the policy's data."""
        chain_key, noise_key = jax.random.split(key)
        action = self.choose(actor_params, state.critic.params, obs, chain_key)
        std = self.noise_scale * jnp.exp(state.temperature.params)
        return jitter(action, std, noise_key, self.spec.act_bound if self.clip_noise else None)

    def cool(self, updates: Array, temperature: Learner) -> Learner:
        """A step of log α, if due."""

        def balance(log_alpha: Array) -> Array:
            target_entropy = -self.target_entropy_scale * self.spec.act_dim
            return noise_temperature(log_alpha, self.noise_scale, self.spec.act_dim, target_entropy)

        due = updates % self.temperature_delay == 0
        return when(
            due, lambda warm: descend(warm, self.temperature_optimiser, balance), temperature
        )
