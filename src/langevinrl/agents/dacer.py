"""DACER: Diffusion Actor-Critic with Entropy Regulator (2024), arXiv 2405.15177.

Given the entropy, its updates equal those of the SDAC project's baseline (tests/parity).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import DenoisingActor
from langevinrl.agents.contract import Common
from langevinrl.agents.parts import ExploringNoise, Temperature, draw_exploring_noise
from langevinrl.agents.presets import Presets, short_with_actor
from langevinrl.learner import Learner, decaying_adam, descend, init_learner, update_target, when
from langevinrl.losses import distributional, gaussian_backup
from langevinrl.mixture import mean_entropy
from langevinrl.networks import Activation, Critic, StateActionNet, smallest
from langevinrl.samplers.choose import add_exploration, best_of
from langevinrl.samplers.diffusion import ScheduleName
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    temperature: Learner  # params is the scalar log α
    spread: Array  # (members,)  b: running mean of each critic's standard deviation
    entropy: Array  # the last estimate
    updates: Array


@dataclass(frozen=True)
class DACER(Common):
    """The policy gradient passes through the whole chain; estimated entropy sets added noise.

    Where the chain ends at the box its gradient is zero: lower the policy's rate if it stays there.
    """

    presets: ClassVar[Presets] = short_with_actor(2e-3, temperature_delay=400)

    num_steps: int = 20  # T: denoising steps per action
    best_of: int = 1  # N: chains per action, the most valuable is kept; the policy learns from one
    noise_scale: float = 0.15  # exploration noise per unit of α (code; the paper prints none)
    initial_alpha: float = 3.0  # α at the start
    temperature_learning_rate: float = 3e-2  # Adam's learning rate for log α
    temperature_delay: int = 10_000  # updates per step of log α
    target_entropy_scale: float = 0.9  # H̄ = -scale x action axes
    num_entropy_actions: int = 200  # actions per state that the entropy is estimated from
    num_gaussians: int = 3  # in the mixture fitted to them
    critic_learning_rate: float = 3e-4  # Adam's learning rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's learning rate for the policy
    final_actor_learning_rate: float = 3e-5  # after the decay (released code; the paper has none)
    decay_start: int = 25_000  # policy steps before its rate falls, for twice as many (code)
    delay: int = 2  # updates per step of the policy and of the target copies (released code)
    schedule: ScheduleName = "linear"  # noise rates: linear (released code), vp or cosine
    schedule_scale: float = 0.3  # c: factor on the linear schedule (released code)
    start_std: float = 0.5  # standard deviation of the chain's start (released code; originals: 1)
    activation: Activation = "mish"  # after each hidden layer
    embedding_size: int = 16  # width of the denoising step's embedding

    @property
    def critic(self) -> Critic:
        return Critic(StateActionNet(self.spec, 2, self.hidden, self.activation))

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

    def init(self, key: Key) -> State:
        critic_key, actor_key = jax.random.split(key)
        critic = init_learner(self.critic.init(critic_key), optax.adam(self.critic_learning_rate))
        actor = init_learner(self.actor.init(actor_key), self.actor_optimiser)
        spread, entropy, updates = jnp.zeros(2), jnp.zeros(()), jnp.zeros((), jnp.int32)
        return State(critic, actor, self.temperature.init(), spread, entropy, updates)

    def moments(self, params: PyTree, obs: Array, action: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each critic's value: (critics, ..., B)."""
        out = self.critic.apply(params, obs, action)
        return out[..., 0], jax.nn.softplus(out[..., 1])

    def value(self, params: PyTree, obs: Array, action: Array) -> Array:  # minimum of both means
        return smallest(self.moments(params, obs, action)[0])

    def noise(self, key: Key, num: int) -> ExploringNoise:
        return draw_exploring_noise(key, num, self.num_steps, self.best_of, self.spec)

    def policy(self, state: State, obs: Array, noise: ExploringNoise, *, explore: bool) -> Array:
        candidates = self.actor.sample(state.actor.params, obs, noise.chain)
        action = best_of(candidates, lambda a: self.value(state.critic.params, obs, a))
        return self._add_noise(state, action, noise.action) if explore else action

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        backup_key, actor_key, entropy_key = jax.random.split(key, 3)
        action_key, draw_key = jax.random.split(backup_key)
        noise = self.noise(action_key, len(batch.next_obs))
        next_action = self.policy(state, batch.next_obs, noise, explore=True)
        moments = self.moments(state.critic.target_params, batch.next_obs, next_action)
        z = jax.random.normal(draw_key, batch.reward.shape)
        y, drawn = gaussian_backup(*moments, z, batch, self.gamma, self.reward_scale)
        std = self.moments(state.critic.params, batch.obs, batch.action)[1].mean(axis=-1)
        rate = jnp.where(state.updates == 0, 1.0, self.target_rate)
        spread = state.spread + rate * (std - state.spread)

        def likelihood(params: PyTree) -> Array:
            return distributional(*self.moments(params, batch.obs, batch.action), y, drawn, spread)

        def ascent(params: PyTree) -> Array:  # with the critics before this update
            action = self._explore(state, params, batch.obs, 1, actor_key)[0]
            return -self.value(state.critic.params, batch.obs, action).mean()

        critic = descend(state.critic, optax.adam(self.critic_learning_rate), likelihood)
        due = state.updates % self.delay == 0
        actor = when(due, lambda old: descend(old, self.actor_optimiser, ascent), state.actor)
        temperature, entropy = self._regulate(state, batch.obs, entropy_key)
        metrics = {
            "critic/likelihood": critic.loss,
            "critic/backup": y.mean(),
            "critic/spread": spread.mean(),
            "policy/ascent": actor.loss,
            "policy/entropy": entropy,
            "temperature/alpha": jnp.exp(temperature.params),
        }
        critic = update_target(due, critic, self.target_rate)
        new = State(critic, actor, temperature, spread, entropy, state.updates + 1)
        return Update(new, metrics)

    def trace(self, state: State, obs: Array, noise: ExploringNoise) -> Array:
        return self.actor.trace(state.actor.params, obs, noise.chain)

    def _regulate(self, state: State, obs: Array, key: Key) -> tuple[Learner, Array]:
        """Return log α after a step and a fresh entropy estimate, if they are due."""

        def estimate() -> Array:
            act_key, fit_key = jax.random.split(key)
            draws = self._explore(state, state.actor.params, obs, self.num_entropy_actions, act_key)
            return mean_entropy(draws, self.num_gaussians, fit_key)

        due = state.updates % self.temperature_delay == 0
        entropy = jax.lax.cond(due, estimate, lambda: state.entropy)
        step = partial(self.temperature.update_temperature, entropy=entropy)
        return when(due, step, state.temperature), entropy

    def _explore(self, state: State, actor: PyTree, obs: Array, num: int, key: Key) -> Array:
        """Return actions of single chains with exploration noise: (num, B, A)."""
        chain_key, noise_key = jax.random.split(key)
        action = self.actor.sample(actor, obs, self.actor.noise(chain_key, len(obs), num))
        return self._add_noise(state, action, jax.random.normal(noise_key, action.shape))

    def _add_noise(self, state: State, action: Array, noise: Array) -> Array:
        std = self.noise_scale * jnp.exp(state.temperature.params)
        return add_exploration(action, std, noise, self.spec.act_bound)
