"""Components of agents: twin critics, learned temperature, gradient size, exploration noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import DenoisingActor
from langevinrl.learner import Learner, descend, init_learner, when
from langevinrl.losses import gaussian_entropy, squared, td_backup, temperature
from langevinrl.networks import Critic, smallest
from langevinrl.samplers.choose import add_exploration, best_of, blockwise
from langevinrl.samplers.noise import ChainNoise, draw_chain_noise
from langevinrl.types import Array, Batch, Key, PyTree, Spec

GRADIENT_RATE = 0.01  # step of the running mean of ‖∇Q‖² per update


@dataclass(frozen=True)
class TwinCritics:
    """Twin critics with target copies, trained on the minimum of both targets."""

    network: Critic
    optimiser: optax.GradientTransformation
    gamma: float
    reward_scale: float

    def init(self, key: Key) -> Learner:
        return init_learner(self.network.init(key), self.optimiser)

    def value(self, params: PyTree, obs: Array, action: Array) -> Array:
        """Return the minimum of both values: (..., B)."""
        return blockwise(lambda some: smallest(self.network.apply(params, obs, some)), action)

    def choose(self, params: PyTree, obs: Array, candidates: Array) -> Array:
        """Return the most valuable of candidates (N, B, A) for each observation: (B, A)."""
        return best_of(candidates, lambda action: self.value(params, obs, action))

    def backup(self, learner: Learner, batch: Batch, next_action: Array) -> Array:
        """Return the TD target of both critics: (B,)."""
        next_q = self.network.apply(learner.target_params, batch.next_obs, next_action)
        return td_backup(next_q, batch, self.gamma, self.reward_scale)

    def update_critic(
        self, learner: Learner, batch: Batch, backup: Array, at: PyTree | None = None
    ) -> Learner:
        """Take one step towards the backup (B,), with the gradient `at` other weights if given."""

        def bellman(params: PyTree) -> Array:
            return squared(self.network.apply(params, batch.obs, batch.action) - backup[None])

        return descend(learner, self.optimiser, bellman, at)


class GradientStats(NamedTuple):
    """Running mean of the critics' squared action gradient in a typical state."""

    total: Array  # ()
    seen: Array  # ()  weight of the updates in `total`: 0 before the first

    @property
    def norm(self) -> Array:
        """Size ‖∇Q‖ of the gradient; 0 before the first update."""
        return jnp.sqrt(self.total / jnp.maximum(self.seen, GRADIENT_RATE))

    def inverse_temperature(self, std: Array, num_axes: int) -> Array:
        """Return w of exp(wQ) with this standard deviation; 0 before the first update."""
        # E‖w∇Q‖² = d/s² at a Gaussian peak, and for a linear Q that ends at a wall.
        w = num_axes**0.5 / (std * jnp.maximum(self.norm, 1e-12))
        return jnp.where(self.seen > 0, w, 0.0)

    def update(self, gradient: Array) -> GradientStats:
        """Return the statistics after gradients (B, A).

        They use the median of the batch: a few states near a fall would dominate the mean. At a
        Gaussian peak ‖∇Q‖² is χ², and Wilson and Hilferty's factor turns its median into the mean.
        """
        mean_share = (1 - 2 / (9 * gradient.shape[-1])) ** 3
        square = jnp.median(jnp.square(gradient).sum(axis=-1)) / mean_share
        total = self.total + GRADIENT_RATE * (square - self.total)
        return GradientStats(total, self.seen + GRADIENT_RATE * (1.0 - self.seen))


@dataclass(frozen=True)
class Temperature:
    """Learned temperature: log α moves until the entropy meets its target."""

    initial_alpha: float
    learning_rate: float
    target_entropy: float

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def init(self) -> Learner:
        return init_learner(jnp.log(jnp.asarray(self.initial_alpha)), self.optimiser)

    def update_temperature(self, learner: Learner, entropy: Array) -> Learner:
        """Take one step of log α at this entropy."""

        def balance(log_alpha: Array) -> Array:
            return temperature(log_alpha, entropy, self.target_entropy)

        return descend(learner, self.optimiser, balance)


class ExploringNoise(NamedTuple):
    """Noise of the chains, and of the exploration added to the chosen action."""

    chain: ChainNoise
    action: Array  # (B, A)


def draw_exploring_noise(
    key: Key, num: int, num_steps: int, num_chains: int, spec: Spec
) -> ExploringNoise:
    """Draw the noise of `num` actions, each chosen among `num_chains` chains."""
    chain_key, noise_key = jax.random.split(key)
    chain = draw_chain_noise(chain_key, num, num_steps, num_chains, spec)
    return ExploringNoise(chain, jax.random.normal(noise_key, (num, spec.act_dim)))


@dataclass(frozen=True)
class BestOfNoisy:
    """Best of N diffusion samples plus Gaussian noise scaled by the temperature (SDAC, DPMD).

    The temperature falls until that noise has the target entropy; it does not depend on data.
    """

    actor: DenoisingActor
    critics: TwinCritics
    temperature: Temperature
    best_of: int
    noise_scale: float  # standard deviation of the noise per unit of α
    delay: int  # updates per step of log α
    bound: float | None  # clip noisy actions to this box, if given

    def noise(self, key: Key, num: int) -> ExploringNoise:
        """Draw the noise of `num` actions."""
        actor = self.actor
        return draw_exploring_noise(key, num, actor.num_steps, self.best_of, actor.spec)

    def choose(self, actor: PyTree, critic: PyTree, obs: Array, noise: ExploringNoise) -> Array:
        """Return the most valuable of N chains for each observation: (B, A)."""
        return self.critics.choose(critic, obs, self.actor.sample(actor, obs, noise.chain))

    def explore(
        self, actor: PyTree, critic: PyTree, temperature: Learner, obs: Array, noise: ExploringNoise
    ) -> Array:
        """Return the choice with noise added, used for acting, the target and the policy loss."""
        action = self.choose(actor, critic, obs, noise)
        return add_exploration(action, self.std(temperature), noise.action, self.bound)

    def std(self, temperature: Learner) -> Array:
        """Return the standard deviation of the noise."""
        return self.noise_scale * jnp.exp(temperature.params)

    def update_temperature(self, temperature: Learner, updates: Array) -> Learner:
        """Take a step of log α on the updates where it is due."""
        entropy = gaussian_entropy(self.std(temperature), self.actor.spec.act_dim)

        def cool(warm: Learner) -> Learner:
            return self.temperature.update_temperature(warm, entropy)

        return when(updates % self.delay == 0, cool, temperature)
