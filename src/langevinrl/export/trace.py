"""Evaluation policies as functions of an observation and noise, ready to be traced."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from langevinrl.agents import Agent
from langevinrl.envs.spaces import TaskSpaces
from langevinrl.errors import UserError
from langevinrl.export.numpy_policy import draw_noise, erf
from langevinrl.types import Array, PyTree

# Fields that decide how an action is drawn and not what was learned.
CHANGEABLE = ("best_of", "steps_per_level", "num_steps", "flow_steps")


@dataclass(frozen=True)
class TracedPolicy:
    """The evaluation policy of one trained seed for a single observation."""

    agent: str  # the class's name
    spaces: TaskSpaces
    noise: dict[str, tuple[int, ...]]  # shapes by name, which begins with the distribution
    act: Callable[..., Array]  # an observation (O,) and the arrays of noise to the task's action

    @property
    def metadata(self) -> dict[str, Any]:
        """Inputs and output, as every exported form describes them."""
        return {
            "agent": self.agent,
            "obs_dim": self.spaces.spec.obs_dim,
            "action_shape": list(self.spaces.action_space.shape),
            "action_dtype": str(self.spaces.action_space.dtype),
            "noise": self.noise,
        }

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the inputs for one action, by name."""
        return {"obs": (self.spaces.spec.obs_dim,), **self.noise}

    @cached_property
    def act_rows(self) -> Callable[..., Array]:
        """The same for rows of observations and noise, compiled."""
        return jax.jit(jax.vmap(self.act))

    def examples(self, rows: int) -> dict[str, np.ndarray]:
        """Draw inputs to try the policy with."""
        rng = np.random.default_rng(0)
        obs = rng.standard_normal((rows, self.spaces.spec.obs_dim)).astype(np.float32)
        return {"obs": obs} | draw_noise(self.noise, rng, rows)


def trace_policy(agent: Agent, state: PyTree, spaces: TaskSpaces) -> TracedPolicy:
    """Return an agent's evaluation policy; `state` has no seed axis.

    Noise that has no effect on the action, or is always zero, is not an input.
    """
    draw = partial(agent.noise, jax.random.key(0))
    rows = jax.eval_shape(partial(draw, 1))
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(rows)]

    def act(obs: Array, *leaves: Array) -> Array:
        noise = jax.tree.unflatten(jax.tree.structure(rows), [leaf[None] for leaf in leaves])
        return _to_task(agent.policy(state, obs[None], noise, explore=False)[0], spaces)

    examples = [jnp.zeros(shape) for shape in [(spaces.spec.obs_dim,), *shapes]]
    used = jax.export.export(jax.jit(act))(*examples).module_kept_var_idx
    num_rows = min(max(2**22 // max(1, sum(map(math.prod, shapes))), 256), 4096)
    draws, _ = jax.tree_util.tree_flatten_with_path(jax.jit(partial(draw, num_rows))())
    noise, scales = {}, [0.0] * len(shapes)
    for i, (path, drawn) in enumerate(draws):
        place = jax.tree_util.keystr(path, simple=True, separator=".")
        if i + 1 in used and drawn.any():
            kind, scales[i] = _distribution(place, np.asarray(drawn), spaces.bound)
            noise[f"{kind}.{place}".rstrip(".")] = shapes[i]

    def act_on_inputs(obs: Array, *inputs: Array) -> Array:
        rest = iter(inputs)
        pairs = zip(scales, shapes, strict=True)
        return act(obs, *(x * next(rest) if x else jnp.zeros(shape) for x, shape in pairs))

    return TracedPolicy(type(agent).__name__, spaces, noise, act_on_inputs)


def _to_task(action: Array, spaces: TaskSpaces) -> Array:
    """Return an action (A,) of the agent's box in the task's units and shape, in float32."""
    box, bound = spaces.action_space, spaces.bound
    scaled = spaces.centre + spaces.scale * jnp.clip(action, -bound, bound)
    inside = jnp.clip(scaled, box.low.reshape(-1), box.high.reshape(-1))
    return inside.reshape(box.shape).astype(jnp.float32)


def _distribution(name: str, draws: np.ndarray, bound: float) -> tuple[str, float]:
    """Find from many rows which distribution noise has, and the factor on it."""
    numbers = np.sort(draws.reshape(-1)[: 2**20])
    share = (np.arange(numbers.size) + 0.5) / numbers.size
    normal = 0.5 + 0.5 * erf(numbers / 2**0.5)
    cases = [("normal", 1.0, 1.0, normal)]
    for half in (1.0, bound):  # agents may also draw from their action box
        uniform = np.clip((numbers / half + 1) / 2, 0, 1)
        cases.append(("uniform", half, half * 3**-0.5, uniform))
    for kind, factor, std, cumulative in cases:
        # All numbers together have the distribution, and each place its standard deviation.
        off = np.abs(draws.std(axis=0) / std - 1).max()
        if np.abs(cumulative - share).max() < 0.04 and off < 0.25:
            return kind, factor
    raise UserError(
        f"noise {name!r} is neither standard normal nor uniform on [-1, 1], as files expect; draw "
        "it so in the agent's noise() and scale it in policy()"
    )


def change_fields(agent: Any, state: PyTree, changes: dict[str, int]) -> Any:
    """Return an agent that draws its actions differently, with the weights it has."""
    name = type(agent).__name__
    known = [field for field in CHANGEABLE if hasattr(agent, field)]
    for field, value in changes.items():
        if field not in known:
            raise UserError(
                f"{name} has no {field} to change; what can be changed: {', '.join(known)}"
            )
        if value < 1:
            raise UserError(f"{field} is {value}; expected at least 1")
        denoises = hasattr(agent, "schedule") and getattr(agent, "sampler", "ddpm") == "ddpm"
        if field == "num_steps" and denoises and value != agent.num_steps:
            raise UserError(
                f"num_steps is {value}, but {name} was trained to denoise in {agent.num_steps} "
                "steps and knows no others: train with the number you want"
            )
        changed = dataclasses.replace(agent, **{field: value})
        if value != getattr(agent, field) and _describe(changed, state) == _describe(agent, state):
            raise UserError(f"{field} has no effect when {name} is evaluated")
        agent = changed
    return agent


def _describe(agent: Agent, state: PyTree) -> str:
    """Return the computation of an evaluation action as text, without unused noise."""
    obs = jnp.zeros((1, agent.spec.obs_dim))
    noise = jax.eval_shape(partial(agent.noise, jax.random.key(0), 1))
    return jax.jit(partial(agent.policy, explore=False)).lower(state, obs, noise).as_text()
