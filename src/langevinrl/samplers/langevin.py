"""Unadjusted Langevin dynamics: plain and annealed are the same walk under two plans."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.types import Array, Key

StartLaw: TypeAlias = Literal["uniform", "normal", "zero"]


class Plan(NamedTuple):
    """How far to move and which noise level to consult, step by step."""

    step_size: Array  # (steps,)
    level: Array  # (steps,)  0 is the noisiest
    noise: Array | None = None  # (steps,)  deviation of a step's noise; √step_size unless given

    @property
    def deviations(self) -> Array:
        """Deviation of each step's noise: (steps,)."""
        return jnp.sqrt(self.step_size) if self.noise is None else self.noise


def constant_plan(num_steps: int, step_size: float) -> Plan:
    """The same step everywhere (Def. 1)."""
    return Plan(jnp.full(num_steps, step_size), jnp.zeros(num_steps, jnp.int32))


def geometric_sigmas(sigma_max: float, sigma_min: float, num_levels: int) -> Array:
    """Noise levels from the largest down, in equal ratios: (L,)."""
    return jnp.exp(jnp.linspace(jnp.log(sigma_max), jnp.log(sigma_min), num_levels))


def annealed_plan(sigmas: Array, steps_per_level: int, step_size: float) -> Plan:
    """Steps shrink with the square of the level's noise (Def. 2)."""
    level = jnp.repeat(jnp.arange(len(sigmas)), steps_per_level)
    # The ratio first: squaring sigmas of 1e-3 and dividing afterwards loses digits in float32.
    return Plan(step_size * (sigmas[level] / sigmas[-1]) ** 2, level)


def walk(
    score: Callable[[Array, Array], Array],
    start: Array,
    plan: Plan,
    key: Key,
    project: Callable[[Array], Array] = lambda x: x,
    *,
    trace: bool = False,
    noisy: bool = True,
) -> Array:
    """Half a step along `score(x, level)` plus matched noise, for every step of the plan.

    Returns its end, or with `trace` every point of it, the start first: (steps + 1, ...).  If not
    `noisy` the noise is left out, and the walk climbs to a mode.
    """

    def step(x: Array, now: tuple[Array, Array, Array, Key]) -> tuple[Array, Array | None]:
        size, level, deviation, noise_key = now
        if noisy:
            noise = jax.random.normal(noise_key, x.shape)
            x = project(x + size / 2 * score(x, level) + deviation * noise)
        else:
            x = project(x + size / 2 * score(x, level))
        return x, x if trace else None

    keys = jax.random.split(key, len(plan.step_size))
    steps = (plan.step_size, plan.level, plan.deviations, keys)
    end, passed = jax.lax.scan(step, start, steps)
    return end if passed is None else jnp.concatenate([start[None], passed])


def sample(
    energy: Callable[[Array, Array], Array],
    start: Array,
    plan: Plan,
    key: Key,
    project: Callable[[Array], Array] = lambda x: x,
    *,
    trace: bool = False,
) -> Array:
    """Points that follow exp(-energy(x, level)), from `start` (..., D); any energy JAX can derive.

    `energy` takes points (..., D) and the plan's level, and returns (...).  An annealed plan walks
    from the smoothest energy, level 0, to the true one; with a constant plan the level is always 0.

        sigmas = geometric_sigmas(5.0, 0.1, 20)
        sample(energy, jnp.zeros((1000, 2)), annealed_plan(sigmas, 50, 1e-3), jax.random.key(0))

    `project` is applied after every step (a box, say); with `trace` as in `walk`.
    """

    def score(x: Array, level: Array) -> Array:
        return -jax.grad(lambda points: energy(points, level).sum())(x)

    return walk(score, start, plan, key, project, trace=trace)


def unit(gradient: Array) -> Array:
    """Each row's direction (App. E); a zero gradient stays zero and makes the step pure noise."""
    return gradient / (jnp.linalg.norm(gradient, axis=-1, keepdims=True) + 1e-8)


def shorten(score: Array, length: Array) -> Array:
    """Each row's score, no longer than `length`, a number."""
    norm = jnp.linalg.norm(score, axis=-1, keepdims=True)
    return score * jnp.minimum(1.0, length / (norm + 1e-12))


class Chain(NamedTuple):
    """How a soft policy exp(wQ) is walked; one chain serves acting and the target alike."""

    plan: Plan
    inverse_temperature: Array | float  # w
    bound: float  # half-width of the action box
    start: StartLaw
    clip: bool  # project onto the box after every step
    normalise: bool  # follow the gradient's direction only, so that w is a drift length
    noisy: bool = True  # without noise only the start is left to chance
    max_scores: Array | None = None  # (L,)  length of a level's score that is not exceeded


def draw(
    value: Callable[[Array, Array], Array],
    shape: tuple[int, ...],
    chain: Chain,
    key: Key,
    *,
    start: Array | None = None,
    trace: bool = False,
) -> Array:
    """Actions (..., A) from the soft policy of `value(action, level)`, summed over members.

    Walks from `start` if given, else from the chain's own law; with `trace`, as in `walk`.
    """
    start_key, walk_key = jax.random.split(key)
    if start is None:
        start = _begin(chain, shape, start_key)

    def score(action: Array, level: Array) -> Array:
        gradient = slope_at(value, action, level)
        score = chain.inverse_temperature * (unit(gradient) if chain.normalise else gradient)
        return score if chain.max_scores is None else shorten(score, chain.max_scores[level])

    box = partial(jnp.clip, min=-chain.bound, max=chain.bound)
    project = box if chain.clip else lambda x: x
    action = walk(score, start, chain.plan, walk_key, project, trace=trace, noisy=chain.noisy)
    # An action leaves the chain inside its box, whether or not the walk was held there.
    return action.at[-1].set(box(action[-1])) if trace else box(action)


def slope_at(value: Callable[[Array, Any], Array], action: Array, level: Array | int) -> Array:
    """The gradient of `value(action, level)`, summed over members, at actions (..., A)."""
    return jax.grad(lambda a: value(a, level).sum())(action)


def slopes(value: Callable[[Array, Array], Array], path: Array, plan: Plan) -> Array:
    """The gradient of `value(action, level)` where a trace (steps + 1, ...) took each step."""

    def slope(_: None, left: tuple[Array, Array]) -> tuple[None, Array]:
        action, level = left
        return None, slope_at(value, action, level)

    return jax.lax.scan(slope, None, (path[:-1], plan.level))[1]


def _begin(chain: Chain, shape: tuple[int, ...], key: Key) -> Array:
    if chain.start == "uniform":
        return jax.random.uniform(key, shape, minval=-chain.bound, maxval=chain.bound)
    if chain.start == "normal":
        return jax.random.normal(key, shape)
    return jnp.zeros(shape)
