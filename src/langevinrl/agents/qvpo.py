"""QVPO: Q-weighted variational policy optimisation.

Diffusion-based Reinforcement Learning via Q-weighted Variational Policy Optimization (2024),
arXiv 2405.16173.  With its three slips switched on (`weight_gradient`, `repeat_critic_step`,
`shuffle`) its updates are those of the SDAC project's released baseline (tests/parity).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from langevinrl.actors import DenoisingActor
from langevinrl.agents.contract import Common
from langevinrl.agents.parts import TwinCritics
from langevinrl.errors import UserError
from langevinrl.learner import Learner, decaying_adam, descend, init_learner, update_target, when
from langevinrl.losses import advantage_weight, cutoff_weight
from langevinrl.networks import Activation, Critic, StateActionNet
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.diffusion import ScheduleName
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    updates: Array  # done so far


@dataclass(frozen=True)
class QVPO(Common):
    """Q-weighted policy optimisation: denoising of its own best actions, and of some uniform ones.

    The cut-off weights are zero wherever Q is at most 1, so a task whose rewards are all
    negative teaches the policy nothing; advantage weights have no such floor.
    """

    num_steps: int = 20  # T: denoising steps per action
    best_of: int = 32  # N: chains per action, the most valuable kept
    weights: Literal["cutoff", "advantage"] = "cutoff"  # Q where above 1 (code), or the original's
    weight_gradient: bool = False  # let the policy lower its weights' Q (released code: it does)
    repeat_critic_step: bool = False  # step twice along one critic gradient (released code: yes)
    shuffle: Literal["none", "elements"] = "none"  # states of uniform actions (code: elements)
    policy_best_of: int | None = None  # chains the policy learns from; best_of, or 64 (original)
    num_uniform: int = 10  # uniform actions per row, the entropy part (released code)
    entropy_weight: float = 0.02  # ω at the start: weight of a uniform action
    final_entropy_weight: float = 0.002  # ω at the least (original: 0.02, constant)
    entropy_decay: int = 200_000  # updates in which ω would fall to zero (released code)
    critic_learning_rate: float = 3e-4  # Adam's rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's rate for the policy
    final_actor_learning_rate: float = 5e-5  # after the decay (released code; the paper has none)
    decay_start: int = 25_000  # policy steps before its rate falls, for twice as many (code)
    delay: int = 2  # updates per step of the policy and of the target copies (released code)
    schedule: ScheduleName = "linear"  # noise rates: linear (released code), vp or cosine
    schedule_scale: float = 0.3  # c: factor on the linear schedule (released code)
    start_std: float = 0.5  # spread of the noise a chain starts from (released code; originals: 1)
    activation: Activation = "mish"  # after each hidden layer
    embedding_size: int = 16  # width of the denoising step's embedding

    def __post_init__(self) -> None:
        if self.weights == "advantage" and (self.policy_best_of or self.best_of) == 1:
            raise UserError(
                "advantage weights compare candidates, and there is only one: "
                "set policy_best_of or best_of above 1, or weights to cutoff"
            )

    @property
    def critic(self) -> Critic:
        return Critic(StateActionNet(self.spec, 1, self.hidden, self.activation))

    @property
    def critics(self) -> TwinCritics:
        adam = optax.adam(self.critic_learning_rate)
        return TwinCritics(self.critic, adam, self.gamma, self.reward_scale)

    @property
    def actor(self) -> DenoisingActor:
        network = (self.spec, self.hidden, self.activation, self.embedding_size)
        chain = (self.num_steps, self.schedule, self.schedule_scale, self.start_std)
        return DenoisingActor(*network, *chain)

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        rates = (self.actor_learning_rate, self.final_actor_learning_rate)
        return decaying_adam(*rates, self.decay_start)

    def init(self, key: Key) -> State:
        critic_key, actor_key = jax.random.split(key)
        actor = init_learner(self.actor.init(actor_key), self.actor_optimiser)
        return State(self.critics.init(critic_key), actor, jnp.zeros((), jnp.int32))

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        del explore  # the chain's own noise is the exploration; evaluation samples it too
        return self._choose(state.actor.target_params, state.critic.params, obs, key)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, actor_key = jax.random.split(key)
        critic = state.critic
        next_action = self._choose(state.actor.params, critic.params, batch.next_obs, next_key)
        backup = self.critics.backup(critic, batch, next_action)
        critic = self.critics.update_critic(critic, batch, backup)

        omega = self.entropy_weight * (1 - state.updates / self.entropy_decay)
        omega = jnp.maximum(omega, self.final_entropy_weight)

        def improve(actor: Learner) -> Learner:
            def loss(params: PyTree) -> Array:
                # Drawn with weights that are constants here, unless the gradient is to pass.
                source = params if self.weight_gradient else actor.params
                return self._loss(params, source, critic.params, batch.obs, omega, actor_key)

            return descend(actor, self.actor_optimiser, loss)

        due = state.updates % self.delay == 0
        actor = when(due, improve, state.actor)
        if self.repeat_critic_step:
            critic = self.critics.update_critic(critic, batch, backup, at=state.critic.params)
        metrics = {
            "critic/bellman": critic.loss,
            "critic/backup": backup.mean(),
            "policy/denoising": actor.loss,
            "policy/entropy_weight": omega,
        }
        critic = update_target(due, critic, self.target_rate)
        actor = update_target(due, actor, self.target_rate)
        return Update(State(critic, actor, state.updates + 1), metrics)

    def trace(self, state: State, obs: Array, key: Key, start: Array | None = None) -> Array:
        return self.actor.trace(state.actor.target_params, obs, key, start)

    def _loss(
        self, params: PyTree, source: PyTree, critic: PyTree, obs: Array, omega: Array, key: Key
    ) -> Array:
        """Weighted denoising of each row's best action (drawn from `source`) and uniform ones."""
        draw_key, uniform_key, mix_key, noise_key = jax.random.split(key, 4)
        action, weight = self._weigh(source, critic, obs, draw_key)
        copies, bound = self.num_uniform, self.spec.act_bound
        shape = (copies, *action.shape)
        uniform = jax.random.uniform(uniform_key, shape, minval=-bound, maxval=bound)
        states, uniform_weight = obs, jnp.tile(weight, (copies, 1))
        if self.shuffle == "elements":
            states, uniform_weight = _mix(obs, uniform_weight, mix_key)
        actions = jnp.concatenate([action[None], uniform])  # (1 + copies, B, A)
        weights = jnp.concatenate([weight[None], omega * uniform_weight])
        return self.actor.loss(params, states, actions, weights, noise_key)

    def _weigh(self, params: PyTree, critic: PyTree, obs: Array, key: Key) -> tuple[Array, Array]:
        """Each row's best action (B, A), a constant, and its weight (B,)."""
        candidates = self.actor.sample(params, obs, self.policy_best_of or self.best_of, key)
        q = self.critics.value(critic, obs, candidates)
        weight = cutoff_weight(q) if self.weights == "cutoff" else advantage_weight(q)
        return jax.lax.stop_gradient(best_of(candidates, lambda _: q)), weight

    def _choose(self, actor: PyTree, critic: PyTree, obs: Array, key: Key) -> Array:
        """The most valuable of N chains for each observation: (B, A)."""
        return self.critics.choose(critic, obs, self.actor.sample(actor, obs, self.best_of, key))


def _mix(obs: Array, weight: Array, key: Key) -> tuple[Array, Array]:
    """Copies of states with every feature of every row shuffled, weights (copies, B) by rows."""
    obs_key, weight_key = jax.random.split(key)
    copies = jnp.tile(obs[None], (len(weight), 1, 1))
    mixed = jax.random.permutation(obs_key, copies.ravel()).reshape(copies.shape)
    shuffled = jax.random.permutation(weight_key, weight.ravel()).reshape(weight.shape)
    return jnp.concatenate([obs[None], mixed]), shuffled
