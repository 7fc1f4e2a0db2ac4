"""NC-LQL's ladder of noise levels and the weight w it is walked with: the paper's, or by itself.

Under a law exp(wQ) both a Gaussian hill and a slope that ends at a wall satisfy E‖w∇Q‖² = d/s²,
where s is the standard deviation on each of d axes.  So w = √d / (s · ‖∇Q‖), with the gradient
where chains end (`agents.slope`): it follows the scale of the rewards, and how much an action
matters in one state beside another stays as the critics have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.agents import slope as slopes
from langevinrl.agents.slope import Slope
from langevinrl.errors import UserError
from langevinrl.samplers.langevin import (
    Chain,
    Plan,
    StartLaw,
    annealed_plan,
    geometric_sigmas,
    slope_at,
)
from langevinrl.types import Array, Key

Value: TypeAlias = Callable[[Array, Any], Array]  # of actions (..., A) and a level, by members


@dataclass(frozen=True)
class FixedLadder:
    """The paper's: noise and steps as given, along unit scores, and a w that stays."""

    inverse_temperature: float
    step_size: float
    sigma_max: float
    sigma_min: float
    num_levels: int
    normalise: bool

    def check(self) -> None:
        _check_levels(self.num_levels)
        if self.sigma_min == 0 or self.sigma_min >= self.sigma_max:
            raise UserError(
                f"sigma_min is {self.sigma_min}; "
                f"expected more than 0 and less than sigma_max, {self.sigma_max}"
            )

    @property
    def sigmas(self) -> Array:
        """Noise of each level, the largest first: (L,)."""
        return geometric_sigmas(self.sigma_max, self.sigma_min, self.num_levels)

    def chain(
        self, slope: Slope | None, bound: float, start: StartLaw, clip: bool, steps_per_level: int
    ) -> Chain:
        plan = annealed_plan(self.sigmas, steps_per_level, self.step_size)
        return Chain(plan, self.inverse_temperature, bound, start, clip, self.normalise)

    def init(self) -> None:
        """Nothing is measured."""

    def measure(self, slope: Slope | None, value: Value, action: Array, level: int) -> None:
        """Nothing is measured."""

    def metrics(self, slope: Slope | None) -> dict[str, Array]:
        return {}

    def weight(self, slope: Slope | None) -> float:
        return self.inverse_temperature


@dataclass(frozen=True)
class SpreadLadder:
    """From the whole box down to the policy's spread, along full gradients, with w by itself."""

    size: float  # s, in action units
    bound: float  # the first level's noise: half the width of the box
    act_dim: int
    num_levels: int
    num_members: int  # critics, whose values a chain sums; w is of their mean
    step_ratio: float  # η: a level's step size over its noise squared

    def check(self) -> None:
        _check_levels(self.num_levels)
        if not 0 < self.size < self.bound:
            spread = self.size / self.bound
            raise UserError(f"spread is {spread:g}; expected between 0 and 1, half the box")
        if not 0 < self.step_ratio <= 2:
            raise UserError(f"step_ratio is {self.step_ratio}; expected more than 0, at most 2")

    @property
    def sigmas(self) -> Array:
        """Noise of each level, the largest first: (L,)."""
        return geometric_sigmas(self.bound, self.size, self.num_levels)

    @property
    def max_scores(self) -> Array:
        """The length of w∇Q at which a step of each level drifts by σ√d, and no further: (L,)."""
        return 2 * self.act_dim**0.5 / (self.step_ratio * self.sigmas)

    def chain(
        self, slope: Slope | None, bound: float, start: StartLaw, clip: bool, steps_per_level: int
    ) -> Chain:
        """The walk along w times the mean gradient of the members.

        Steps shrink with the level, and the noise does not: levels above the last are there to
        find the hill, and noise of their width would take more steps to lose than there are.  Its
        deviation leaves a Gaussian of spread s, walked with the last level's steps, as it is.
        """
        level, ratio = jnp.repeat(jnp.arange(self.num_levels), steps_per_level), self.step_ratio
        deviation = self.size * (ratio - ratio**2 / 4) ** 0.5
        plan = Plan(ratio * self.sigmas[level] ** 2, level, jnp.full(level.shape, deviation))
        w = self.weight(slope) / self.num_members
        return Chain(plan, w, bound, start, clip, False, max_scores=self.max_scores)

    def init(self) -> Slope:
        return slopes.init()

    def measure(self, slope: Slope | None, value: Value, action: Array, level: int) -> Slope:
        """What is known after the slopes of `value` at actions (B, A) in which chains ended."""
        assert slope is not None
        return slopes.update(slope, slope_at(value, action, level) / self.num_members)

    def metrics(self, slope: Slope | None) -> dict[str, Array]:
        """What is logged of it."""
        assert slope is not None
        return {"temperature/weight": self.weight(slope), "temperature/slope": slope.length}

    def weight(self, slope: Slope | None) -> Array:
        """w; 0, a walk of noise alone, before the first update."""
        assert slope is not None
        w = self.act_dim**0.5 / (self.size * jnp.maximum(slope.length, 1e-12))
        return jnp.where(slope.seen > 0, w, 0.0)


def _check_levels(num_levels: int) -> None:
    if num_levels == 1:
        raise UserError("num_levels is 1; expected more: a clean level and one to smooth")


def perturb(
    sigmas: Array, clean_too: bool, action: Array, level_key: Key, noise_key: Key
) -> tuple[Array, Array]:
    """A level for each action (B, A), the last only if `clean_too`; the action under its noise."""
    num = len(sigmas) if clean_too else len(sigmas) - 1
    level = jax.random.randint(level_key, action.shape[:1], 0, num)
    return level, action + sigmas[level, None] * jax.random.normal(noise_key, action.shape)
