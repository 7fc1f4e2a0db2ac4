"""How NC-LQL draws its actions: walks down a ladder of noise levels, along its critics' slope."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import jax

from langevinrl.agents.ladder import FixedLadder, SpreadLadder, Value
from langevinrl.agents.slope import Slope
from langevinrl.networks import Critic
from langevinrl.samplers.choose import best_of
from langevinrl.samplers.langevin import Chain, StartLaw, draw, slopes
from langevinrl.samplers.particles import draw_particles
from langevinrl.types import Array, Key, PyTree, Spec

Sampler: TypeAlias = Literal["langevin", "particles"]
ScoreCritics: TypeAlias = Literal["both", "first"]

# Rows of a batch on which a slope is measured.  Its running mean remembers some hundred updates,
# so that thousands of slopes are behind it all the same; of a whole batch they cost as much as a
# step of the chain.
MEASURED_ROWS = 64


@dataclass(frozen=True)
class ChainPolicy:
    """The most valuable of N walks.

    Asked with the critics' weights, the slope the ladder has measured (None if it measures none)
    and observations as the critics take them.
    """

    spec: Spec
    critic: Critic
    ladder: FixedLadder | SpreadLadder
    score_critics: ScoreCritics
    sampler: Sampler
    start: StartLaw
    clip: bool
    steps_per_level: int
    best_of: int

    @property
    def clean(self) -> int:
        """Index of the cleanest level, where the critic is the ordinary Q."""
        return self.ladder.num_levels - 1

    def chain(self, slope: Slope | None) -> Chain:
        bound, steps = self.spec.act_bound, self.steps_per_level
        return self.ladder.chain(slope, bound, self.start, self.clip, steps)

    def scoring(self, params: PyTree) -> PyTree:
        """Weights of the critics whose slope is followed; judging is always by both."""
        if self.score_critics == "both":
            return params
        return jax.tree.map(lambda leaf: leaf[:1], params)

    def sample(
        self, params: PyTree, slope: Slope | None, obs: Array, key: Key, *, noisy: bool = True
    ) -> Array:
        """The most valuable of N draws for each observation: (B, A)."""
        value = partial(self.critic.apply, params, obs)
        candidates = self._draw(params, slope, obs, (self.best_of,), key, noisy=noisy)
        return best_of(candidates, lambda action: value(action, self.clean).min(axis=0))

    def trace(
        self, params: PyTree, slope: Slope | None, obs: Array, key: Key, start: Array | None
    ) -> Array:
        """Every point of one walk for each observation: (steps + 1, B, A)."""
        return self._draw(params, slope, obs, (), key, start=start, trace=True)

    def trace_scores(
        self, params: PyTree, slope: Slope | None, obs: Array, path: Array
    ) -> Array | None:
        """The slope at each point a trace left, (steps, B, A); particles have no such path."""
        if self.sampler == "particles":
            return None
        return slopes(self._value(params, obs), path, self.chain(slope).plan)

    def measure(
        self, params: PyTree, slope: Slope | None, obs: Array, action: Array
    ) -> Slope | None:
        """What the ladder knows after walks that ended in actions (B, A)."""
        some = slice(MEASURED_ROWS)
        return self.ladder.measure(slope, self._value(params, obs[some]), action[some], self.clean)

    def _value(self, params: PyTree, obs: Array) -> Value:
        """Values of the critics that are followed, of an action and a level."""
        return partial(self.critic.apply, self.scoring(params), obs)

    def _draw(
        self,
        params: PyTree,
        slope: Slope | None,
        obs: Array,
        lead: tuple[int, ...],
        key: Key,
        *,
        noisy: bool = True,
        **how: Any,
    ) -> Array:
        """Actions (*lead, B, A), or with `trace` the paths to them."""
        value, chain = self._value(params, obs), self.chain(slope)._replace(noisy=noisy)
        shape = (*lead, len(obs), self.spec.act_dim)
        if self.sampler == "langevin":
            return draw(value, shape, chain, key, **how)
        weight = self.ladder.weight(slope)
        return draw_particles(value, shape, chain, weight, self.clean, key, **how)
