"""NC-LQL with automatic temperature.

The critics and their losses are NC-LQL's (arXiv 2602.07873, Eq. 8 and 9). The rest is ours: noise
levels follow from the action box, the chain is a quarter as long, and w follows from the standard
deviation s that the policy should have. For exp(wQ), E‖w∇Q‖² = d/s² on d action axes, both at a
Gaussian peak and for a linear Q that ends at a wall. So w = √d / (s · ‖∇Q‖), with the gradient
measured where chains end. The defaults suit tens of thousands of updates on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.agents.contract import Common
from langevinrl.agents.parts import GradientStats
from langevinrl.agents.presets import SHORT_RUN, Presets
from langevinrl.errors import UserError
from langevinrl.learner import Learner, descend, init_learner, soft_update
from langevinrl.losses import squared, td_backup
from langevinrl.networks import Activation, Critic, Embedding, StateActionNet
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.langevin import (
    Plan,
    action_gradient,
    clip_length,
    constant_noise_plan,
    geometric_sigmas,
    langevin_in_box,
    path_gradients,
)
from langevinrl.samplers.noise import ChainNoise, draw_chain_noise
from langevinrl.types import Array, Batch, Key, PyTree, Update

MEASURED_ROWS = 64  # of a batch: more would cost time, and the mean covers a hundred updates


class State(NamedTuple):
    critic: Learner
    gradient: GradientStats


@dataclass(frozen=True)
class NCLQLAuto(Common):
    """NC-LQL whose inverse temperature follows from the standard deviation of its policy."""

    presets: ClassVar[Presets] = {"short": {}}
    run_defaults: ClassVar[dict[str, Any]] = SHORT_RUN

    target_rate: float = 0.05  # τ: step of the target copy towards the weights
    reward_scale: float = 2.0  # κ: factor on the reward, whose root mean square is 1
    hidden: tuple[int, ...] = (256, 256)  # widths of the hidden layers
    spread: float = 0.2  # s: the policy's standard deviation, as a fraction of the box's half-width
    num_levels: int = 5  # L: noise levels, from the half-width of the box to s
    steps_per_level: int = 1  # T: Langevin steps at each level
    # critics whose gradient the chain follows: the first, or both at twice the cost
    score_critics: Literal["first", "both"] = "first"
    evaluation: Literal["climb", "draw"] = "climb"  # without noise after the start, or with it
    best_of: int = 1  # N: chains per action, the most valuable is kept
    learning_rate: float = 1e-3  # Adam's learning rate for the critics
    activation: Activation = "mish"  # after each hidden layer
    embedding_size: int = 16  # size of the level's embedding

    def __post_init__(self) -> None:
        if self.num_levels == 1:
            raise UserError("num_levels is 1; expected at least 2: one to smooth and a clean one")
        if not 0 < self.spread < 1:
            raise UserError(f"spread is {self.spread:g}; expected between 0 and 1, half the box")

    @property
    def critic(self) -> Critic:
        embedding = Embedding(self.embedding_size, self.activation)
        return Critic(StateActionNet(self.spec, 1, self.hidden, self.activation, embedding))

    @property
    def sigmas(self) -> Array:
        bound = self.spec.act_bound
        return geometric_sigmas(bound, self.spread * bound, self.num_levels)  # (L,)

    @property
    def clean(self) -> int:
        return self.num_levels - 1  # index of the level where the critic is the ordinary Q

    @property
    def plan(self) -> Plan:
        return constant_noise_plan(self.sigmas, self.steps_per_level)

    def weight(self, stats: GradientStats) -> Array:
        """Return w; 0, which makes a chain of pure noise, before the first update."""
        std = self.spread * self.spec.act_bound  # s in action units
        w = self.spec.act_dim**0.5 / (std * jnp.maximum(stats.norm, 1e-12))
        return jnp.where(stats.seen > 0, w, 0.0)

    def init(self, key: Key) -> State:
        critic = init_learner(self.critic.init(key), optax.adam(self.learning_rate))
        return State(critic, GradientStats(jnp.zeros(()), jnp.zeros(())))

    def noise(self, key: Key, num: int) -> ChainNoise:
        num_steps = self.num_levels * self.steps_per_level
        return draw_chain_noise(key, num, num_steps, self.best_of, self.spec, "uniform")

    def policy(self, state: State, obs: Array, noise: ChainNoise, *, explore: bool) -> Array:
        start, steps = noise.for_chains()
        noisy = explore or self.evaluation == "draw"
        candidates = self._chain(state, obs, start, steps if noisy else None)
        value = partial(self.critic.apply, state.critic.params, obs, level=self.clean)
        return best_of(candidates, lambda action: value(action).min(axis=0))

    def refine(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        return replace(self, evaluation="climb").policy(state, obs, noise, explore=False)

    def _chain(
        self, state: State, obs: Array, start: Array, steps: Array | None, trace: bool = False
    ) -> Array:
        """Run annealed Langevin dynamics along w∇Q from the smoothest level to the clean one."""
        q, w = self._followed(state.critic.params, obs), self.weight(state.gradient)
        longest = 2 * self.spec.act_dim**0.5 / self.sigmas  # a drift of σ√d

        def score(action: Array, level: Array) -> Array:
            return clip_length(w * action_gradient(q, action, level), longest[level])

        bound = self.spec.act_bound
        return langevin_in_box(score, start, self.plan, steps, bound, trace=trace)

    def _followed(self, params: PyTree, obs: Array) -> Callable[[Array, Array | int], Array]:
        """Return the value whose gradient the chain follows: one critic or the mean of both."""
        if self.score_critics == "first":
            params = jax.tree.map(lambda leaf: leaf[:1], params)
        return lambda action, level: self.critic.apply(params, obs, action, level).mean(axis=0)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, level_key, noise_key = jax.random.split(key, 3)
        params, target_params = state.critic.params, state.critic.target_params
        next_action = self.act(state, batch.next_obs, next_key, explore=True)
        next_q = self.critic.apply(target_params, batch.next_obs, next_action, self.clean)
        backup = td_backup(next_q, batch, self.gamma, self.reward_scale)

        level = jax.random.randint(level_key, batch.reward.shape, 0, self.clean)
        perturbation = jax.random.normal(noise_key, batch.action.shape)
        noisy = batch.action + self.sigmas[level, None] * perturbation
        value = self.critic.apply(params, batch.obs, batch.action, self.clean)
        anchor = value.mean(axis=0, keepdims=True)

        def loss(params: PyTree) -> Array:  # Eq. 8 + Eq. 9
            q = self.critic.apply(params, batch.obs, batch.action, self.clean)
            smoothed = self.critic.apply(params, batch.obs, noisy, level)
            return squared(q - backup[None]) + squared(smoothed - anchor)

        critic = descend(state.critic, optax.adam(self.learning_rate), loss)
        some = slice(MEASURED_ROWS)
        q = self._followed(params, batch.next_obs[some])
        gradient = state.gradient.update(action_gradient(q, next_action[some], self.clean))
        metrics = {"critic/backup": backup.mean(), "critic/joint": critic.loss}
        metrics |= {"temperature/weight": self.weight(gradient), "temperature/slope": gradient.norm}
        return Update(State(soft_update(critic, self.target_rate), gradient), metrics)

    def trace(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        return self._chain(state, obs, *noise.first_chain(), trace=True)

    def trace_scores(self, state: State, obs: Array, path: Array) -> Array:
        return path_gradients(self._followed(state.critic.params, obs), path, self.plan)

    def policy_weight(self, state: State) -> Array:
        return self.reward_scale * self.weight(state.gradient)
