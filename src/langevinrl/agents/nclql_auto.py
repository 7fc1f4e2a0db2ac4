"""NC-LQL with one set of defaults for every task: automatic temperature and a calm start.

From NC-LQL (arXiv 2602.07873): noise-conditioned critics, Eq. 8 and 9, annealed Langevin dynamics.
Added here: w follows from the policy's standard deviation s; a Gaussian prior holds the first
policies near the middle of the box; no axis drifts further than the step's size; noise falls, but
not in the TD target; evaluation uses a slow average and several chains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.agents.contract import Common
from langevinrl.agents.parts import GradientStats
from langevinrl.agents.presets import SHORT_RUN, Presets
from langevinrl.errors import UserError
from langevinrl.learner import Learner, descend, init_learner, soft_update
from langevinrl.losses import squared, td_backup
from langevinrl.networks import Activation, Critic, Embedding, StateActionNet, smallest
from langevinrl.samplers import langevin
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.noise import ChainNoise
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    slow_params: PyTree  # slow average of the critics' weights, for evaluation
    gradient: GradientStats
    updates: Array  # ()


@dataclass(frozen=True)
class NCLQLAuto(Common):
    """NC-LQL that sets its temperature from the standard deviation of its policy."""

    presets: ClassVar[Presets] = {"short": {}}
    run_defaults: ClassVar[dict[str, Any]] = SHORT_RUN

    target_rate: float = 0.05  # τ: step of the target copy towards the weights
    reward_scale: float = 2.0  # κ: factor on the reward, whose root mean square is 1
    hidden: tuple[int, ...] = (256, 256)  # widths of the hidden layers
    spread: float = 0.1  # s: the policy's standard deviation, as a fraction of the box's half-width
    num_levels: int = 5  # L: noise levels, whose steps shrink from the box's half-width to s
    steps_per_level: int = 1  # T: Langevin steps at each level
    smoothing: float = 0.3  # noise of smoothed values, as a fraction of the level's step; 0: none
    noise_scale: float = 0.25  # factor that the noise of the chain falls to in acting
    noise_updates: int = 10_000  # updates until it has fallen from 1
    target_noise: float = 1.0  # factor on the noise of the chain in the TD target
    calm_updates: int = 2_000  # updates until the policy is exp(wQ) alone
    slow_rate: float = 0.005  # step of the slow average towards the weights
    best_of: int = 8  # N: chains per action in evaluation, the most valuable is kept
    learning_rate: float = 2e-3  # Adam's learning rate for the critics
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
        return self.spec.act_bound * langevin.geometric_sigmas(1.0, self.spread, self.num_levels)

    @property
    def clean(self) -> int:
        return self.num_levels - 1  # index of the level where the critic is the ordinary Q

    @property
    def plan(self) -> langevin.Plan:
        # No noise at the last level: its step removes half of what the level before has added.
        plan = langevin.annealed_plan(self.sigmas, self.steps_per_level, self.sigmas[-1] ** 2)
        return plan._replace(noise_std=jnp.where(plan.level < self.clean, plan.noise_std, 0.0))

    def weight(self, stats: GradientStats) -> Array:
        """Return w = √d / (s · ‖∇Q‖), with the gradient measured where chains end."""
        return stats.inverse_temperature(self.sigmas[-1], self.spec.act_dim)

    def init(self, key: Key) -> State:
        critic = init_learner(self.critic.init(key), optax.adam(self.learning_rate))
        return State(critic, critic.params, GradientStats(*jnp.zeros(2)), jnp.zeros((), jnp.int32))

    def noise(self, key: Key, num: int) -> ChainNoise:
        """Draw N starts, of which training uses the first, and the noise of one chain."""
        start_key, step_key = jax.random.split(key)
        dim, bound = self.spec.act_dim, self.spec.act_bound
        start = jax.random.uniform(start_key, (num, self.best_of, dim), minval=-bound, maxval=bound)
        return ChainNoise(start, jax.random.normal(step_key, (num, len(self.plan.level), 1, dim)))

    def policy(self, state: State, obs: Array, noise: ChainNoise, *, explore: bool) -> Array:
        return self.trace(state, obs, noise)[-1] if explore else self.refine(state, obs, noise)

    def refine(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        slow, (start, _) = state.slow_params, noise.for_chains()
        ends = self._chain(state, self._followed(slow, obs), start, None)[-1]
        return best_of(ends, lambda a: smallest(self.critic.apply(slow, obs, a, self.clean)))

    def trace(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        start, steps = noise.first_chain()
        factor = 1 - (1 - self.noise_scale) * jnp.minimum(1.0, state.updates / self.noise_updates)
        return self._chain(state, self._followed(state.critic.params, obs), start, factor * steps)

    def _chain(self, state: State, q: langevin.Value, start: Array, steps: Array | None) -> Array:
        """Return every point of a chain on prior^(1-β) exp(βwQ), where β grows from 0 to 1."""
        w, bound, steepest = self.weight(state.gradient), self.spec.act_bound, 2 / self.sigmas
        beta = jnp.minimum(1.0, state.updates / self.calm_updates)

        def score(action: Array, level: Array) -> Array:
            prior = -action / (0.4 * bound) ** 2  # Gaussian, wide enough to explore
            mixed = beta * w * langevin.action_gradient(q, action, level) + (1 - beta) * prior
            return jnp.clip(mixed, -steepest[level], steepest[level])  # a drift of σ on each axis

        return langevin.langevin_in_box(score, start, self.plan, steps, bound, trace=True)

    def _followed(self, params: PyTree, obs: Array) -> langevin.Value:
        """Return the value that the chain climbs: the first critic's, for half the cost of both."""
        first, network = jax.tree.map(lambda leaf: leaf[0], params), self.critic.network
        if not self.smoothing:  # the levels differ in their steps only
            return lambda action, _: network.apply(first, obs, action, self.clean)[..., 0]
        return lambda action, level: network.apply(first, obs, action, level)[..., 0]

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, level_key, noise_key = jax.random.split(key, 3)
        critic, next_obs = state.critic, batch.next_obs
        start, steps = self.noise(next_key, len(next_obs)).first_chain()
        q = self._followed(critic.params, next_obs)
        next_action = self._chain(state, q, start, self.target_noise * steps)[-1]
        next_q = self.critic.apply(critic.target_params, next_obs, next_action, self.clean)
        backup = td_backup(next_q, batch, self.gamma, self.reward_scale)
        # Rows that are smoothed, and rows that measure the gradient: not all, to be faster.
        half, few = (len(batch.reward) + 1) // 2, max(1, len(batch.reward) // 4)
        level = jax.random.randint(level_key, (half,), 0, self.clean)
        noise = self.smoothing * jax.random.normal(noise_key, (half, self.spec.act_dim))
        noisy = batch.action[:half] + self.sigmas[level, None] * noise

        def loss(params: PyTree) -> Array:  # Eq. 8 + Eq. 9
            q = self.critic.apply(params, batch.obs, batch.action, self.clean)
            loss = squared(q - backup[None])
            if not self.smoothing:
                return loss
            anchor = jax.lax.stop_gradient(q[:, :half].mean(axis=0, keepdims=True))
            smoothed = self.critic.apply(params, batch.obs[:half], noisy, level)
            return loss + squared(smoothed - anchor)

        q = self._followed(critic.params, next_obs[:few])
        stats = state.gradient.update(langevin.action_gradient(q, next_action[:few], self.clean))
        critic = descend(critic, optax.adam(self.learning_rate), loss)
        critic = soft_update(critic, self.target_rate)
        slow_params = optax.incremental_update(critic.params, state.slow_params, self.slow_rate)
        metrics = {"critic/backup": backup.mean(), "critic/joint": critic.loss}
        metrics |= {"temperature/weight": self.weight(stats), "temperature/slope": stats.norm}
        return Update(State(critic, slow_params, stats, state.updates + 1), metrics)

    def trace_scores(self, state: State, obs: Array, path: Array) -> Array:
        return langevin.path_gradients(self._followed(state.critic.params, obs), path, self.plan)

    def policy_weight(self, state: State) -> Array:
        return self.reward_scale * self.weight(state.gradient)
