"""NC-LQL auto with soft values: the TD target includes the policy's entropy.

The soft value of a state is V(s) = 1/w log ∫ exp(w Q(s, a)) da over the action box, which is the
mean of Q under exp(wQ) plus its entropy divided by w. The integral is estimated by importance
sampling around the end of the chain. Train with hard and soft values:

PYTHONPATH=experiments langevinrl sweep experiments/soft_values.toml --trust --out soft
python experiments/collect.py soft results/auto/soft --lines 0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from langevinrl.agents.nclql_auto import NCLQLAuto, State
from langevinrl.types import Array, Batch, Key, Update


def log_integral(
    log_density: Callable[[Array], Array], centre: Array, std: Array, bound: float, noise: Array
) -> Array:
    """Estimate log ∫ exp(log_density(a)) da over [-bound, bound]^A: (B,).

    The proposal is a Gaussian around `centre` (B, A) truncated to the box. `noise` is uniform on
    [0, 1], (N, B, A). The estimate of the integral is unbiased; that of its logarithm is not.
    """
    centre = centre[None]
    low, high = norm.cdf((-bound - centre) / std), norm.cdf((bound - centre) / std)
    z = norm.ppf(jnp.clip(low + (high - low) * noise, 1e-6, 1 - 1e-6))
    log_proposal = (norm.logpdf(z) - jnp.log(std) - jnp.log(high - low)).sum(axis=-1)
    action = jnp.clip(centre + std * z, -bound, bound)
    ratio = log_density(action) - log_proposal
    return jax.nn.logsumexp(ratio, axis=0) - jnp.log(len(noise))


@dataclass(frozen=True)
class SoftNCLQLAuto(NCLQLAuto):
    """NC-LQL auto whose TD target may be a soft value.

    The chain runs twice per update, here and in NC-LQL auto's own update, so do not compare times.
    """

    soft: bool = True  # soft values in the TD target
    particles: int = 4  # actions per state that estimate the soft value

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        if self.soft:
            bonus = self.entropy_bonus(state, batch, key)
            # κ (r + γ b bonus / κ) + γ b min Q̄ = κ r + γ b V
            reward = batch.reward + self.gamma * batch.bootstrap * bonus / self.reward_scale
            batch = batch._replace(reward=reward)
        return super().update(state, batch, key)

    def entropy_bonus(self, state: State, batch: Batch, key: Key) -> Array:
        """Return the difference of soft value and value at the next action: (B,)."""
        next_key = jax.random.split(key, 3)[0]  # that of NC-LQL auto's update: the same action
        noisy = replace(self, noise_scale=1.0)  # noise falls in acting only
        action = noisy.act(state, batch.next_obs, next_key, explore=True)
        w, target = self.weight(state.gradient), state.critic.target_params

        def value(action: Array) -> Array:
            return self.critic.apply(target, batch.next_obs, action, self.clean).min(axis=0)

        shape = (self.particles, *action.shape)
        noise = jax.random.uniform(jax.random.fold_in(key, 1), shape)
        bound, std = self.spec.act_bound, self.sigmas[-1]
        log_z = log_integral(lambda a: w * value(a), action, std, bound, noise)
        return jnp.where(w > 0, log_z / jnp.maximum(w, 1e-6) - value(action), 0.0)
