"""SDAC: soft diffusion actor-critic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from langevinrl.agents.denoising import Tempered
from langevinrl.learner import Learner, descend, when
from langevinrl.losses import reverse_denoising
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    temperature: Learner  # params is the scalar log α
    updates: Array  # done so far


@dataclass(frozen=True)
class SDAC(Tempered):
    """Soft diffusion actor-critic: learns to denoise towards exp(Q/α) without a sample from it."""

    num_noises: int = 64  # K: noises weighed at each noisy action (released code)

    def init(self, key: Key) -> State:
        learners = (*self.enrol_networks(self.actor, key), self.enrol_temperature())
        return State(*learners, jnp.zeros((), jnp.int32))

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, actor_key = jax.random.split(key)
        next_action = self.explore(state.actor.params, state, batch.next_obs, next_key)
        backup = self.backup(state.critic, batch, next_action)
        critic = self.regress(state.critic, batch, backup)

        due = state.updates % self.delay == 0
        actor = when(due, lambda old: self._improve(old, state, batch.obs, actor_key), state.actor)
        temperature = self.cool(state.updates, state.temperature)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/denoising": actor.loss,
            "temperature/alpha": jnp.exp(temperature.params),
        }
        learners = (self.follow(due, critic), self.follow(due, actor), temperature)
        return Update(State(*learners, state.updates + 1), metrics)

    def _improve(self, actor: Learner, state: State, obs: Array, key: Key) -> Learner:
        """One step towards exp(Q/α), by the critics and the temperature before this update."""
        action_key, noise_key = jax.random.split(key)
        action = self.explore(actor.params, state, obs, action_key)

        def log_weight(candidates: Array) -> Array:
            # Relative to the first α, so that Q counts in full at the start (released code).
            heat = jnp.exp(state.temperature.params) / self.initial_alpha
            return self.value(state.critic.params, obs, candidates) / heat

        def loss(params: PyTree) -> Array:
            return reverse_denoising(
                lambda x, t: self.actor.network.apply(params, obs, x, t),
                self.actor.schedule,
                action,
                log_weight,
                noise_key,
                num_noises=self.num_noises,
                bound=self.spec.act_bound,
            )

        return descend(actor, self.actor_optimiser, loss)
