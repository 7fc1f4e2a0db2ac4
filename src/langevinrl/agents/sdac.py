"""SDAC: soft diffusion actor-critic.

Efficient Online Reinforcement Learning for Diffusion Policy (2025), arXiv 2502.00361. Its updates
equal those of the authors' released code (tests/parity).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import DenoisingActor
from langevinrl.agents.contract import Common
from langevinrl.agents.parts import BestOfNoisy, ExploringNoise, Temperature, TwinCritics
from langevinrl.agents.presets import Presets, short_with_actor
from langevinrl.errors import UserError
from langevinrl.learner import Learner, decaying_adam, descend, init_learner, update_target, when
from langevinrl.losses import reverse_denoising
from langevinrl.networks import Activation, Critic, StateActionNet
from langevinrl.samplers.diffusion import ScheduleName
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    temperature: Learner  # params is the scalar log α
    updates: Array  # done so far


@dataclass(frozen=True)
class SDAC(Common):
    """Soft diffusion actor-critic: learns to denoise towards exp(Q/α) without samples from it."""

    presets: ClassVar[Presets] = short_with_actor(2e-3, temperature_delay=10)

    num_steps: int = 20  # T: denoising steps per action
    best_of: int = 32  # N: chains per action, the most valuable is kept
    num_noises: int = 64  # K: noises weighed at each noisy action (released code)
    noise_scale: float = 0.1  # exploration noise per unit of α
    clip_noise: bool = False  # clip noisy actions to the box (released code does not)
    initial_alpha: float = 5.0  # α at the start
    target_entropy_scale: float = 0.9  # H̄ = -scale x action axes
    temperature_learning_rate: float = 7e-3  # Adam's learning rate for log α
    temperature_delay: int = 250  # updates per step of log α
    critic_learning_rate: float = 3e-4  # Adam's learning rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's learning rate for the policy
    final_actor_learning_rate: float = 3e-5  # after the decay (released code; the paper has none)
    decay_start: int = 25_000  # policy steps before its rate falls, for twice as many (code)
    delay: int = 2  # updates per step of the policy and of the target copies (released code)
    schedule: ScheduleName = "linear"  # noise rates: linear (released code), vp or cosine
    schedule_scale: float = 0.8  # c: factor on the linear schedule (released code)
    start_std: float = 0.5  # standard deviation of the chain's start (released code; originals: 1)
    activation: Activation = "mish"  # after each hidden layer
    embedding_size: int = 16  # width of the denoising step's embedding

    def __post_init__(self) -> None:
        if self.noise_scale == 0:
            raise UserError(
                "noise_scale is 0; expected more than 0, since its entropy sets the temperature"
            )

    @property
    def critics(self) -> TwinCritics:
        network = Critic(StateActionNet(self.spec, 1, self.hidden, self.activation))
        adam = optax.adam(self.critic_learning_rate)
        return TwinCritics(network, adam, self.gamma, self.reward_scale)

    @property
    def actor(self) -> DenoisingActor:
        return DenoisingActor(
            self.spec, self.hidden, self.activation, self.embedding_size,
            self.num_steps, self.schedule, self.schedule_scale, self.start_std,
        )  # fmt: skip

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        rate, final_rate = self.actor_learning_rate, self.final_actor_learning_rate
        return decaying_adam(rate, final_rate, self.decay_start)

    @property
    def temperature(self) -> Temperature:
        target_entropy = -self.target_entropy_scale * self.spec.act_dim
        return Temperature(self.initial_alpha, self.temperature_learning_rate, target_entropy)

    @property
    def sampler(self) -> BestOfNoisy:
        bound = self.spec.act_bound if self.clip_noise else None
        noise = (self.noise_scale, self.temperature_delay, bound)
        return BestOfNoisy(self.actor, self.critics, self.temperature, self.best_of, *noise)

    def init(self, key: Key) -> State:
        critic_key, actor_key = jax.random.split(key)
        actor = init_learner(self.actor.init(actor_key), self.actor_optimiser)
        learners = (self.critics.init(critic_key), actor, self.temperature.init())
        return State(*learners, jnp.zeros((), jnp.int32))

    def noise(self, key: Key, num: int) -> ExploringNoise:
        return self.sampler.noise(key, num)

    def policy(self, state: State, obs: Array, noise: ExploringNoise, *, explore: bool) -> Array:
        actor, critic = state.actor.target_params, state.critic.params
        if explore:
            return self.sampler.explore(actor, critic, state.temperature, obs, noise)
        return self.sampler.choose(actor, critic, obs, noise)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, actor_key = jax.random.split(key)
        next_action = self._explore(state, batch.next_obs, next_key)
        backup = self.critics.backup(state.critic, batch, next_action)
        critic = self.critics.update_critic(state.critic, batch, backup)

        due = state.updates % self.delay == 0
        actor = when(due, lambda old: self._improve(old, state, batch.obs, actor_key), state.actor)
        temperature = self.sampler.update_temperature(state.temperature, state.updates)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/denoising": actor.loss,
            "temperature/alpha": jnp.exp(temperature.params),
        }
        critic = update_target(due, critic, self.target_rate)
        actor = update_target(due, actor, self.target_rate)
        return Update(State(critic, actor, temperature, state.updates + 1), metrics)

    def trace(self, state: State, obs: Array, noise: ExploringNoise) -> Array:
        return self.actor.trace(state.actor.target_params, obs, noise.chain)

    def policy_weight(self, state: State) -> Array:
        return self.reward_scale * self.initial_alpha / jnp.exp(state.temperature.params)

    def _improve(self, actor: Learner, state: State, obs: Array, key: Key) -> Learner:
        """Take one step towards exp(Q/α), with critics and temperature before this update."""
        action_key, noise_key = jax.random.split(key)
        action = self._explore(state, obs, action_key)

        def log_weight(candidates: Array) -> Array:
            # Relative to the first α, so that Q counts in full at the start (released code).
            heat = jnp.exp(state.temperature.params) / self.initial_alpha
            return self.critics.value(state.critic.params, obs, candidates) / heat

        def loss(params: PyTree) -> Array:
            return reverse_denoising(
                lambda x, t: self.actor.network.apply(params, obs, x, t),
                self.actor.schedule, action, log_weight, noise_key,
                num_noises=self.num_noises, bound=self.spec.act_bound,
            )  # fmt: skip

        return descend(actor, self.actor_optimiser, loss)

    def _explore(self, state: State, obs: Array, key: Key) -> Array:
        """Return actions of the policy being trained, exploration noise included: (B, A)."""
        actor, critic = state.actor.params, state.critic.params
        noise = self.noise(key, len(obs))
        return self.sampler.explore(actor, critic, state.temperature, obs, noise)
