"""NC-LQL: noise-conditioned Langevin Q-learning.

Direct Soft-Policy Sampling via Langevin Dynamics (2026), arXiv 2602.07873.  Defaults are
those of the authors' released code, whose updates this file reproduces to rounding (tests/parity).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import optax

from langevinrl.agents import scaling
from langevinrl.agents.chain_policy import ChainPolicy, Sampler, ScoreCritics
from langevinrl.agents.contract import Common
from langevinrl.agents.ladder import FixedLadder, SpreadLadder, perturb
from langevinrl.agents.presets import NCLQL_BALANCE, NCLQL_FAST
from langevinrl.agents.scaling import Scales
from langevinrl.agents.slope import Slope
from langevinrl.learner import Learner, descend, init_learner, soft_update
from langevinrl.losses import squared, td_backup
from langevinrl.networks import Activation, Critic, Embedding, Norm, StateActionNet
from langevinrl.samplers.langevin import Chain, StartLaw
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    slope: Slope | None = None  # what w is set from, where a spread is asked for
    scales: Scales = Scales()  # what batches are scaled by, where that is asked for


@dataclass(frozen=True)
class NCLQL(Common):
    """Noise-conditioned LQL: a ladder of smoothed critics, walked from the smoothest down."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "fast": NCLQL_FAST,
        "fast-balance": NCLQL_BALANCE,
    }

    inverse_temperature: float = 500.0  # w: drift of the chain along the critic's gradient
    step_size: float = 1e-4  # ε: Langevin step size at the clean level
    sigma_max: float = 0.1  # σ₁: noise of the smoothest level
    sigma_min: float = 1e-3  # σ_L: noise of the clean level
    num_levels: int = 10  # L: noise levels
    steps_per_level: int = 2  # T: Langevin steps at each level
    # law of the first action: uniform (released code), normal (the paper's bandit), or zero
    start: StartLaw = "uniform"
    clip: bool = True  # hold the chain in the action box at every step (code; paper silent)
    normalise: bool = True  # follow the gradient's direction only (paper, App. E)
    # s: the policy's spread in half-widths of the box; w, sigmas and steps then set themselves
    spread: float | None = None
    step_ratio: float = 1.0  # η: with a spread, a level's step size over its noise squared
    sampler: Sampler = "langevin"  # particles: exp(wQ), 48 gradients
    # whose slope the chain follows: both critics' (released code), or the first's at half the price
    score_critics: ScoreCritics = "both"
    evaluation: Literal["draw", "climb"] = "draw"  # climb: evaluate without noise (code: with it)
    best_of: int = 1  # N: chains per action, the most valuable kept
    learning_rate: float = 1e-4  # Adam's rate for the critics
    # one Adam step for each loss (released code), or one for their sum (paper)
    optimisation: Literal["two_steps", "joint"] = "two_steps"
    # the clean value smoothing regresses on: the members' mean (code), or each its own (paper)
    anchor: Literal["mean", "own"] = "mean"
    smooth_clean_level: bool = False  # let smoothing draw the clean level too (paper: yes)
    activation: Activation = "mish"  # after each hidden layer
    critic_norm: Norm = "none"  # norm of critics' hidden layers: layer, or rms (without centring)
    embedding_size: int = 16  # width of the level's embedding
    obs_norm: bool = False  # scale observations by their running mean and deviation in replay
    reward_norm: bool = False  # divide rewards by the root mean square of the first in replay

    def __post_init__(self) -> None:
        self.ladder.check()

    @property
    def critic(self) -> Critic:
        embedding = Embedding(self.embedding_size, self.activation)
        how = (self.hidden, self.activation, embedding, self.critic_norm)
        return Critic(StateActionNet(self.spec, 1, *how))

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    @property
    def sigmas(self) -> Array:
        return self.ladder.sigmas  # (L,)

    @property
    def clean(self) -> int:
        return self.policy.clean  # index of the level where the critic is the ordinary Q

    @property
    def ladder(self) -> FixedLadder | SpreadLadder:
        w, sigmas = self.inverse_temperature, (self.sigma_max, self.sigma_min)
        if self.spread is None:
            return FixedLadder(w, self.step_size, *sigmas, self.num_levels, self.normalise)
        num_followed = self.critic.num_members if self.score_critics == "both" else 1
        bound, sizes = self.spec.act_bound, (self.spec.act_dim, self.num_levels, num_followed)
        return SpreadLadder(self.spread * bound, bound, *sizes, self.step_ratio)

    @property
    def policy(self) -> ChainPolicy:
        walk = (self.score_critics, self.sampler, self.start, self.clip, self.steps_per_level)
        return ChainPolicy(self.spec, self.critic, self.ladder, *walk, self.best_of)

    def chain(self, state: State) -> Chain:
        return self.policy.chain(state.slope)

    def init(self, key: Key) -> State:
        critic = init_learner(self.critic.init(key), self.optimiser)
        scales = scaling.init(self.obs_norm, self.reward_norm, self.spec.obs_dim)
        return State(critic, self.ladder.init(), scales)

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        # The chain is already the policy: unless told, evaluation samples it too.
        noisy, obs = explore or self.evaluation == "draw", scaling.scale_obs(state.scales, obs)
        return self.policy.sample(state.critic.params, state.slope, obs, key, noisy=noisy)

    def refine(self, state: State, obs: Array, key: Key) -> Array:
        obs = scaling.scale_obs(state.scales, obs)
        return self.policy.sample(state.critic.params, state.slope, obs, key, noisy=False)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, level_key, noise_key = jax.random.split(key, 3)
        params, target_params = state.critic.params, state.critic.target_params
        scales, batch = scaling.measure_and_scale(state.scales, batch)
        next_action = self.policy.sample(params, state.slope, batch.next_obs, next_key)
        next_q = self.critic.apply(target_params, batch.next_obs, next_action, self.clean)
        backup = td_backup(next_q, batch, self.gamma, self.reward_scale)
        level, noisy = perturb(
            self.sigmas, self.smooth_clean_level, batch.action, level_key, noise_key
        )
        value = self.critic.apply(params, batch.obs, batch.action, self.clean)
        anchor = value.mean(axis=0, keepdims=True) if self.anchor == "mean" else value

        def bellman(params: PyTree) -> Array:  # Eq. 8
            q = self.critic.apply(params, batch.obs, batch.action, self.clean)
            return squared(q - backup[None])

        def smoothing(params: PyTree) -> Array:  # Eq. 9
            return squared(self.critic.apply(params, batch.obs, noisy, level) - anchor)

        metrics = {"critic/backup": backup.mean()}
        if self.optimisation == "two_steps":  # one Adam state for both (released code)
            critic = descend(state.critic, self.optimiser, bellman)
            metrics["critic/bellman"] = critic.loss
            critic = descend(critic, self.optimiser, smoothing)
            metrics["critic/smoothing"] = critic.loss
        else:
            critic = descend(state.critic, self.optimiser, lambda p: bellman(p) + smoothing(p))
            metrics["critic/joint"] = critic.loss
        slope = self.policy.measure(params, state.slope, batch.next_obs, next_action)
        metrics |= self.ladder.metrics(slope)
        return Update(State(soft_update(critic, self.target_rate), slope, scales), metrics)

    def trace(self, state: State, obs: Array, key: Key, start: Array | None = None) -> Array:
        obs = scaling.scale_obs(state.scales, obs)
        return self.policy.trace(state.critic.params, state.slope, obs, key, start)

    def trace_scores(self, state: State, obs: Array, path: Array) -> Array | None:
        obs = scaling.scale_obs(state.scales, obs)
        return self.policy.trace_scores(state.critic.params, state.slope, obs, path)

    def policy_weight(self, state: State) -> Array | float:
        lawful = self.spread is not None or self.sampler == "particles"  # else w is as it is set
        per_reward = self.reward_scale / scaling.reward_size(state.scales) if lawful else 1.0
        return per_reward * self.ladder.weight(state.slope)
