"""DIPO: diffusion policy by action gradients.

Policy Representation via Diffusion Probability Model for Reinforcement Learning (2023),
arXiv 2305.13122. With relu, 20 steps and `reward_scale` 1 its updates equal those of the SDAC
project's released baseline (tests/parity).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import DenoisingActor
from langevinrl.agents.contract import Common
from langevinrl.agents.parts import TwinCritics
from langevinrl.agents.presets import Presets, short_with_actor
from langevinrl.learner import (
    Learner,
    clip_members,
    descend,
    init_learner,
    soft_update,
    update_target,
)
from langevinrl.networks import Activation, Critic, StateActionNet
from langevinrl.samplers.diffusion import ScheduleName
from langevinrl.samplers.noise import ChainNoise
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    updates: Array  # done so far


@dataclass(frozen=True)
class DIPO(Common):
    """Replayed actions follow the critics' gradient; a diffusion policy is fitted to them."""

    presets: ClassVar[Presets] = short_with_actor(2e-3)

    # The improved copy of every replayed action, instead of a second buffer of pairs.
    columns: ClassVar[dict[str, str]] = {"improved": "action"}

    reward_scale: float = 0.2  # κ: factor on the reward (paper); 1.0 is the released baseline code
    num_steps: int = 100  # T: denoising steps per action
    best_of: int = 1  # N: chains per action, the most valuable is kept
    num_ascent_steps: int = 30  # Adam steps that improve an action (original: 20 to 40 by task)
    ascent_rate: float = 0.03  # Adam's learning rate for improving actions
    ascent_max_norm: float = 0.16  # clip of the batch's action gradient (original: m x 0.08 to 0.3)
    backup_policy: Literal["target", "online"] = "target"  # draws the next action (code: target)
    critic_learning_rate: float = 3e-4  # Adam's learning rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's learning rate for the policy
    max_norm: float = 2.0  # clip of the policy's and of each critic's gradient (released code)
    actor_delay: int = 2  # updates per move of the policy's target copy (released code)
    schedule: ScheduleName = "linear"  # noise rates (released code), or the original's cosine
    schedule_scale: float = 0.3  # c: factor on the linear schedule (released code)
    start_std: float = 0.5  # standard deviation of the chain's start (released code; original: 1)
    activation: Activation = "mish"  # after each hidden layer (paper); relu is the released code
    embedding_size: int = 32  # width of the denoising step's sinusoid

    @property
    def critics(self) -> TwinCritics:
        network = Critic(StateActionNet(self.spec, 1, self.hidden, self.activation))
        adam = optax.adam(self.critic_learning_rate)
        clipped = optax.chain(clip_members(self.max_norm), adam)
        return TwinCritics(network, clipped, self.gamma, self.reward_scale)

    @property
    def actor(self) -> DenoisingActor:
        return DenoisingActor(
            self.spec, self.hidden, self.activation, self.embedding_size,
            self.num_steps, self.schedule, self.schedule_scale, self.start_std,
            learned_embedding=False,
        )  # fmt: skip

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        clip = optax.clip_by_global_norm(self.max_norm)
        return optax.chain(clip, optax.adam(self.actor_learning_rate))

    def init(self, key: Key) -> State:
        critic_key, actor_key = jax.random.split(key)
        actor = init_learner(self.actor.init(actor_key), self.actor_optimiser)
        return State(self.critics.init(critic_key), actor, jnp.zeros((), jnp.int32))

    def noise(self, key: Key, num: int) -> ChainNoise:
        return self.actor.noise(key, num, self.best_of)

    def policy(self, state: State, obs: Array, noise: ChainNoise, *, explore: bool) -> Array:
        del explore  # the chain's own noise is the exploration; evaluation samples it too
        return self._choose(state.actor.params, state.critic.params, obs, noise)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, noise_key = jax.random.split(key)
        slow = self.backup_policy == "target"
        source = state.actor.target_params if slow else state.actor.params
        noise = self.noise(next_key, len(batch.next_obs))
        next_action = self._choose(source, state.critic.params, batch.next_obs, noise)
        backup = self.critics.backup(state.critic, batch, next_action)
        critic = self.critics.update_critic(state.critic, batch, backup)
        # The original draws a second batch from the same pairs. Using the critics' rows has the
        # same expectation and saves a gather.
        improved = self._improve(critic.params, batch.obs, batch.extra["improved"])
        half = jnp.full(len(improved), 0.5)

        def denoising(params: PyTree) -> Array:
            return self.actor.loss(params, batch.obs, improved, half, noise_key)

        actor = descend(state.actor, self.actor_optimiser, denoising)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/denoising": actor.loss,
            "policy/improvement": jnp.abs(improved - batch.extra["improved"]).mean(),
        }
        critic = soft_update(critic, self.target_rate)
        due = state.updates % self.actor_delay == 0
        actor = update_target(due, actor, self.target_rate)
        return Update(State(critic, actor, state.updates + 1), metrics, {"improved": improved})

    def trace(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        return self.actor.trace(state.actor.params, obs, noise)

    def _improve(self, params: PyTree, obs: Array, action: Array) -> Array:
        """Return actions (B, A) after Adam steps up the critics' minimum, clipped to the box."""
        # One norm for the whole batch; Adam starts with fresh state for these rows.
        clip = optax.clip_by_global_norm(self.ascent_max_norm)
        optimiser = optax.chain(clip, optax.adam(self.ascent_rate))
        bound = self.spec.act_bound

        def loss(action: Array) -> Array:
            return -self.critics.value(params, obs, action).sum()

        def step(learner: Learner, _: None) -> tuple[Learner, None]:
            moved = descend(learner, optimiser, loss)
            return moved._replace(params=jnp.clip(moved.params, -bound, bound)), None

        start = init_learner(action, optimiser)
        return jax.lax.scan(step, start, length=self.num_ascent_steps)[0].params

    def _choose(self, actor: PyTree, critic: PyTree, obs: Array, noise: ChainNoise) -> Array:
        """Return the most valuable of N chains for each observation: (B, A)."""
        return self.critics.choose(critic, obs, self.actor.sample(actor, obs, noise))
