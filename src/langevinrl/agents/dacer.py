"""DACER: diffusion actor-critic with an entropy regulator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl import losses
from langevinrl.agents.denoising import Denoising
from langevinrl.learner import Learner, descend, enrol, when
from langevinrl.mixture import mean_entropy
from langevinrl.networks import Critic, Field
from langevinrl.samplers.choose import jitter
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    temperature: Learner  # params is the scalar log α
    spread: Array  # (members,)  b: running mean of each critic's deviation
    entropy: Array  # the last estimate
    updates: Array


@dataclass(frozen=True)
class DACER(Denoising):
    """Q is climbed through the whole chain; an estimate of its entropy sets the noise on top.

    Where the chain's last estimate is clipped at the box its gradient is zero.  A policy driven
    there in every state, by critics that know nothing yet, stays: lower its rate then.
    """

    schedule_scale: float = 0.3  # c: factor on the linear schedule (released baseline code)
    noise_scale: float = 0.15  # exploration noise per unit of α (code; the paper prints none)
    initial_alpha: float = 3.0  # α at the start
    temperature_learning_rate: float = 3e-2  # Adam's rate for log α
    temperature_delay: int = 10_000  # updates per step of log α
    target_entropy_scale: float = 0.9  # H̄ = -scale x action axes
    num_entropy_actions: int = 200  # actions per state that the entropy is estimated from
    num_gaussians: int = 3  # in the mixture fitted to them
    best_of: int = 1  # N: chains per action, the most valuable kept; the policy learns from one

    @property
    def critic(self) -> Critic:
        return Critic(Field(self.spec, 2, self.hidden, self.activation))

    @property
    def temperature_optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.temperature_learning_rate)

    def init(self, key: Key) -> State:
        temperature = enrol(jnp.log(jnp.asarray(self.initial_alpha)), self.temperature_optimiser)
        rest = (jnp.zeros(self.critic.num_members), jnp.zeros(()), jnp.zeros((), jnp.int32))
        return State(*self.enrol_networks(self.actor, key), temperature, *rest)

    def moments(self, params: PyTree, obs: Array, action: Array) -> tuple[Array, Array]:
        """Mean and deviation of each member's value: (members, ..., B)."""
        out = self.critic.apply(params, obs, action)
        return out[..., 0], jax.nn.softplus(out[..., 1])

    def value(self, params: PyTree, obs: Array, action: Array) -> Array:
        """The lesser of the critics' means, (..., B)."""
        return self.moments(params, obs, action)[0].min(axis=0)

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        chain_key, noise_key = jax.random.split(key)
        action = self.choose(state.actor.params, state.critic.params, obs, chain_key)
        return self._jitter(state, action, noise_key) if explore else action

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        backup_key, actor_key, entropy_key = jax.random.split(key, 3)
        y, drawn = self._backups(state, batch, backup_key)
        std = self.moments(state.critic.params, batch.obs, batch.action)[1].mean(axis=-1)
        rate = jnp.where(state.updates == 0, 1.0, self.target_rate)
        spread = state.spread + rate * (std - state.spread)

        def likelihood(params: PyTree) -> Array:
            moments = self.moments(params, batch.obs, batch.action)
            return losses.distributional(*moments, y, drawn, spread)

        def ascent(params: PyTree) -> Array:  # on the critics before this update
            action = self._explore(state, params, batch.obs, 1, actor_key)[0]
            return -self.value(state.critic.params, batch.obs, action).mean()

        critic = descend(state.critic, self.critic_optimiser, likelihood)
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
        learners = (self.follow(due, critic), actor, temperature)
        return Update(State(*learners, spread, entropy, state.updates + 1), metrics)

    def _backups(self, state: State, batch: Batch, key: Key) -> tuple[Array, Array]:
        """Mean backup and a drawn one, (B,) each; both critics regress on the same two."""
        action_key, draw_key = jax.random.split(key)
        next_action = self.act(state, batch.next_obs, action_key, explore=True)
        moments = self.moments(state.critic.target_params, batch.next_obs, next_action)
        least = moments[0].argmin(axis=0)[None]
        mean, std = (jnp.take_along_axis(moment, least, axis=0) for moment in moments)
        z = jnp.clip(jax.random.normal(draw_key, batch.reward.shape), -3.0, 3.0)
        y = losses.td_backup(mean, batch, self.gamma, self.reward_scale)
        return y, y + self.gamma * batch.bootstrap * std[0] * z

    def _regulate(self, state: State, obs: Array, key: Key) -> tuple[Learner, Array]:
        """A step of log α and a fresh estimate of the entropy, if due."""

        def estimate() -> Array:
            act_key, fit_key = jax.random.split(key)
            actions = self._explore(
                state, state.actor.params, obs, self.num_entropy_actions, act_key
            )
            return mean_entropy(actions, self.num_gaussians, fit_key)

        due = state.updates % self.temperature_delay == 0
        entropy = jax.lax.cond(due, estimate, lambda: state.entropy)

        target = -self.target_entropy_scale * self.spec.act_dim
        balance = partial(losses.temperature, entropy=entropy, target_entropy=target)
        adam = self.temperature_optimiser
        return when(due, lambda old: descend(old, adam, balance), state.temperature), entropy

    def _explore(self, state: State, actor: PyTree, obs: Array, num: int, key: Key) -> Array:
        """Actions of single chains with the noise of acting on them: (num, B, A)."""
        chain_key, noise_key = jax.random.split(key)
        return self._jitter(state, self.actor.sample(actor, obs, num, chain_key), noise_key)

    def _jitter(self, state: State, action: Array, key: Key) -> Array:
        std = self.noise_scale * jnp.exp(state.temperature.params)
        return jitter(action, std, key, self.spec.act_bound)
