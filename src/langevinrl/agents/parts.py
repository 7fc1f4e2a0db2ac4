"""What several methods do, as parts they call: twin critics, a temperature, noise as wide as it."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import DenoisingActor
from langevinrl.learner import Learner, descend, init_learner, when
from langevinrl.losses import gaussian_entropy, squared, td_backup, temperature
from langevinrl.networks import Critic
from langevinrl.samplers.choose import best_of, blockwise, jitter
from langevinrl.types import Array, Batch, Key, PyTree


@dataclass(frozen=True)
class TwinCritics:
    """Two value networks of one output, regressed on the lesser of their slow copies."""

    network: Critic
    optimiser: optax.GradientTransformation
    gamma: float
    reward_scale: float

    def init(self, key: Key) -> Learner:
        return init_learner(self.network.init(key), self.optimiser)

    def value(self, params: PyTree, obs: Array, action: Array) -> Array:
        """The lesser of the two values, (..., B)."""
        return blockwise(lambda some: self.network.apply(params, obs, some).min(axis=0), action)

    def choose(self, params: PyTree, obs: Array, candidates: Array) -> Array:
        """The most valuable of candidates (N, B, A) for each observation: (B, A)."""
        return best_of(candidates, lambda action: self.value(params, obs, action))

    def backup(self, learner: Learner, batch: Batch, next_action: Array) -> Array:
        """What both regress on: (B,)."""
        next_q = self.network.apply(learner.target_params, batch.next_obs, next_action)
        return td_backup(next_q, batch, self.gamma, self.reward_scale)

    def update_critic(
        self, learner: Learner, batch: Batch, backup: Array, at: PyTree | None = None
    ) -> Learner:
        """One step to the backup (B,), along the gradient `at` other weights if given."""

        def bellman(params: PyTree) -> Array:
            return squared(self.network.apply(params, batch.obs, batch.action) - backup[None])

        return descend(learner, self.optimiser, bellman, at)


@dataclass(frozen=True)
class Temperature:
    """log α as a learner of one number, moved until an entropy meets its target."""

    initial_alpha: float
    learning_rate: float
    target_entropy: float

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def init(self) -> Learner:
        return init_learner(jnp.log(jnp.asarray(self.initial_alpha)), self.optimiser)

    def update_temperature(self, learner: Learner, entropy: Array) -> Learner:
        """One step of log α at this entropy."""

        def balance(log_alpha: Array) -> Array:
            return temperature(log_alpha, entropy, self.target_entropy)

        return descend(learner, self.optimiser, balance)


@dataclass(frozen=True)
class NoisyChoice:
    """How SDAC and DPMD draw: the best of N denoising chains, with noise on it as wide as α.

    The temperature cools until that noise has the target entropy; it sees no data.
    """

    actor: DenoisingActor
    critics: TwinCritics
    temperature: Temperature
    best_of: int
    noise_scale: float  # of the noise, per unit of α
    delay: int  # updates per step of log α
    bound: float | None  # hold noisy actions in this box, if given

    def choose(self, actor: PyTree, critic: PyTree, obs: Array, key: Key) -> Array:
        """The most valuable of N chains for each observation: (B, A)."""
        return self.critics.choose(critic, obs, self.actor.sample(actor, obs, self.best_of, key))

    def explore(
        self, actor: PyTree, critic: PyTree, temperature: Learner, obs: Array, key: Key
    ) -> Array:
        """The choice with noise on it: for acting, for the target and as the policy's data."""
        chain_key, noise_key = jax.random.split(key)
        action = self.choose(actor, critic, obs, chain_key)
        return jitter(action, self.std(temperature), noise_key, self.bound)

    def std(self, temperature: Learner) -> Array:
        """Spread of the noise."""
        return self.noise_scale * jnp.exp(temperature.params)

    def update_temperature(self, temperature: Learner, updates: Array) -> Learner:
        """A step of log α, on the updates where it is due."""
        entropy = gaussian_entropy(self.std(temperature), self.actor.spec.act_dim)

        def cool(warm: Learner) -> Learner:
            return self.temperature.update_temperature(warm, entropy)

        return when(updates % self.delay == 0, cool, temperature)
