"""Policies with weights: a pure `init`, and a way from noise to N candidates per observation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from langevinrl.losses import denoising, mean_flow
from langevinrl.networks import MLP, Activation, Embedding, StateActionNet, add_leading_axes
from langevinrl.samplers.choose import blockwise
from langevinrl.samplers.diffusion import Schedule, ScheduleName, denoise, make_schedule
from langevinrl.samplers.flow import integrate
from langevinrl.types import Array, Key, PyTree, Spec


@dataclass(frozen=True)
class DenoisingActor:
    """A diffusion policy: the network predicts noise, which the chain takes away step by step."""

    spec: Spec
    hidden: tuple[int, ...]
    activation: Activation
    embedding_size: int
    num_steps: int
    schedule_name: ScheduleName
    schedule_scale: float  # c, of the linear schedule
    start_std: float  # of the noise the chain starts from
    learned_embedding: bool = True  # of the step; else its bare sinusoid

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

    def sample(self, params: PyTree, obs: Array, num_candidates: int, key: Key) -> Array:
        """Independent chains for observations (B, O), scanned as one batch: (N, B, A)."""
        shape = (num_candidates, len(obs), self.spec.act_dim)
        return self._denoise(params, obs, shape, key)

    def trace(self, params: PyTree, obs: Array, key: Key, start: Array | None) -> Array:
        """Every point of one chain per observation, the start (B, A) first: (T + 1, B, A)."""
        shape = (len(obs), self.spec.act_dim)
        return self._denoise(params, obs, shape, key, start=start, trace=True)

    def _denoise(
        self, params: PyTree, obs: Array, shape: tuple[int, ...], key: Key, **how: Any
    ) -> Array:
        def predict_noise(x: Array, t: Array) -> Array:
            return blockwise(lambda some: self.network.apply(params, obs, some, t), x)

        bound, start_std = self.spec.act_bound, self.start_std
        return denoise(
            predict_noise, self.schedule, shape, key, bound=bound, start_std=start_std, **how
        )

    def loss(self, params: PyTree, obs: Array, clean: Array, weight: Array, key: Key) -> Array:
        """Weighted denoising of clean actions (..., B, A), weight (..., B)."""
        return denoising(
            lambda x, t: self.network.apply(params, obs, x, t), self.schedule, clean, weight, key
        )


@dataclass(frozen=True)
class TanhGaussianActor:
    """A Gaussian squashed into the action box; the network gives its mean and log deviation."""

    network: MLP  # (B, O) to (B, 2A)
    bound: float  # half-width of the action box
    squash_correction: bool  # count the squash and the box in the log-probability

    def init(self, key: Key) -> PyTree:
        return self.network.init(key)

    def mode(self, params: PyTree, obs: Array) -> Array:
        """The squashed mean: (B, A)."""
        return self.bound * jnp.tanh(self._moments(params, obs)[0])

    def sample_with_log_prob(self, params: PyTree, obs: Array, noise: Array) -> tuple[Array, Array]:
        """Actions (..., B, A) that standard noise becomes, and their log-probabilities (..., B)."""
        moments = self._moments(params, obs)
        mean, log_std = (add_leading_axes(moment, noise.ndim) for moment in moments)
        raw = mean + jnp.exp(log_std) * noise
        # From the noise: (raw - mean) / std has no digits left where the Gaussian is narrow.
        log_prob = -0.5 * jnp.square(noise) - log_std - 0.5 * jnp.log(2 * jnp.pi)
        if self.squash_correction:
            log_slope = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))
            log_prob = log_prob - log_slope - jnp.log(self.bound)
        return self.bound * jnp.tanh(raw), log_prob.sum(axis=-1)

    def trace(self, params: PyTree, obs: Array, key: Key, start: Array | None) -> Array:
        """The noise and, one jump further, the action it becomes: (2, B, A)."""
        if start is None:
            start = jax.random.normal(key, (len(obs), self.network.outputs // 2))
        return jnp.stack([start, self.sample_with_log_prob(params, obs, start)[0]])

    def _moments(self, params: PyTree, obs: Array) -> tuple[Array, Array]:
        mean, log_std = jnp.split(self.network.apply(params, obs), 2, axis=-1)
        return mean, jnp.clip(log_std, -20.0, 0.5)


@dataclass(frozen=True)
class MeanFlowActor:
    """A flow policy: the network predicts the average velocity between two times."""

    network: MLP  # (B, O), (N, B, A), t and ρ to (N, B, A)
    num_steps: int  # K: jumps from noise to action
    bound: float  # half-width of the action box

    def init(self, key: Key) -> PyTree:
        return self.network.init(key)

    def velocity(self, params: PyTree, obs: Array, x: Array, t: Array, rho: Array) -> Array:
        """Average velocity (..., A) from t to ρ; times as raw numbers in [0, 1]."""
        return self.network.apply(params, obs, x, t[..., None], rho[..., None])

    def sample(self, params: PyTree, obs: Array, num_candidates: int, key: Key) -> Array:
        """Independent flows for observations (B, O), as one batch: (N, B, A)."""
        start = jax.random.normal(key, (num_candidates, len(obs), self.network.outputs))

        def velocity(x: Array, t: Array, rho: Array) -> Array:
            return blockwise(lambda some: self.velocity(params, obs, some, t, rho), x)

        action = integrate(velocity, start, self.num_steps)
        return jnp.clip(action, -self.bound, self.bound)

    def trace(self, params: PyTree, obs: Array, key: Key, start: Array | None) -> Array:
        """Every point of one flow per observation, the start (B, A) first: (K + 1, B, A)."""
        if start is None:
            start = jax.random.normal(key, (len(obs), self.network.outputs))
        path = integrate(partial(self.velocity, params, obs), start, self.num_steps, trace=True)
        return path.at[-1].set(jnp.clip(path[-1], -self.bound, self.bound))

    def loss(
        self, params: PyTree, obs: Array, action: Array, constraint_weight: float, key: Key
    ) -> Array:
        """Mean flow towards actions (B, A), between two uniform times in order."""
        noise_key, time_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, action.shape)
        t, rho = jnp.sort(jax.random.uniform(time_key, (2, len(action))), axis=0)
        velocity = partial(self.velocity, params, obs)
        identity, constraint = mean_flow(velocity, noise, action, t, rho)
        return identity + constraint_weight * constraint
