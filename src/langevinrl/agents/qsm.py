"""QSM: Q-score matching.

Learning a Diffusion Model Policy from Rewards via Q-Score Matching (2024), arXiv 2312.11752. With
`reward_scale` 1 its updates equal those of the SDAC project's released baseline (tests/parity). The
default sampler is that baseline's, without a time input; `sampler="ddpm"` is the original's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.agents.contract import Common
from langevinrl.agents.parts import ExploringNoise, TwinCritics, draw_exploring_noise
from langevinrl.agents.presets import Presets, short_with_actor
from langevinrl.learner import Learner, decaying_adam, descend, init_learner, soft_update
from langevinrl.networks import Activation, Critic, Embedding, StateActionNet, smallest
from langevinrl.samplers.choose import add_exploration, blockwise
from langevinrl.samplers.diffusion import ScheduleName, add_noise, make_schedule, reverse
from langevinrl.samplers.langevin import Plan, langevin_in_box
from langevinrl.samplers.noise import ChainNoise, draw_chain_noise
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner


@dataclass(frozen=True)
class QSM(Common):
    """Q-score matching: a score network learns the critics' action gradient."""

    presets: ClassVar[Presets] = short_with_actor(2e-3)

    reward_scale: float = 0.2  # κ: factor on the reward (paper); 1.0 is the released baseline code
    sampler: Literal["langevin", "ddpm"] = "langevin"  # timeless (baseline code), or original's
    num_steps: int = 20  # T: steps per action (original ddpm: 5)
    best_of: int = 32  # N: chains per action, the most valuable is kept (original ddpm: 1)
    gradient_scale: float = 50.0  # M: factor on the critics' gradient (ddpm only)
    schedule: ScheduleName = "vp"  # noise rates (ddpm only)
    noise_scale: float = 0.0  # noise on explored and next actions (original ddpm: 0.1)
    critic_learning_rate: float = 3e-4  # Adam's learning rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's learning rate for the score
    final_actor_learning_rate: float = 3e-5  # after the decay (baseline code; the paper has none)
    decay_start: int = 25_000  # score steps before its rate falls, for twice as many (code)
    activation: Activation = "relu"  # after each hidden layer
    embedding_size: int = 16  # width of the step's embedding (ddpm only)

    @property
    def critic(self) -> Critic:
        return Critic(StateActionNet(self.spec, 1, self.hidden, self.activation))

    @property
    def critics(self) -> TwinCritics:
        adam = optax.adam(self.critic_learning_rate)
        return TwinCritics(self.critic, adam, self.gamma, self.reward_scale)

    @property
    def score(self) -> StateActionNet:
        timed = self.sampler == "ddpm"
        embedding = Embedding(self.embedding_size, self.activation) if timed else None
        return StateActionNet(self.spec, self.spec.act_dim, self.hidden, self.activation, embedding)

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        rate, final_rate = self.actor_learning_rate, self.final_actor_learning_rate
        return decaying_adam(rate, final_rate, self.decay_start)

    def init(self, key: Key) -> State:
        critic_key, score_key = jax.random.split(key)
        actor = init_learner(self.score.init(score_key), self.actor_optimiser)
        return State(self.critics.init(critic_key), actor)

    def noise(self, key: Key, num: int) -> ExploringNoise:
        return draw_exploring_noise(key, num, self.num_steps, self.best_of, self.spec)

    def policy(self, state: State, obs: Array, noise: ExploringNoise, *, explore: bool) -> Array:
        if explore:
            return self._explore(state, obs, noise)
        # Every state gets the same noise, drawn once with key 0 (released baseline code).
        with jax.ensure_compile_time_eval():
            fixed = draw_chain_noise(jax.random.key(0), 1, self.num_steps, self.best_of, self.spec)
        rows = (len(obs),)
        same = jax.tree.map(lambda x: jnp.broadcast_to(x, rows + x.shape[1:]), fixed)
        return self._choose(state, obs, same)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, score_key = jax.random.split(key)
        next_noise = self.noise(next_key, len(batch.next_obs))
        next_action = self._explore(state, batch.next_obs, next_noise)
        backup = self.critics.backup(state.critic, batch, next_action)
        critic = self.critics.update_critic(state.critic, batch, backup)
        action, step, gradient = self._target(critic.params, batch, score_key)

        def matching(params: PyTree) -> Array:
            return jnp.square(self.score.apply(params, batch.obs, action, step) - gradient).mean()

        actor = descend(state.actor, self.actor_optimiser, matching)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/matching": actor.loss,
            "policy/slope": jnp.linalg.norm(gradient, axis=-1).mean(),
        }
        return Update(State(soft_update(critic, self.target_rate), actor), metrics)

    def trace(self, state: State, obs: Array, noise: ExploringNoise) -> Array:
        return self._chain(state.actor.params, obs, *noise.chain.first_chain(), trace=True)

    def policy_weight(self, state: State) -> float:
        if self.sampler == "ddpm":
            return self.reward_scale * self.gradient_scale
        return self.reward_scale

    def _target(self, critic: PyTree, batch: Batch, key: Key) -> tuple[Array, Array | None, Array]:
        """Return the score's inputs (B, A), their steps (B,) if it has any, and its targets."""

        def value(action: Array) -> Array:  # minimum of both critics, or their mean
            q = self.critic.apply(critic, batch.obs, action)
            return (smallest(q) if self.sampler == "langevin" else q.mean(axis=0)).sum()

        if self.sampler == "langevin":
            return batch.action, None, jax.grad(value)(batch.action)
        step_key, noise_key = jax.random.split(key)
        step = jax.random.randint(step_key, batch.reward.shape, 0, self.num_steps)
        noise = jax.random.normal(noise_key, batch.action.shape)
        noisy = add_noise(make_schedule(self.schedule, self.num_steps), batch.action, step, noise)
        return noisy, step, -self.gradient_scale * jax.grad(value)(noisy)

    def _explore(self, state: State, obs: Array, noise: ExploringNoise) -> Array:
        choice = self._choose(state, obs, noise.chain)
        return add_exploration(choice, self.noise_scale, noise.action, self.spec.act_bound)

    def _choose(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        """Return the most valuable of N chains for each observation: (B, A)."""
        candidates = self._chain(state.actor.params, obs, *noise.for_chains())
        return self.critics.choose(state.critic.params, obs, candidates)

    def _chain(
        self, params: PyTree, obs: Array, start: Array, steps: Array, *, trace: bool = False
    ) -> Array:
        """Run chains along the learned score."""

        def score(x: Array, step: Array) -> Array:
            return blockwise(partial(self.score.apply, params, obs, index=step), x)

        bound, index = self.spec.act_bound, jnp.arange(self.num_steps)
        if self.sampler == "langevin":
            sizes = 1 - index / self.num_steps  # δ_k
            plan = Plan(sizes, index, jnp.sqrt(sizes))
            return langevin_in_box(score, start, plan, steps, bound, trace=trace)
        schedule = make_schedule(self.schedule, self.num_steps)
        return reverse(score, schedule, start, steps[::-1], bound=bound, trace=trace)
