"""NC-LQL: noise-conditioned Langevin Q-learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax

from langevinrl.agents.langevin import Langevin, State
from langevinrl.errors import UserError
from langevinrl.learner import descend, track
from langevinrl.losses import squared, td_backup
from langevinrl.networks import Critic, Embedding, Field
from langevinrl.samplers.langevin import Plan, annealed_plan, geometric_sigmas
from langevinrl.types import Array, Batch, Key, PyTree, Update


@dataclass(frozen=True)
class NCLQL(Langevin):
    """Noise-conditioned LQL: a ladder of smoothed critics, walked from the smoothest down."""

    sigma_max: float = 0.1  # σ₁: noise of the smoothest level
    sigma_min: float = 1e-3  # σ_L: noise of the clean level
    num_levels: int = 10  # L: noise levels
    steps_per_level: int = 2  # T: Langevin steps at each level
    embedding_size: int = 16  # width of the level's embedding
    # one Adam step for each loss (released code), or one for their sum (paper)
    optimisation: Literal["two_steps", "joint"] = "two_steps"
    # the clean value smoothing regresses on: the members' mean (code), or each its own (paper)
    anchor: Literal["mean", "own"] = "mean"
    smooth_clean_level: bool = False  # let smoothing draw the clean level too (paper: yes)

    def __post_init__(self) -> None:
        if self.num_levels == 1:
            raise UserError("num_levels is 1; expected more: a clean level and one to smooth")
        if self.sigma_min == 0 or self.sigma_min >= self.sigma_max:
            raise UserError(
                f"sigma_min is {self.sigma_min}; "
                f"expected more than 0 and less than sigma_max, {self.sigma_max}"
            )

    @property
    def critic(self) -> Critic:
        embedding = Embedding(self.embedding_size, self.activation)
        return Critic(Field(self.spec, 1, self.hidden, self.activation, embedding))

    @property
    def sigmas(self) -> Array:
        return geometric_sigmas(self.sigma_max, self.sigma_min, self.num_levels)

    @property
    def clean(self) -> int:
        """Index of the cleanest level, where the critic is the ordinary Q."""
        return self.num_levels - 1

    @property
    def plan(self) -> Plan:
        return annealed_plan(self.sigmas, self.steps_per_level, self.step_size)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, level_key, noise_key = jax.random.split(key, 3)
        next_action = self.sample(state.critic.params, batch.next_obs, next_key)
        next_q = self.critic.apply(
            state.critic.target_params, batch.next_obs, next_action, self.clean
        )
        backup = td_backup(next_q, batch, self.gamma, self.reward_scale)
        level, noisy = self._perturb(batch.action, level_key, noise_key)
        value = self.critic.apply(state.critic.params, batch.obs, batch.action, self.clean)
        anchor = value.mean(axis=0, keepdims=True) if self.anchor == "mean" else value

        def bellman(params: PyTree) -> Array:  # Eq. 8
            q = self.critic.apply(params, batch.obs, batch.action, self.clean)
            return squared(q - backup[None])

        def smoothing(params: PyTree) -> Array:  # Eq. 9
            return squared(self.critic.apply(params, batch.obs, noisy, level) - anchor)

        metrics = {"critic/backup": backup.mean()}
        if self.optimisation == "two_steps":  # one Adam state for both (released code)
            critic = descend(state.critic, self.optimiser, bellman)
            metrics["critic/bellman"] = critic.loss
            critic = descend(critic, self.optimiser, smoothing)
            metrics["critic/smoothing"] = critic.loss
        else:
            critic = descend(state.critic, self.optimiser, lambda p: bellman(p) + smoothing(p))
            metrics["critic/joint"] = critic.loss
        return Update(State(track(critic, self.target_rate)), metrics)

    def _perturb(self, action: Array, level_key: Key, noise_key: Key) -> tuple[Array, Array]:
        """A noise level for each action, and the action under that noise, not clipped."""
        num_smoothed = self.num_levels if self.smooth_clean_level else self.num_levels - 1
        level = jax.random.randint(level_key, action.shape[:1], 0, num_smoothed)
        noise = jax.random.normal(noise_key, action.shape)
        return level, action + self.sigmas[level, None] * noise
