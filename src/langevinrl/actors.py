"""Policy networks: each maps noise to N candidate actions per observation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from langevinrl.losses import denoising, mean_flow
from langevinrl.networks import MLP, Activation, Embedding, StateActionNet, add_leading_axes
from langevinrl.samplers.choose import blockwise
from langevinrl.samplers.diffusion import Schedule, ScheduleName, denoise, make_schedule
from langevinrl.samplers.flow import integrate
from langevinrl.samplers.noise import ChainNoise, draw_chain_noise
from langevinrl.types import Array, Key, PyTree, Spec


@dataclass(frozen=True)
class DenoisingActor:
    """Diffusion policy: the network predicts noise, which the chain removes step by step."""

    spec: Spec
    hidden: tuple[int, ...]
    activation: Activation
    embedding_size: int
    num_steps: int
    schedule_name: ScheduleName
    schedule_scale: float  # c: factor on the linear schedule
    start_std: float  # standard deviation of the chain's start
    learned_embedding: bool = True  # False: the plain sinusoid of the step

    @property
    def network(self) -> StateActionNet:
        embedding = Embedding(self.embedding_size, self.activation, self.learned_embedding)
        axes = self.spec.act_dim
        return StateActionNet(self.spec, axes, self.hidden, self.activation, embedding)

    @property
    def schedule(self) -> Schedule:
        return make_schedule(self.schedule_name, self.num_steps, self.schedule_scale)

    def init(self, key: Key) -> PyTree:
        return self.network.init(key)

    def noise(self, key: Key, num: int, num_candidates: int) -> ChainNoise:
        """Draw the noise of `num_candidates` chains for each of `num` observations."""
        return draw_chain_noise(key, num, self.num_steps, num_candidates, self.spec)

    def sample(self, params: PyTree, obs: Array, noise: ChainNoise) -> Array:
        """Run independent chains for observations (B, O) as one batch: (N, B, A)."""
        start, steps = noise.for_chains()
        return self._denoise(params, obs, self.start_std * start, steps)

    def trace(self, params: PyTree, obs: Array, noise: ChainNoise) -> Array:
        """Return every point of one chain per observation, the start first: (T + 1, B, A)."""
        start, steps = noise.first_chain()
        return self._denoise(params, obs, self.start_std * start, steps, trace=True)

    def _denoise(
        self, params: PyTree, obs: Array, start: Array, steps: Array, *, trace: bool = False
    ) -> Array:
        def predict_noise(x: Array, t: Array) -> Array:
            return blockwise(lambda some: self.network.apply(params, obs, some, t), x)

        bound = self.spec.act_bound
        return denoise(predict_noise, self.schedule, start, steps, bound=bound, trace=trace)

    def loss(self, params: PyTree, obs: Array, clean: Array, weight: Array, key: Key) -> Array:
        """Return the weighted denoising loss of clean actions (..., B, A), weight (..., B)."""
        return denoising(
            lambda x, t: self.network.apply(params, obs, x, t), self.schedule, clean, weight, key
        )


@dataclass(frozen=True)
class TanhGaussianActor:
    """Tanh-squashed Gaussian policy; the network gives mean and log standard deviation."""

    network: MLP  # (B, O) to (B, 2A)
    bound: float  # half-width of the action box
    squash_correction: bool  # include tanh and box in the log-probability

    def init(self, key: Key) -> PyTree:
        return self.network.init(key)

    def mode(self, params: PyTree, obs: Array) -> Array:
        """Return the squashed mean: (B, A)."""
        return self.bound * jnp.tanh(self._moments(params, obs)[0])

    def sample_with_log_prob(self, params: PyTree, obs: Array, noise: Array) -> tuple[Array, Array]:
        """Return actions (..., B, A) for standard normal noise and log-probabilities (..., B)."""
        moments = self._moments(params, obs)
        mean, log_std = (add_leading_axes(moment, noise.ndim) for moment in moments)
        raw = mean + jnp.exp(log_std) * noise
        # From the noise itself: (raw - mean) / std loses all digits for a narrow Gaussian.
        log_prob = -0.5 * jnp.square(noise) - log_std - 0.5 * jnp.log(2 * jnp.pi)
        if self.squash_correction:
            log_derivative = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))
            log_prob = log_prob - log_derivative - jnp.log(self.bound)
        return self.bound * jnp.tanh(raw), log_prob.sum(axis=-1)

    def trace(self, params: PyTree, obs: Array, noise: Array) -> Array:
        """Return the noise and the action it becomes: (2, B, A)."""
        start = noise[:, 0]
        return jnp.stack([start, self.sample_with_log_prob(params, obs, start)[0]])

    def _moments(self, params: PyTree, obs: Array) -> tuple[Array, Array]:
        mean, log_std = jnp.split(self.network.apply(params, obs), 2, axis=-1)
        return mean, jnp.clip(log_std, -20.0, 0.5)


@dataclass(frozen=True)
class MeanFlowActor:
    """Flow policy: the network predicts the average velocity between two times."""

    network: MLP  # (B, O), (N, B, A), t and ρ to (N, B, A)
    num_steps: int  # K: steps from noise to action
    bound: float  # half-width of the action box

    def init(self, key: Key) -> PyTree:
        return self.network.init(key)

    def velocity(self, params: PyTree, obs: Array, x: Array, t: Array, rho: Array) -> Array:
        """Return the average velocity (..., A) from t to ρ, both in [0, 1]."""
        return self.network.apply(params, obs, x, t[..., None], rho[..., None])

    def noise(self, key: Key, num: int, num_candidates: int) -> Array:
        """Draw the start of `num_candidates` flows for each of `num` observations: (B, N, A)."""
        draws = jax.random.normal(key, (num_candidates, num, self.network.outputs))
        return jnp.moveaxis(draws, 1, 0)

    def sample(self, params: PyTree, obs: Array, noise: Array) -> Array:
        """Run independent flows for observations (B, O) as one batch: (N, B, A)."""

        def velocity(x: Array, t: Array, rho: Array) -> Array:
            return blockwise(lambda some: self.velocity(params, obs, some, t, rho), x)

        action = integrate(velocity, jnp.moveaxis(noise, 0, 1), self.num_steps)
        return jnp.clip(action, -self.bound, self.bound)

    def trace(self, params: PyTree, obs: Array, noise: Array) -> Array:
        """Return every point of one flow per observation, the start first: (K + 1, B, A)."""
        velocity = partial(self.velocity, params, obs)
        path = integrate(velocity, noise[:, 0], self.num_steps, trace=True)
        return path.at[-1].set(jnp.clip(path[-1], -self.bound, self.bound))

    def loss(
        self, params: PyTree, obs: Array, action: Array, constraint_weight: float, key: Key
    ) -> Array:
        """Return the mean-flow loss towards actions (B, A), for sorted uniform times t and ρ."""
        noise_key, time_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, action.shape)
        t, rho = jnp.sort(jax.random.uniform(time_key, (2, len(action))), axis=0)
        velocity = partial(self.velocity, params, obs)
        identity, constraint = mean_flow(velocity, noise, action, t, rho)
        return identity + constraint_weight * constraint
