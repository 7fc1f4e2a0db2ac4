"""A policy's tables run by JAX: a pure function of tables, observations and noise.

At one observation a chain is matrix-vector products, as fast as the weights are read.  So the
observation's share of the first layer is computed once, the gradient is written out (forward,
then back through the same weights, to the action and no further), and the critics take turns, so
that one's weights are still in the cache when its way back needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.networks import ACTIVATIONS
from langevinrl.policies.tables import Facts, Policy
from langevinrl.types import Array

Tables: TypeAlias = Mapping[str, Array]


class Member(NamedTuple):
    """One perceptron of a network's tables; what each step adds to its first layer is apart."""

    first: Array  # (B, 1, H)  the observations' share of the first layer
    action: Array  # (A, H)
    weights: tuple[Array, ...]  # (H, H') each
    biases: tuple[Array, ...]  # (H',) each


def act(facts: Facts, tables: Tables, obs: Array, noise: Array, *, unroll: bool = False) -> Array:
    """Actions (B, A) in the task's units for observations (B, O) and noise (B, draws, N, A).

    The first draw is the start's: uniform in [-1, 1] if `facts.start` says so, else standard
    normal like all others.  `unroll` writes the chain out step by step.
    """
    candidates = _walk(facts, tables, obs, jnp.moveaxis(noise, 1, 0), unroll)
    drawn = _choose(facts, tables, obs, candidates)
    return tables["centre"][None] + tables["stretch"][None] * drawn


def _walk(facts: Facts, tables: Tables, obs: Array, noise: Array, unroll: bool) -> Array:
    """The ends of all candidates' chains: (B, N, A)."""
    field, bound = _members(tables, "field", obs), facts.bound
    shape = (obs.shape[0], facts.best_of, facts.act_dim)
    x = jnp.zeros(shape) if facts.start == "zero" else facts.start_scale * noise[0]
    steps, rows = tables["steps"], tables["field.rows"]
    later = noise[1:] if facts.num_draws > 1 else jnp.zeros((len(steps), 1, 1, 1))

    def step(x: Array, now: tuple[Array, Array, Array]) -> tuple[Array, None]:
        numbers, row, z = now
        of_x, of_field, of_guess, keep, spread = (numbers[i] for i in range(5))
        guess = of_x * x + of_field * _drift(facts, field, row, x)
        if facts.clip_guess:
            guess = jnp.clip(guess, -bound, bound)
        x = of_guess * guess + keep * x + spread * z
        return (jnp.clip(x, -bound, bound) if facts.clip_step else x), None

    if unroll:
        for k in range(len(steps)):
            x, _ = step(x, (steps[k], rows[k], later[k]))
    else:
        x, _ = jax.lax.scan(step, x, (steps, rows, later))
    return jnp.clip(bound * jnp.tanh(x) if facts.squash else x, -bound, bound)


def _choose(facts: Facts, tables: Tables, obs: Array, candidates: Array) -> Array:
    """The candidate that the lesser critic values most: (B, A)."""
    if facts.best_of == 1:
        return candidates[:, 0]
    judge = _members(tables, "judge" if "judge.obs" in tables else "field", obs)
    rows = tables["judge.rows"][0]
    each = [_forward(facts, m, row, candidates)[0] for m, row in zip(judge, rows, strict=True)]
    value = jnp.stack(each)[..., 0].min(axis=0)  # (B, N)
    best = value.argmax(axis=1)[:, None] == jnp.arange(facts.best_of)[None]
    return jnp.where(best[..., None], candidates, 0.0).sum(axis=1)


def _members(tables: Tables, name: str, obs: Array) -> list[Member]:
    depth = sum(key.startswith(f"{name}.weight.") for key in tables)
    members = []
    for m in range(len(tables[f"{name}.obs"])):
        first = (obs @ tables[f"{name}.obs"][m])[:, None]
        weights, biases = (
            tuple(tables[f"{name}.{part}.{i}"][m] for i in range(depth))
            for part in ("weight", "bias")
        )
        members.append(Member(first, tables[f"{name}.action"][m], weights, biases))
    return members


def _drift(facts: Facts, field: list[Member], row: Array, x: Array) -> Array:
    """The network's output, or the gradient of the members' sum in the action: (B, N, A)."""
    if facts.drift == "network":
        return _forward(facts, field[0], row[0], x)[0]
    gradient = _gradient(facts, field[0], row[0], x)
    for m in range(1, len(field)):
        gradient = gradient + _gradient(facts, field[m], row[m], x)
    if not facts.normalise:
        return gradient
    length = jnp.sqrt(jnp.square(gradient).sum(axis=-1, keepdims=True))
    return gradient / (length + 1e-8)


def _forward(facts: Facts, member: Member, row: Array, x: Array) -> tuple[Array, list[Array]]:
    """Outputs (B, N, out), and the slope of each layer's activation."""
    activation = ACTIVATIONS[facts.activation]
    z, slopes = member.first + row[None, None] + x @ member.action, []
    for weight, bias in zip(member.weights, member.biases, strict=True):
        h, slope = jax.jvp(activation, (z,), (jnp.ones_like(z),))
        slopes.append(slope)
        z = h @ weight + bias[None, None]
    return z, slopes


def _gradient(facts: Facts, member: Member, row: Array, x: Array) -> Array:
    """Gradient of one member's value in the action: (B, N, A)."""
    out, slopes = _forward(facts, member, row, x)
    g = jnp.ones_like(out)
    for weight, slope in zip(reversed(member.weights), reversed(slopes), strict=True):
        g = (g @ weight.T) * slope
    return g @ member.action.T


def keyed_noise(policy: Policy, seed: Array) -> Array:
    """The noise (B, draws, N, A) that the agent itself draws for observations' seeds (B,)."""
    return jax.vmap(lambda one: _noise(policy, jax.random.key(one)))(seed)


def _noise(policy: Policy, key: Array) -> Array:
    facts, shape = policy.facts, policy.facts.noise_shape[1:]
    if facts.num_draws == 0:
        return jnp.zeros(facts.noise_shape)
    if policy.key_use == "fixed":  # the same noise in every state
        key = jax.random.key(0)
    if policy.key_use == "first_half":
        key, _ = jax.random.split(key)
    if facts.num_draws == 1:
        return jax.random.normal(key, shape)[None]
    start_key, walk_key = jax.random.split(key)
    if facts.start == "uniform":
        start = jax.random.uniform(start_key, shape, minval=-1.0, maxval=1.0)
    else:
        start = jax.random.normal(start_key, shape)
    keys = jax.random.split(walk_key, facts.num_draws - 1)
    later = jax.vmap(lambda one: jax.random.normal(one, shape))(keys)
    return jnp.concatenate([start[None], later[::-1] if policy.backwards else later])
