"""DACER: Diffusion Actor-Critic with Entropy Regulator (2024), arXiv 2405.15177.

Its updates are those of the SDAC project's released baseline, given the entropy (tests/parity).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import DenoisingActor
from langevinrl.agents.contract import Common
from langevinrl.agents.parts import Temperature
from langevinrl.learner import Learner, decaying_adam, descend, init_learner, update_target, when
from langevinrl.losses import distributional, gaussian_backup
from langevinrl.mixture import mean_entropy
from langevinrl.networks import Activation, Critic, StateActionNet
from langevinrl.samplers.choose import best_of, jitter
from langevinrl.samplers.diffusion import ScheduleName
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    temperature: Learner  # params is the scalar log α
    spread: Array  # (members,)  b: running mean of each critic's deviation
    entropy: Array  # the last estimate
    updates: Array


@dataclass(frozen=True)
class DACER(Common):
    """Q is climbed through the whole chain; an estimate of its entropy sets the noise on top.

    Where the chain's last estimate is clipped at the box its gradient is zero.  A policy driven
    there in every state, by critics that know nothing yet, stays: lower its rate then.
    """

    num_steps: int = 20  # T: denoising steps per action
    best_of: int = 1  # N: chains per action, the most valuable kept; the policy learns from one
    noise_scale: float = 0.15  # exploration noise per unit of α (code; the paper prints none)
    initial_alpha: float = 3.0  # α at the start
    temperature_learning_rate: float = 3e-2  # Adam's rate for log α
    temperature_delay: int = 10_000  # updates per step of log α
    target_entropy_scale: float = 0.9  # H̄ = -scale x action axes
    num_entropy_actions: int = 200  # actions per state that the entropy is estimated from
    num_gaussians: int = 3  # in the mixture fitted to them
    critic_learning_rate: float = 3e-4  # Adam's rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's rate for the policy
    final_actor_learning_rate: float = 3e-5  # after the decay (released code; the paper has none)
    decay_start: int = 25_000  # policy steps before its rate falls, for twice as many (code)
    delay: int = 2  # updates per step of the policy and of the target copies (released code)
    schedule: ScheduleName = "linear"  # noise rates: linear (released code), vp or cosine
    schedule_scale: float = 0.3  # c: factor on the linear schedule (released code)
    start_std: float = 0.5  # spread of the noise a chain starts from (released code; originals: 1)
    activation: Activation = "mish"  # after each hidden layer
    embedding_size: int = 16  # width of the denoising step's embedding

    @property
    def critic(self) -> Critic:
        return Critic(StateActionNet(self.spec, 2, self.hidden, self.activation))

    @property
    def actor(self) -> DenoisingActor:
        network = (self.spec, self.hidden, self.activation, self.embedding_size)
        chain = (self.num_steps, self.schedule, self.schedule_scale, self.start_std)
        return DenoisingActor(*network, *chain)

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        rates = (self.actor_learning_rate, self.final_actor_learning_rate)
        return decaying_adam(*rates, self.decay_start)

    @property
    def temperature(self) -> Temperature:
        target_entropy = -self.target_entropy_scale * self.spec.act_dim
        return Temperature(self.initial_alpha, self.temperature_learning_rate, target_entropy)

    def init(self, key: Key) -> State:
        critic_key, actor_key = jax.random.split(key)
        critic = init_learner(self.critic.init(critic_key), optax.adam(self.critic_learning_rate))
        actor = init_learner(self.actor.init(actor_key), self.actor_optimiser)
        rest = (jnp.zeros(self.critic.num_members), jnp.zeros(()), jnp.zeros((), jnp.int32))
        return State(critic, actor, self.temperature.init(), *rest)

    def moments(self, params: PyTree, obs: Array, action: Array) -> tuple[Array, Array]:
        """Mean and deviation of each member's value: (members, ..., B)."""
        out = self.critic.apply(params, obs, action)
        return out[..., 0], jax.nn.softplus(out[..., 1])

    def value(self, params: PyTree, obs: Array, action: Array) -> Array:
        """The lesser of the critics' means, (..., B)."""
        return self.moments(params, obs, action)[0].min(axis=0)

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        chain_key, noise_key = jax.random.split(key)
        candidates = self.actor.sample(state.actor.params, obs, self.best_of, chain_key)
        action = best_of(candidates, lambda a: self.value(state.critic.params, obs, a))
        return self._jitter(state, action, noise_key) if explore else action

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        backup_key, actor_key, entropy_key = jax.random.split(key, 3)
        y, drawn = self._backups(state, batch, backup_key)
        std = self.moments(state.critic.params, batch.obs, batch.action)[1].mean(axis=-1)
        rate = jnp.where(state.updates == 0, 1.0, self.target_rate)
        spread = state.spread + rate * (std - state.spread)

        def likelihood(params: PyTree) -> Array:
            return distributional(*self.moments(params, batch.obs, batch.action), y, drawn, spread)

        def ascent(params: PyTree) -> Array:  # on the critics before this update
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
        learners = (update_target(due, critic, self.target_rate), actor, temperature)
        return Update(State(*learners, spread, entropy, state.updates + 1), metrics)

    def trace(self, state: State, obs: Array, key: Key, start: Array | None = None) -> Array:
        chain_key, _ = jax.random.split(key)  # as in acting, whose noise comes after
        return self.actor.trace(state.actor.params, obs, chain_key, start)

    def _backups(self, state: State, batch: Batch, key: Key) -> tuple[Array, Array]:
        """Mean backup and a drawn one, (B,) each; both critics regress on the same two."""
        action_key, draw_key = jax.random.split(key)
        next_action = self.act(state, batch.next_obs, action_key, explore=True)
        moments = self.moments(state.critic.target_params, batch.next_obs, next_action)
        z = jax.random.normal(draw_key, batch.reward.shape)
        return gaussian_backup(*moments, z, batch, self.gamma, self.reward_scale)

    def _regulate(self, state: State, obs: Array, key: Key) -> tuple[Learner, Array]:
        """A step of log α and a fresh estimate of the entropy, if due."""

        def estimate() -> Array:
            act_key, fit_key = jax.random.split(key)
            policy, num = state.actor.params, self.num_entropy_actions
            actions = self._explore(state, policy, obs, num, act_key)
            return mean_entropy(actions, self.num_gaussians, fit_key)

        due = state.updates % self.temperature_delay == 0
        entropy = jax.lax.cond(due, estimate, lambda: state.entropy)
        step = partial(self.temperature.update_temperature, entropy=entropy)
        return when(due, step, state.temperature), entropy

    def _explore(self, state: State, actor: PyTree, obs: Array, num: int, key: Key) -> Array:
        """Actions of single chains with the noise of acting on them: (num, B, A)."""
        chain_key, noise_key = jax.random.split(key)
        return self._jitter(state, self.actor.sample(actor, obs, num, chain_key), noise_key)

    def _jitter(self, state: State, action: Array, key: Key) -> Array:
        std = self.noise_scale * jnp.exp(state.temperature.params)
        return jitter(action, std, key, self.spec.act_bound)
