"""NC-LQL: noise-conditioned Langevin Q-learning.

Direct Soft-Policy Sampling via Langevin Dynamics (2026), arXiv 2602.07873. The defaults are those
of the authors' released code; tests/parity compares updates and actions with it to 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import jax
import optax

from langevinrl.agents.contract import Common
from langevinrl.agents.presets import Presets, short
from langevinrl.errors import UserError
from langevinrl.learner import Learner, descend, init_learner, soft_update
from langevinrl.losses import squared, td_backup
from langevinrl.networks import Activation, Critic, Embedding, StateActionNet
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.langevin import (
    Plan,
    action_gradient,
    annealed_plan,
    geometric_sigmas,
    langevin_in_box,
    path_gradients,
    unit,
)
from langevinrl.samplers.noise import ChainNoise, StartDistribution, draw_chain_noise
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner


@dataclass(frozen=True)
class NCLQL(Common):
    """Noise-conditioned LQL: annealed Langevin dynamics on critics smoothed at several levels."""

    presets: ClassVar[Presets] = short(learning_rate=1e-3)

    inverse_temperature: float = 500.0  # w: drift of the chain along the critic's gradient
    step_size: float = 1e-4  # ε: Langevin step size at the clean level
    sigma_max: float = 0.1  # σ₁: noise of the smoothest level
    sigma_min: float = 1e-3  # σ_L: noise of the clean level
    num_levels: int = 10  # L: noise levels
    steps_per_level: int = 2  # T: Langevin steps at each level
    # distribution of the first action: uniform (released code), normal (the paper's bandit), zero
    start: StartDistribution = "uniform"
    clip: bool = True  # clip the chain to the action box at every step (code; paper silent)
    normalise: bool = True  # follow the gradient's direction only (paper, App. E)
    best_of: int = 1  # N: chains per action, the most valuable is kept
    learning_rate: float = 1e-4  # Adam's learning rate for the critics
    # one Adam step for each loss (released code), or one for their sum (paper)
    optimisation: Literal["two_steps", "joint"] = "two_steps"
    # regression target of smoothing: mean of both critics (code), or each critic its own (paper)
    anchor: Literal["mean", "own"] = "mean"
    smooth_clean_level: bool = False  # smoothing may also draw the clean level (paper: yes)
    activation: Activation = "mish"  # after each hidden layer
    embedding_size: int = 16  # size of the level's embedding

    def __post_init__(self) -> None:
        if not 0 < self.sigma_min < self.sigma_max:
            expected = f"more than 0 and less than sigma_max, {self.sigma_max}"
            raise UserError(f"sigma_min is {self.sigma_min}; expected {expected}")

    @property
    def critic(self) -> Critic:
        embedding = Embedding(self.embedding_size, self.activation)
        return Critic(StateActionNet(self.spec, 1, self.hidden, self.activation, embedding))

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    @property
    def sigmas(self) -> Array:
        return geometric_sigmas(self.sigma_max, self.sigma_min, self.num_levels)  # (L,)

    @property
    def clean(self) -> int:
        return self.num_levels - 1  # index of the level where the critic is the ordinary Q

    @property
    def plan(self) -> Plan:
        return annealed_plan(self.sigmas, self.steps_per_level, self.step_size)

    def init(self, key: Key) -> State:
        return State(init_learner(self.critic.init(key), self.optimiser))

    def noise(self, key: Key, num: int) -> ChainNoise:
        num_steps = self.num_levels * self.steps_per_level
        return draw_chain_noise(key, num, num_steps, self.best_of, self.spec, self.start)

    def policy(self, state: State, obs: Array, noise: ChainNoise, *, explore: bool) -> Array:
        del explore  # the chain is the policy: evaluation samples it too
        return self._sample(state.critic.params, obs, *noise.for_chains())

    def refine(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        return self._sample(state.critic.params, obs, noise.for_chains()[0], None)

    def _sample(self, params: PyTree, obs: Array, start: Array, steps: Array | None) -> Array:
        """Return the most valuable of N chains for each observation: (B, A)."""
        candidates = self._chain(params, obs, start, steps)
        value = partial(self.critic.apply, params, obs, level=self.clean)
        return best_of(candidates, lambda action: value(action).min(axis=0))

    def _chain(
        self, params: PyTree, obs: Array, start: Array, steps: Array | None, trace: bool = False
    ) -> Array:
        """Run annealed Langevin dynamics from the smoothest level to the clean one (Def. 2)."""
        q = partial(self.critic.apply, params, obs)

        def score(action: Array, level: Array) -> Array:  # w ∇_a (Q₁ + Q₂), or along its direction
            gradient = action_gradient(q, action, level)
            return self.inverse_temperature * (unit(gradient) if self.normalise else gradient)

        bound, clip = self.spec.act_bound, self.clip
        return langevin_in_box(score, start, self.plan, steps, bound, clip=clip, trace=trace)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, level_key, noise_key = jax.random.split(key, 3)
        params, target_params = state.critic.params, state.critic.target_params
        noise = self.noise(next_key, len(batch.next_obs))
        next_action = self._sample(params, batch.next_obs, *noise.for_chains())
        next_q = self.critic.apply(target_params, batch.next_obs, next_action, self.clean)
        backup = td_backup(next_q, batch, self.gamma, self.reward_scale)

        num_smoothed = self.num_levels if self.smooth_clean_level else self.num_levels - 1
        level = jax.random.randint(level_key, batch.reward.shape, 0, num_smoothed)
        perturbation = jax.random.normal(noise_key, batch.action.shape)
        noisy = batch.action + self.sigmas[level, None] * perturbation
        value = self.critic.apply(params, batch.obs, batch.action, self.clean)
        anchor = value.mean(axis=0, keepdims=True) if self.anchor == "mean" else value

        def bellman(params: PyTree) -> Array:  # Eq. 8
            q = self.critic.apply(params, batch.obs, batch.action, self.clean)
            return squared(q - backup[None])

        def smoothing(params: PyTree) -> Array:  # Eq. 9
            return squared(self.critic.apply(params, batch.obs, noisy, level) - anchor)

        losses = {"bellman": bellman, "smoothing": smoothing}
        if self.num_levels == 1:  # only the clean level: nothing to smooth
            losses = {"bellman": bellman}
        elif self.optimisation == "joint":
            losses = {"joint": lambda params: bellman(params) + smoothing(params)}
        critic, metrics = state.critic, {"critic/backup": backup.mean()}
        for name, loss in losses.items():  # one Adam state for all of them (released code)
            critic = descend(critic, self.optimiser, loss)
            metrics[f"critic/{name}"] = critic.loss
        return Update(State(soft_update(critic, self.target_rate)), metrics)

    def trace(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        return self._chain(state.critic.params, obs, *noise.first_chain(), trace=True)

    def trace_scores(self, state: State, obs: Array, path: Array) -> Array:
        q = partial(self.critic.apply, state.critic.params, obs)
        return path_gradients(q, path, self.plan)

    def policy_weight(self, state: State) -> float:
        return self.inverse_temperature
