"""DIPO: diffusion policy by action gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import DenoisingActor
from langevinrl.agents.actor_critic import ActorCritic
from langevinrl.learner import Learner, clip_members, descend, enrol, track, when
from langevinrl.networks import Activation, Embedding, Field
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.diffusion import ScheduleName
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    updates: Array


@dataclass(frozen=True)
class DIPO(ActorCritic):
    """Replayed actions climb the critic and are written back; a diffusion policy fits them."""

    # The improved twin of every replayed action, here in place of a second buffer of pairs.
    columns: ClassVar[dict[str, str]] = {"improved": "action"}

    reward_scale: float = 0.2  # κ: factor on the reward (paper); 1.0 is the released baseline code
    num_steps: int = 100  # T: denoising steps per action
    schedule: ScheduleName = "linear"  # noise rates (released code), or the original's cosine
    schedule_scale: float = 0.3  # c: factor on the linear schedule (released code)
    start_std: float = 0.5  # spread of the noise a chain starts from (released code; original: 1)
    num_ascent_steps: int = 30  # Adam steps that improve an action (original: 20 to 40 by task)
    ascent_rate: float = 0.03  # Adam's rate for improving actions
    ascent_max_norm: float = 0.16  # clip of the batch's action gradient (original: m x 0.08 to 0.3)
    max_norm: float = 2.0  # clip of the policy's and of each critic's gradient (released code)
    backup_policy: Literal["target", "online"] = "target"  # draws the next action (code: target)
    actor_delay: int = 2  # updates per move of the policy's target copy (released code)
    activation: Activation = "mish"  # after each hidden layer (paper); relu is the released code
    embedding_size: int = 32  # width of the denoising step's sinusoid
    best_of: int = 1  # N: chains per action, the most valuable kept

    @property
    def actor(self) -> DenoisingActor:
        spec, embedding = self.spec, Embedding(self.embedding_size, self.activation, learned=False)
        network = Field(spec, spec.act_dim, self.hidden, self.activation, embedding)
        return DenoisingActor(
            network, self.num_steps, self.schedule, self.schedule_scale, self.start_std
        )

    @property
    def critic_optimiser(self) -> optax.GradientTransformation:
        return optax.chain(clip_members(self.max_norm), optax.adam(self.critic_learning_rate))

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        clip = optax.clip_by_global_norm(self.max_norm)
        return optax.chain(clip, optax.adam(self.actor_learning_rate))

    def init(self, key: Key) -> State:
        return State(*self.enrol_networks(self.actor, key), jnp.zeros((), jnp.int32))

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        del explore  # the chain's own noise is the exploration; evaluation samples it too
        return self._sample(state.actor.params, state.critic.params, obs, key)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, noise_key = jax.random.split(key)
        slow = self.backup_policy == "target"
        source = state.actor.target_params if slow else state.actor.params
        next_action = self._sample(source, state.critic.params, batch.next_obs, next_key)
        backup = self.backup(state.critic, batch, next_action)
        critic = self.regress(state.critic, batch, backup)
        # The critics' own rows serve here too.  The original draws others, by the same law from
        # the same pairs; a second draw would change no expectation and cost another gather.
        improved = self._improve(critic.params, batch.obs, batch.extra["improved"])
        half = jnp.full(len(improved), 0.5)

        def denoising(params: PyTree) -> Array:
            return self.actor.loss(params, batch.obs, improved, half, noise_key)

        actor = descend(state.actor, self.actor_optimiser, denoising)
        due = state.updates % self.actor_delay == 0
        actor = when(due, lambda moved: track(moved, self.target_rate), actor)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/denoising": actor.loss,
            "policy/improvement": jnp.abs(improved - batch.extra["improved"]).mean(),
        }
        critic = track(critic, self.target_rate)
        return Update(State(critic, actor, state.updates + 1), metrics, {"improved": improved})

    def _improve(self, params: PyTree, obs: Array, action: Array) -> Array:
        """Actions (B, A) after some Adam steps up the critics' minimum, held in the box."""
        # One norm for the whole batch; Adam starts afresh, for these rows are new to it.
        clip = optax.clip_by_global_norm(self.ascent_max_norm)
        optimiser = optax.chain(clip, optax.adam(self.ascent_rate))
        bound = self.spec.act_bound

        def step(learner: Learner, _: None) -> tuple[Learner, None]:
            moved = descend(learner, optimiser, lambda a: -self.value(params, obs, a).sum())
            return moved._replace(params=jnp.clip(moved.params, -bound, bound)), None

        return jax.lax.scan(step, enrol(action, optimiser), length=self.num_ascent_steps)[0].params

    def _sample(self, actor: PyTree, critic: PyTree, obs: Array, key: Key) -> Array:
        candidates = self.actor.sample(actor, obs, self.best_of, key)
        return best_of(candidates, lambda action: self.value(critic, obs, action))
