"""QSM: Q-score matching.

Learning a Diffusion Model Policy from Rewards via Q-Score Matching (2024), arXiv 2312.11752.  With
`reward_scale` 1 its updates are those of the SDAC project's released baseline (tests/parity), whose
sampler, without time, is the default; `sampler="ddpm"` is the original's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.agents.contract import Common
from langevinrl.agents.parts import TwinCritics
from langevinrl.learner import Learner, decaying_adam, descend, init_learner, soft_update
from langevinrl.networks import Activation, Critic, Embedding, StateActionNet
from langevinrl.samplers.choose import blockwise, jitter
from langevinrl.samplers.diffusion import ScheduleName, add_noise, make_schedule, reverse
from langevinrl.samplers.langevin import Plan, walk
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner


@dataclass(frozen=True)
class QSM(Common):
    """A score network learns the critics' action gradient, and actions walk along it."""

    reward_scale: float = 0.2  # κ: factor on the reward (paper); 1.0 is the released baseline code
    sampler: Literal["langevin", "ddpm"] = "langevin"  # timeless (baseline code), or original's
    num_steps: int = 20  # T: steps per action (original ddpm: 5)
    best_of: int = 32  # N: chains per action, the most valuable kept (original ddpm: 1)
    gradient_scale: float = 50.0  # M: factor on the critics' gradient (ddpm only)
    schedule: ScheduleName = "vp"  # noise rates (ddpm only)
    noise_scale: float = 0.0  # noise on explored and next actions (original ddpm: 0.1)
    critic_learning_rate: float = 3e-4  # Adam's rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's rate for the score
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
        rates = (self.actor_learning_rate, self.final_actor_learning_rate)
        return decaying_adam(*rates, self.decay_start)

    def init(self, key: Key) -> State:
        critic_key, score_key = jax.random.split(key)
        actor = init_learner(self.score.init(score_key), self.actor_optimiser)
        return State(self.critics.init(critic_key), actor)

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        if explore:
            return self._explore(state, obs, key)
        # Each row alone and with one key: the same noise in every state (released baseline code).
        alone = partial(self._choose, state, key=jax.random.key(0))
        return jax.vmap(alone)(obs[:, None])[:, 0]

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, score_key = jax.random.split(key)
        next_action = self._explore(state, batch.next_obs, next_key)
        backup = self.critics.backup(state.critic, batch, next_action)
        critic = self.critics.update_critic(state.critic, batch, backup)
        action, step, slope = self._slope(critic.params, batch, score_key)

        def matching(params: PyTree) -> Array:
            return jnp.square(self.score.apply(params, batch.obs, action, step) - slope).mean()

        actor = descend(state.actor, self.actor_optimiser, matching)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/matching": actor.loss,
            "policy/slope": jnp.linalg.norm(slope, axis=-1).mean(),
        }
        return Update(State(soft_update(critic, self.target_rate), actor), metrics)

    def trace(self, state: State, obs: Array, key: Key, start: Array | None = None) -> Array:
        chain_key, _ = jax.random.split(key)  # as in exploring, whose noise comes after
        shape = (len(obs), self.spec.act_dim)
        return self._walk(state.actor.params, obs, shape, chain_key, start, trace=True)

    def policy_weight(self, state: State) -> float:
        if self.sampler == "ddpm":
            return self.reward_scale * self.gradient_scale
        return self.reward_scale

    def _slope(self, critic: PyTree, batch: Batch, key: Key) -> tuple[Array, Array | None, Array]:
        """Where the score is taught (B, A), at which steps (B,) if it has any, and what."""

        def value(action: Array) -> Array:  # of the lesser critic at each row, or of their mean
            q = self.critic.apply(critic, batch.obs, action)
            return (q.min(axis=0) if self.sampler == "langevin" else q.mean(axis=0)).sum()

        if self.sampler == "langevin":
            return batch.action, None, jax.grad(value)(batch.action)
        step_key, noise_key = jax.random.split(key)
        step = jax.random.randint(step_key, batch.reward.shape, 0, self.num_steps)
        noise = jax.random.normal(noise_key, batch.action.shape)
        noisy = add_noise(make_schedule(self.schedule, self.num_steps), batch.action, step, noise)
        return noisy, step, -self.gradient_scale * jax.grad(value)(noisy)

    def _explore(self, state: State, obs: Array, key: Key) -> Array:
        chain_key, noise_key = jax.random.split(key)
        choice = self._choose(state, obs, chain_key)
        return jitter(choice, self.noise_scale, noise_key, self.spec.act_bound)

    def _choose(self, state: State, obs: Array, key: Key) -> Array:
        """The most valuable of N chains for each observation: (B, A)."""
        shape = (self.best_of, len(obs), self.spec.act_dim)
        candidates = self._walk(state.actor.params, obs, shape, key)
        return self.critics.choose(state.critic.params, obs, candidates)

    def _walk(
        self, params: PyTree, obs: Array, shape: tuple[int, ...], key: Key,
        start: Array | None = None, trace: bool = False,
    ) -> Array:  # fmt: skip
        """Chains along the score to actions of `shape`, from `start` or a normal draw."""
        start_key, chain_key = jax.random.split(key)
        if start is None:
            start = jax.random.normal(start_key, shape)

        def score(x: Array, step: Array) -> Array:
            return blockwise(partial(self.score.apply, params, obs, index=step), x)

        bound, num_steps = self.spec.act_bound, self.num_steps
        if self.sampler == "langevin":
            plan = Plan(1 - jnp.arange(num_steps) / num_steps, jnp.arange(num_steps))  # δ_k
            box = partial(jnp.clip, min=-bound, max=bound)
            return walk(score, start, plan, chain_key, project=box, trace=trace)
        schedule = make_schedule(self.schedule, num_steps)
        return reverse(score, schedule, start, chain_key, bound, trace=trace)
