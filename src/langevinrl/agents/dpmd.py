"""DPMD: diffusion policy mirror descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from langevinrl.agents.denoising import Tempered
from langevinrl.learner import Learner, descend, when
from langevinrl.losses import MirrorForm, mirror_weight
from langevinrl.types import Array, Batch, Key, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    temperature: Learner  # params is the scalar log α
    updates: Array  # done so far
    mean_q: Array  # μ_Q, running
    std_q: Array  # s_Q, running


@dataclass(frozen=True)
class DPMD(Tempered):
    """Diffusion policy mirror descent: a policy fitted to its own samples, weighted by exp(Q/α)."""

    weighting: MirrorForm = "coded"  # Q - μ_Q/s_Q (released code), or intended: (Q - μ_Q)/s_Q
    statistics_rate: float = 0.001  # how far μ_Q and s_Q move to the batch's at a time
    repeat_critic_step: bool = True  # step twice along one critic gradient (released code)

    def init(self, key: Key) -> State:
        learners = (*self.enrol_networks(self.actor, key), self.enrol_temperature())
        return State(*learners, jnp.zeros((), jnp.int32), mean_q=jnp.zeros(()), std_q=jnp.ones(()))

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, noise_key = jax.random.split(key)
        next_action = self.explore(state.actor.params, state, batch.next_obs, next_key)
        backup = self.backup(state.critic, batch, next_action)
        critic = self.regress(state.critic, batch, backup)

        # The policy learns from the target's own draw, judged by critics one step on.
        q = self.value(critic.params, batch.next_obs, next_action)
        alpha = jnp.exp(state.temperature.params)
        weight = mirror_weight(q, state.mean_q, state.std_q, alpha, self.weighting)

        def improve(actor: Learner) -> Learner:
            rows = (batch.next_obs, next_action, weight, noise_key)
            return descend(actor, self.actor_optimiser, lambda p: self.actor.loss(p, *rows))

        due = state.updates % self.delay == 0
        actor = when(due, improve, state.actor)
        if self.repeat_critic_step:
            critic = self.regress(critic, batch, backup, at=state.critic.params)
        temperature = self.cool(state.updates, state.temperature)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/denoising": actor.loss,
            "policy/weight": weight.mean(),
            "temperature/alpha": jnp.exp(temperature.params),
        }
        learners = (self.follow(due, critic), self.follow(due, actor), temperature)
        mean_q = state.mean_q + self.statistics_rate * (q.mean() - state.mean_q)
        std_q = state.std_q + self.statistics_rate * (q.std() - state.std_q)
        return Update(State(*learners, state.updates + 1, mean_q, std_q), metrics)
