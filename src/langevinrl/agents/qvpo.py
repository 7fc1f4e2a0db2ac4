"""QVPO: Q-weighted variational policy optimisation.

Diffusion-based Reinforcement Learning via Q-weighted Variational Policy Optimization (2024),
arXiv 2405.16173. With the three bugs of the released code (`weight_gradient`, `repeat_critic_step`,
`shuffle`) its updates equal those of the SDAC project's released baseline (tests/parity).
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
from langevinrl.errors import UserError
from langevinrl.learner import Learner, decaying_adam, descend, init_learner, update_target, when
from langevinrl.losses import advantage_weight, cutoff_weight
from langevinrl.networks import Activation, Critic, StateActionNet
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.diffusion import ScheduleName
from langevinrl.samplers.noise import ChainNoise
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    actor: Learner
    updates: Array  # done so far


@dataclass(frozen=True)
class QVPO(Common):
    """Q-weighted policy optimisation: denoising of its own best actions and of uniform ones.

    The cut-off weights are zero where Q is at most 1, so the policy learns nothing on a task whose
    rewards are all negative. Advantage weights have no such limit.
    """

    presets: ClassVar[Presets] = short_with_actor(1e-3)

    num_steps: int = 20  # T: denoising steps per action
    best_of: int = 32  # N: chains per action, the most valuable is kept
    weights: Literal["cutoff", "advantage"] = "cutoff"  # Q where above 1 (code), or the original's
    weight_gradient: bool = False  # let the policy lower its weights' Q (released code: it does)
    repeat_critic_step: bool = False  # step twice along one critic gradient (released code: yes)
    shuffle: Literal["none", "elements"] = "none"  # states of uniform actions (code: elements)
    policy_best_of: int | None = None  # chains the policy learns from; best_of, or 64 (original)
    num_uniform: int = 10  # uniform actions per row, the entropy part (released code)
    entropy_weight: float = 0.02  # ω at the start: weight of a uniform action
    final_entropy_weight: float = 0.002  # ω at the least (original: 0.02, constant)
    entropy_decay: int = 200_000  # updates in which ω would fall to zero (released code)
    critic_learning_rate: float = 3e-4  # Adam's learning rate for the critics
    actor_learning_rate: float = 3e-4  # Adam's learning rate for the policy
    final_actor_learning_rate: float = 5e-5  # after the decay (released code; the paper has none)
    decay_start: int = 25_000  # policy steps before its rate falls, for twice as many (code)
    delay: int = 2  # updates per step of the policy and of the target copies (released code)
    schedule: ScheduleName = "linear"  # noise rates: linear (released code), vp or cosine
    schedule_scale: float = 0.3  # c: factor on the linear schedule (released code)
    start_std: float = 0.5  # standard deviation of the chain's start (released code; originals: 1)
    activation: Activation = "mish"  # after each hidden layer
    embedding_size: int = 16  # width of the denoising step's embedding

    def __post_init__(self) -> None:
        if self.weights == "advantage" and (self.policy_best_of or self.best_of) == 1:
            raise UserError(
                "advantage weights compare candidates, and there is only one: "
                "set policy_best_of or best_of above 1, or weights to cutoff"
            )

    @property
    def critics(self) -> TwinCritics:
        network = Critic(StateActionNet(self.spec, 1, self.hidden, self.activation))
        adam = optax.adam(self.critic_learning_rate)
        return TwinCritics(network, adam, self.gamma, self.reward_scale)

    @property
    def actor(self) -> DenoisingActor:
        return DenoisingActor(
            self.spec, self.hidden, self.activation, self.embedding_size,
            self.num_steps, self.schedule, self.schedule_scale, self.start_std,
        )  # fmt: skip

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        rate, final_rate = self.actor_learning_rate, self.final_actor_learning_rate
        return decaying_adam(rate, final_rate, self.decay_start)

    def init(self, key: Key) -> State:
        critic_key, actor_key = jax.random.split(key)
        actor = init_learner(self.actor.init(actor_key), self.actor_optimiser)
        return State(self.critics.init(critic_key), actor, jnp.zeros((), jnp.int32))

    def noise(self, key: Key, num: int) -> ChainNoise:
        return self.actor.noise(key, num, self.best_of)

    def policy(self, state: State, obs: Array, noise: ChainNoise, *, explore: bool) -> Array:
        del explore  # the chain's own noise is the exploration; evaluation samples it too
        candidates = self.actor.sample(state.actor.target_params, obs, noise)
        return self.critics.choose(state.critic.params, obs, candidates)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, actor_key = jax.random.split(key)
        noise = self.noise(next_key, len(batch.next_obs))
        candidates = self.actor.sample(state.actor.params, batch.next_obs, noise)
        next_action = self.critics.choose(state.critic.params, batch.next_obs, candidates)
        backup = self.critics.backup(state.critic, batch, next_action)
        critic = self.critics.update_critic(state.critic, batch, backup)

        omega = self.entropy_weight * (1 - state.updates / self.entropy_decay)
        omega = jnp.maximum(omega, self.final_entropy_weight)

        def improve(actor: Learner) -> Learner:
            def loss(params: PyTree) -> Array:
                # The weights are constants here, unless the gradient is to pass through them.
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

    def trace(self, state: State, obs: Array, noise: ChainNoise) -> Array:
        return self.actor.trace(state.actor.target_params, obs, noise)

    def _loss(
        self, params: PyTree, source: PyTree, critic: PyTree, obs: Array, omega: Array, key: Key
    ) -> Array:
        """Return the weighted denoising loss of best actions (from `source`) and uniform ones."""
        draw_key, uniform_key, mix_key, noise_key = jax.random.split(key, 4)
        noise = self.actor.noise(draw_key, len(obs), self.policy_best_of or self.best_of)
        candidates = self.actor.sample(source, obs, noise)
        q = self.critics.value(critic, obs, candidates)
        action = jax.lax.stop_gradient(best_of(candidates, lambda _: q))
        weight = cutoff_weight(q) if self.weights == "cutoff" else advantage_weight(q)
        copies, bound = self.num_uniform, self.spec.act_bound
        shape = (copies, *action.shape)
        uniform = jax.random.uniform(uniform_key, shape, minval=-bound, maxval=bound)
        states, uniform_weight = obs, jnp.tile(weight, (copies, 1))
        if self.shuffle == "elements":
            states, uniform_weight = _mix(obs, uniform_weight, mix_key)
        actions = jnp.concatenate([action[None], uniform])  # (1 + copies, B, A)
        weights = jnp.concatenate([weight[None], omega * uniform_weight])
        return self.actor.loss(params, states, actions, weights, noise_key)


def _mix(obs: Array, weight: Array, key: Key) -> tuple[Array, Array]:
    """Shuffle features over all copies of the states, and weights (copies, B) over rows."""
    obs_key, weight_key = jax.random.split(key)
    copies = jnp.tile(obs[None], (len(weight), 1, 1))
    mixed = jax.random.permutation(obs_key, copies.ravel()).reshape(copies.shape)
    shuffled = jax.random.permutation(weight_key, weight.ravel()).reshape(weight.shape)
    return jnp.concatenate([obs[None], mixed]), shuffled
