"""NC-LQL: noise-conditioned Langevin Q-learning.

Direct Soft-Policy Sampling via Langevin Dynamics (2026), arXiv 2602.07873.  Defaults are
those of the authors' released code, whose updates this file reproduces to rounding (tests/parity).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import optax

from langevinrl.agents.contract import Common
from langevinrl.agents.ladder import FixedLadder, Slope, SpreadLadder, perturb
from langevinrl.learner import Learner, descend, init_learner, soft_update
from langevinrl.losses import squared, td_backup
from langevinrl.networks import Activation, Critic, Embedding, StateActionNet
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.langevin import Chain, StartLaw, draw, slopes
from langevinrl.samplers.particles import draw_particles
from langevinrl.types import Array, Batch, Key, PyTree, Update


class State(NamedTuple):
    critic: Learner
    slope: Slope | None = None  # what w is set from, where a spread is asked for


@dataclass(frozen=True)
class NCLQL(Common):
    """Noise-conditioned LQL: a ladder of smoothed critics, walked from the smoothest down."""

    # A quarter of the chain, and a rate for tens of thousands of updates instead of a million.
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "fast": {"num_levels": 5, "steps_per_level": 1, "learning_rate": 3e-4}
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
    sampler: Literal["langevin", "particles"] = "langevin"  # particles: exp(wQ), 48 gradients
    evaluation: Literal["draw", "climb"] = "draw"  # climb: evaluate without noise (code: with it)
    best_of: int = 1  # N: chains per action, the most valuable kept
    learning_rate: float = 1e-4  # Adam's rate for the critics
    # one Adam step for each loss (released code), or one for their sum (paper)
    optimisation: Literal["two_steps", "joint"] = "two_steps"
    # the clean value smoothing regresses on: the members' mean (code), or each its own (paper)
    anchor: Literal["mean", "own"] = "mean"
    smooth_clean_level: bool = False  # let smoothing draw the clean level too (paper: yes)
    activation: Activation = "mish"  # after each hidden layer
    embedding_size: int = 16  # width of the level's embedding

    def __post_init__(self) -> None:
        self.ladder.check()

    @property
    def critic(self) -> Critic:
        embedding = Embedding(self.embedding_size, self.activation)
        return Critic(StateActionNet(self.spec, 1, self.hidden, self.activation, embedding))

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    @property
    def sigmas(self) -> Array:
        return self.ladder.sigmas  # (L,)

    @property
    def clean(self) -> int:
        """Index of the cleanest level, where the critic is the ordinary Q."""
        return self.num_levels - 1

    @property
    def ladder(self) -> FixedLadder | SpreadLadder:
        w, sigmas = self.inverse_temperature, (self.sigma_max, self.sigma_min)
        if self.spread is None:
            return FixedLadder(w, self.step_size, *sigmas, self.num_levels, self.normalise)
        bound, sizes = self.spec.act_bound, (self.spec.act_dim, self.num_levels)
        rest = (*sizes, self.critic.num_members, self.step_ratio)
        return SpreadLadder(self.spread * bound, bound, *rest)

    def chain(self, state: State) -> Chain:
        bound, steps = self.spec.act_bound, self.steps_per_level
        return self.ladder.chain(state.slope, bound, self.start, self.clip, steps)

    def init(self, key: Key) -> State:
        return State(init_learner(self.critic.init(key), self.optimiser), self.ladder.init())

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        # The chain is already the policy: unless told, evaluation samples it too.
        return self._sample(state, obs, key, noisy=explore or self.evaluation == "draw")

    def refine(self, state: State, obs: Array, key: Key) -> Array:
        return self._sample(state, obs, key, noisy=False)

    def update(self, state: State, batch: Batch, key: Key) -> Update:
        next_key, level_key, noise_key = jax.random.split(key, 3)
        params, target_params = state.critic.params, state.critic.target_params
        next_action = self._sample(state, batch.next_obs, next_key)
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
        value_next = partial(self.critic.apply, params, batch.next_obs)
        slope = self.ladder.measure(state.slope, value_next, next_action, self.clean)
        metrics |= self.ladder.metrics(slope)
        return Update(State(soft_update(critic, self.target_rate), slope), metrics)

    def trace(self, state: State, obs: Array, key: Key, start: Array | None = None) -> Array:
        return self._draw(state, obs, (), key, start=start, trace=True)

    def trace_scores(self, state: State, obs: Array, path: Array) -> Array | None:
        value = partial(self.critic.apply, state.critic.params, obs)
        plan = self.chain(state).plan if self.sampler == "langevin" else None
        return slopes(value, path, plan) if plan else None

    def policy_weight(self, state: State) -> Array | float:
        scale = 1.0 if self.spread is None else self.reward_scale  # the paper's w is as it is set
        return scale * self.ladder.weight(state.slope)

    def _sample(self, state: State, obs: Array, key: Key, *, noisy: bool = True) -> Array:
        """The most valuable of N draws for each observation: (B, A)."""
        value = partial(self.critic.apply, state.critic.params, obs)
        candidates = self._draw(state, obs, (self.best_of,), key, noisy=noisy)
        return best_of(candidates, lambda action: value(action, self.clean).min(axis=0))

    def _draw(self, state: State, obs: Array, lead: tuple[int, ...], key: Key, **how: Any) -> Array:
        """Actions (*lead, B, A), or with `trace` the paths to them."""
        value = partial(self.critic.apply, state.critic.params, obs)  # of an action and a level
        chain = self.chain(state)._replace(noisy=how.pop("noisy", True))
        shape = (*lead, len(obs), self.spec.act_dim)
        if self.sampler == "langevin":
            return draw(value, shape, chain, key, **how)
        weight = self.ladder.weight(state.slope)
        return draw_particles(value, shape, chain, weight, self.clean, key, **how)
