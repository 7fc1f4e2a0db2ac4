"""A policy's tables run by JAX: a pure function of tables, observations and noise.

At one observation a chain is matrix-vector products, as fast as the weights are read.  So the
observation's share of the first layer is computed once, levels and steps come as ready rows, the
gradient is written out (forward, then back through the same weights, to the action and no
further), noise is drawn before the loop, and both critics are one product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from langevinrl.networks import ACTIVATIONS, normalise_features
from langevinrl.policies.tables import Facts, Policy
from langevinrl.types import Array

Tables: TypeAlias = Mapping[str, Array]
Layer: TypeAlias = tuple[Array, Callable[[Array], tuple[Array]]]  # see `_forward`


class Network(NamedTuple):
    """M perceptrons of a policy's tables, given observations."""

    first: Array  # (M, B, 1, H)  the observations' share of the first layer
    action: Array  # (M, A, H)
    weights: tuple[Array, ...]  # (M, H, H') each
    biases: tuple[Array, ...]  # (M, H') each
    apart: bool  # one product per member: what ONNX runs fast; XLA would rather have one for all


def act(facts: Facts, tables: Tables, obs: Array, noise: Array, *, unroll: bool = False) -> Array:
    """Actions (B, A) in the task's units for observations (B, O) and noise (B, draws, N, A).

    The first draw is the start's: uniform in [-1, 1] if `facts.start` says so, else standard
    normal like all others.  `unroll` writes the chain out step by step.
    """
    candidates = _walk(facts, tables, obs, jnp.moveaxis(noise, 1, 0), unroll)
    drawn = _choose(facts, tables, obs, candidates, unroll)
    return tables["centre"][None] + tables["stretch"][None] * drawn


def _walk(facts: Facts, tables: Tables, obs: Array, noise: Array, unroll: bool) -> Array:
    """The ends of all candidates' chains: (B, N, A)."""
    field, bound = _network(tables, "field", obs, unroll), facts.bound
    shape = (obs.shape[0], facts.best_of, facts.act_dim)
    x = jnp.zeros(shape) if facts.start == "zero" else facts.start_scale * noise[0]
    steps, rows = tables["steps"], tables["field.rows"]
    later = noise[1:] if facts.num_draws > 1 else jnp.zeros((len(steps), 1, 1, 1))
    limits = tables.get("limits", jnp.zeros(len(steps)))

    def step(x: Array, now: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        numbers, row, z, limit = now
        of_x, of_field, of_guess, keep, spread = (numbers[i] for i in range(5))
        drift = of_field * _drift(facts, field, row, x)
        if "limits" in tables:
            length = jnp.sqrt(jnp.square(drift).sum(axis=-1, keepdims=True))
            drift = drift * jnp.minimum(1.0, limit / (length + 1e-12))
        guess = of_x * x + drift
        if facts.clip_guess:
            guess = jnp.clip(guess, -bound, bound)
        x = of_guess * guess + keep * x + spread * z
        return (jnp.clip(x, -bound, bound) if facts.clip_step else x), None

    if unroll:
        for k in range(len(steps)):
            x, _ = step(x, (steps[k], rows[k], later[k], limits[k]))
    else:
        x, _ = jax.lax.scan(step, x, (steps, rows, later, limits))
    return jnp.clip(bound * jnp.tanh(x) if facts.squash else x, -bound, bound)


def _choose(facts: Facts, tables: Tables, obs: Array, candidates: Array, apart: bool) -> Array:
    """The candidate that the lesser critic values most: (B, A)."""
    if facts.best_of == 1:
        return candidates[:, 0]
    judge = _network(tables, "judge" if "judge.obs" in tables else "field", obs, apart)
    value = _forward(facts, judge, tables["judge.rows"][0], candidates)[0][..., 0].min(axis=0)
    best = value.argmax(axis=1)[:, None] == jnp.arange(facts.best_of)[None]
    return jnp.where(best[..., None], candidates, 0.0).sum(axis=1)


def _network(tables: Tables, name: str, obs: Array, apart: bool) -> Network:
    depth = sum(key.startswith(f"{name}.weight.") for key in tables)
    first = jnp.einsum("bo,moh->mbh", obs, tables[f"{name}.obs"])[:, :, None]
    weights = tuple(tables[f"{name}.weight.{i}"] for i in range(depth))
    biases = tuple(tables[f"{name}.bias.{i}"] for i in range(depth))
    return Network(first, tables[f"{name}.action"], weights, biases, apart)


def _product(x: Array, weight: Array, apart: bool) -> Array:
    """Each member's rows through its weights: (M, B, N, H) and (M, H, H') to (M, B, N, H')."""
    if apart:
        return jnp.stack([x[m] @ weight[m] for m in range(len(weight))])
    return jnp.einsum("mbnh,mhk->mbnk", x, weight)


def _product_back(x: Array, weight: Array, apart: bool) -> Array:
    """The way back, through the same weights: (M, B, N, H') to (M, B, N, H)."""
    if apart:
        return jnp.stack([x[m] @ weight[m].T for m in range(len(weight))])
    return jnp.einsum("mbnk,mhk->mbnh", x, weight)


def _drift(facts: Facts, field: Network, row: Array, x: Array) -> Array:
    """The network's output, or the gradient of the members' sum in the action: (B, N, A)."""
    if facts.drift == "network":
        return _forward(facts, field, row, x)[0][0]
    gradient = _gradient(facts, field, row, x)
    if not facts.normalise:
        return gradient
    length = jnp.sqrt(jnp.square(gradient).sum(axis=-1, keepdims=True))
    return gradient / (length + 1e-8)


def _forward(facts: Facts, net: Network, row: Array, x: Array) -> tuple[Array, list[Layer]]:
    """Outputs (M, B, N, out) at actions (B, N, A), and what the gradient needs of each layer.

    That is the slope of its activation and the way back through its norm.
    """
    activation = ACTIVATIONS[facts.activation]
    # The action once per member: a product without that axis would turn the weights every time.
    each = jnp.broadcast_to(x[None], (len(net.action), *x.shape))
    z = net.first + row[:, None, None] + _product(each, net.action, net.apart)
    layers: list[Layer] = []
    for weight, bias in zip(net.weights, net.biases, strict=True):
        z, norm_back = jax.vjp(partial(normalise_features, norm=facts.norm), z)
        h, slope = jax.jvp(activation, (z,), (jnp.ones_like(z),))
        layers.append((slope, norm_back))
        z = _product(h, weight, net.apart) + bias[:, None, None]
    return z, layers


def _gradient(facts: Facts, net: Network, row: Array, x: Array) -> Array:
    """Gradient in the actions of the sum of all members' values: (B, N, A)."""
    out, layers = _forward(facts, net, row, x)
    g = jnp.ones_like(out)
    for weight, (slope, norm_back) in zip(reversed(net.weights), reversed(layers), strict=True):
        (g,) = norm_back(_product_back(g, weight, net.apart) * slope)
    # Summed after the product: summed in it, the weights would be laid out anew at every step.
    return _product_back(g, net.action, net.apart).sum(axis=0)


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
