"""What LQL and NC-LQL have in common: actions walk up the critics' gradient; there is no actor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import optax

from langevinrl.agents.contract import Common
from langevinrl.learner import Learner, enrol
from langevinrl.networks import Activation, Critic, Field
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.langevin import Chain, Plan, StartLaw, draw
from langevinrl.types import Array, Key, PyTree


class State(NamedTuple):
    critic: Learner


@dataclass(frozen=True)
class Langevin(Common):
    """How the soft policy exp(wQ) of the critics is walked, and how they are trained."""

    inverse_temperature: float = 500.0  # w: drift of the chain along the critic's gradient
    step_size: float = 1e-4  # ε: Langevin step size (NC-LQL: at the clean level)
    learning_rate: float = 1e-4  # Adam's rate for the critics
    activation: Activation = "mish"  # after each hidden layer
    # law of the first action: uniform (NC-LQL's code), normal (the paper's bandit), or zero
    start: StartLaw = "uniform"
    clip: bool = True  # hold the chain in the action box at every step (code; paper silent)
    normalise: bool = True  # follow the gradient's direction only (paper, App. E)
    best_of: int = 1  # N: chains per action, the most valuable kept

    @property
    def critic(self) -> Critic:
        return Critic(Field(self.spec, 1, self.hidden, self.activation))

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    @property
    def plan(self) -> Plan:
        """Each method's own."""
        raise NotImplementedError

    @property
    def clean(self) -> int:
        """Index of the cleanest level, where the critic is the ordinary Q."""
        return 0

    @property
    def chain(self) -> Chain:
        w, bound = self.inverse_temperature, self.spec.act_bound
        return Chain(self.plan, w, bound, self.start, self.clip, self.normalise)

    def init(self, key: Key) -> State:
        return State(enrol(self.critic.init(key), self.optimiser))

    def act(self, state: State, obs: Array, key: Key, *, explore: bool) -> Array:
        del explore  # the chain is already the policy; evaluation samples it too
        return self.sample(state.critic.params, obs, key)

    def sample(self, params: PyTree, obs: Array, key: Key) -> Array:
        """The most valuable of N chains for each observation: (B, A)."""

        def value(action: Array, level: Array | int) -> Array:
            return self.critic.apply(params, obs, action, level)

        candidates = draw(value, (self.best_of, len(obs), self.spec.act_dim), self.chain, key)
        return best_of(candidates, lambda action: value(action, self.clean).min(axis=0))
